"""`Kernel`: a native function that takes numpy arrays, and refuses arrays that do not fit in one sentence."""

from __future__ import annotations

import ctypes
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from compiler.lowering.low_to_llvm.signature import Workspace, symbol
from compiler.support import display, validation
from compiler.support.errors import TargetError
from compiler.support.text import counted, duration
from compiler.support.unpicklable import Unpicklable
from compiler.targets.address import address
from compiler.targets.arena import arena
from compiler.targets.arguments import Argument, Array, arguments_html
from compiler.targets.cpu.binding import Binder, Binding, Out
from compiler.targets.cpu.calls import UNUSUAL, NativeFunction, UsualCalls
from compiler.targets.cpu.compile import Loaded
from compiler.targets.cpu.facts import UNKNOWN, Facts, GroupFacts
from compiler.targets.cpu.openmp import thread_count, usable
from compiler.targets.cpu.presence import QUIET, Disturbance, Taken, timed, undisturbed
from compiler.targets.foreign import ON_SAME_MEMORY

Text = str | Callable[[], str]
CType: TypeAlias = type[ctypes.c_void_p] | type[ctypes.c_int32]
Results: TypeAlias = Any  # an array, a tuple of several or None: the function's outputs tell, which types do not know


@dataclass(frozen=True)
class Timing:
    """Seconds for one call: median, minimum and maximum over a number of repeats; and how these were disturbed, where
    the machine was busy."""

    median: float
    minimum: float
    maximum: float
    repeats: int
    disturbance: Disturbance = QUIET

    def __repr__(self) -> str:
        median, least, most = map(duration, (self.median, self.minimum, self.maximum))
        busy = f"; {self.disturbance}" if self.disturbance.matters else ""
        return f"<Timing {median}: the median of {counted(self.repeats, 'repeat')}, {least} to {most}{busy}>"


class _Surroundings(NamedTuple):
    """What native code is passed behind its arrays: the address of a workspace or 0, and the threads of parallel loops,
    if there are any; and the memory of that workspace."""

    passed: Sequence[int]
    memory: Array | None = None


_PLAIN = (0,)
"""The last arguments of a call without workspace and parallel loops."""


@dataclass(frozen=True)
class Interface:
    """What a caller of a native function knows; `threads` is None where it has no parallel loops."""

    name: str
    arguments: tuple[Argument, ...]
    outputs: int
    workspace: Workspace
    threads: int | None


@dataclass(frozen=True)
class FixedArguments:
    """The arrays that a kernel passes in each call, by the positions of their arguments in the native function.

    `preparation` is the kernel that computed the arrays that depend on constants alone.
    """

    arrays: Mapping[int, Array]
    preparation: Kernel | None = None


NOTHING = FixedArguments({})
"""No array is fixed."""


class Kernel(Unpicklable):
    """A compiled function of numpy arrays. Python threads may call it at once; it releases the GIL.

    `threads` is how many threads its parallel loops run on where a call does not say; None if it has no such loops.
    `fixed` are the constants and prepared arrays, which no call gives: `arguments` are the others.
    """

    _refusal = (
        "a kernel is loaded into this process and cannot be pickled or copied: give the program away, and build it"
        " there with strata.build, which takes machine code from its cache"
    )

    def __init__(
        self,
        interface: Interface,
        library: Loaded,
        policy: str = "contract",
        texts: Mapping[str, Text] | None = None,
        fixed: FixedArguments = NOTHING,
        facts: Facts = UNKNOWN,
        callees: Mapping[str, Interface] = MappingProxyType({}),
    ) -> None:
        self.facts = facts
        self._callees = callees
        self.name = interface.name
        self.arguments = tuple(a for n, a in enumerate(interface.arguments) if n not in fixed.arrays)
        self.outputs = interface.outputs
        self.policy = policy
        self.threads = interface.threads
        self.fixed = fixed
        self.library = library
        self._binder = Binder(self.name, self.arguments, self.outputs, fixed.arrays)
        self._inputs = len(self.arguments) - self.outputs
        self._workspace = interface.workspace
        self._is_plain = self.threads is None and not self._workspace.size(1)
        self._texts = dict(texts or {})
        self._local = threading.local()
        count: list[CType] = [] if self.threads is None else [ctypes.c_int32]
        self._types = [*map(_ctype, interface.arguments), ctypes.c_void_p, *count]

    def __repr__(self) -> str:
        return display.line(f"<Kernel {self.name}({', '.join(map(str, self.arguments))}), {self._count}>")

    def _repr_html_(self) -> str:
        groups = [(group.name, group.occurrences, group.source, group.verdict) for group in self.groups]
        scheduled = display.table("groups", ("group", "calls", "schedule", "verdict"), groups) if groups else ""
        return arguments_html(f"{self.name}: {self._count}", self.arguments, self.outputs) + scheduled

    @property
    def _count(self) -> str:
        return counted(self.outputs, "output")

    @property
    def groups(self) -> tuple[GroupFacts, ...]:
        """The different groups that it calls, in the order of their first calls; none for a program of one nest."""
        return self.facts.groups

    @property
    def arena_bytes(self) -> int:
        """Memory for temporaries between groups and for scratch, see `Facts`."""
        return self.facts.arena_bytes

    @property
    def temporaries_bytes(self) -> int:
        """What the temporaries between groups would take without sharing memory."""
        return self.facts.temporaries_bytes

    @property
    def constant_bytes(self) -> int:
        """The memory of constants and prepared arrays."""
        return self.facts.constant_bytes

    @property
    def build_seconds(self) -> float:
        """How long it took to build, from the program to this kernel."""
        return self.facts.build_seconds

    @cached_property
    def _native(self) -> Callable[..., None]:
        """The native function. Raises TargetError where this processor cannot run it."""
        return ctypes.CFUNCTYPE(None, *self._types)(self.library.address(symbol(self.name)))

    @cached_property
    def _usual_calls(self) -> UsualCalls:
        fixed = {position: address(array) for position, array in self.fixed.arrays.items()}
        has_threads = self.threads is not None
        return UsualCalls(self.name, NativeFunction(self._native, self.arguments, self.outputs, fixed, has_threads))

    def __call__(self, /, *arrays: object, out: Out = None, threads: int | None = None, **named: object) -> Results:
        """Run on arrays of the expected shapes and dtypes; the result, or a tuple of several.

        Arrays are numpy's, torch's or any with `__dlpack__` on the CPU, by position or by name; `out` and `threads`
        are no names of arguments: one that is called so is given by position. Inputs may have any strides, alignment
        and byte order: what native code cannot read is copied. `out` (an array or a tuple) receives the results and
        must be contiguous, writable, and apart from the rest; without it they are new arrays, of the package that the
        first input is of. A function without outputs works in place on its arguments, which are held to the same, and
        returns None. Parallel loops run on `threads` threads, one without OpenMP; results do not depend on the count.
        Raises TargetError for arrays that do not fit, for a wrong count or name, and where this processor lacks what
        the kernel was built for. See docs/calls.md.
        """
        surroundings = _PLAIN if threads is None and self._is_plain else self._surroundings(threads).passed
        inputs = self._binder.in_order(arrays, named) if named or len(arrays) != self._inputs else arrays
        if inputs:
            calls = self._usual_calls
            outputs = calls[type(inputs[0])](inputs, out, *surroundings)
            if outputs is UNUSUAL:
                outputs = calls.on_views(inputs, out, *surroundings)
            if outputs is not UNUSUAL:
                return outputs
        call = self._binder.bind(inputs, out)
        self._native(*call.passed, *surroundings)
        return call.returned()

    def bound(self, /, *arrays: object, out: Out = None, threads: int | None = None, **named: object) -> BoundCall:
        """The native call on arrays that are checked here, once: only the kernel's own time remains.

        Takes, returns and raises what a call does, but that results are in the same arrays each time: those of `out`,
        or new ones that are made here.
        """
        call, surroundings = self._binder.bind(self._binder.in_order(arrays, named), out), self._surroundings(threads)
        call.passed.extend(surroundings.passed)
        call.held.append(surroundings.memory)
        return BoundCall(self, call)

    def group(self, name: str) -> Kernel:
        """The native function of one of `groups` alone, of all arrays that main passes to it, prepared ones included; a
        kernel of one nest is its own group.

        It is there to be timed: where a group works in place, it leaves part of its results to the array that it
        replaces.
        """
        return Kernel(self._callees[name], self.library, self.policy) if self._callees else self

    def text(self, level: str) -> str:
        """The program at a level: te, loop, low, llvm or asm, where the kernel came through it."""
        if validation.text("level", level, TargetError) not in self._texts:
            raise TargetError(f"{self.name}: no level '{level}' (there are {', '.join(self._texts)})")
        text = self._texts[level]
        return text if isinstance(text, str) else text()

    def time(self, *arrays: object, repeats: int = 9, min_seconds: float = 0.0, threads: int | None = None) -> Timing:
        """Time native calls, after a first one that does not count, with results in arrays of their own.

        Each repeat makes as many calls as it takes to last `min_seconds`, at least one; figures are per call. One whose
        threads were off their processors is made again, a few times; `disturbance` says how far that did not help.
        """
        repeats = validation.integer("repeats", repeats, 1, error=TargetError)
        shortest = validation.seconds("min_seconds", min_seconds, TargetError)
        call = self.bound(*arrays, threads=threads)
        team = self._team(threads) or 1

        def take(calls: int) -> Taken:
            return timed(call, calls, team)

        calls = max(1, int(np.ceil(shortest / max(take(1).wall, 1e-7))))
        samples = [undisturbed(lambda repeat: take(calls)) for _ in range(repeats)]
        seconds = [sample.taken.wall for sample in samples]
        disturbance = sum((sample.disturbance for sample in samples), QUIET)
        return Timing(statistics.median(seconds), min(seconds), max(seconds), repeats, disturbance)

    def _surroundings(self, threads: int | None) -> _Surroundings:
        team = self._team(threads)
        memory = self._scratch(team or 1)
        passed = [0 if memory is None else address(memory)]
        return _Surroundings(passed if team is None else [*passed, team], memory)

    def _team(self, threads: int | None) -> int | None:
        """The threads of one call; None where the kernel has no parallel loops."""
        count = self.threads if threads is None else thread_count(threads)
        return None if self.threads is None or count is None else usable(count)

    def _scratch(self, threads: int) -> Array | None:
        """This Python thread's workspace, allocated once, and again for a larger count of threads."""
        size = self._workspace.size(threads)
        if not size:
            return None
        local = self._local
        if getattr(local, "size", 0) < size:
            local.memory, local.size = arena(size), size
        memory: Array = local.memory
        return memory


class BoundCall(Unpicklable):
    """A kernel's native call on checked arrays. Called, it returns what a call of the kernel does, in the same arrays
    each time. Python threads must not run one at once."""

    _refusal = "a bound call has addresses and cannot be pickled or copied: `bound` of its kernel makes another"
    __slots__ = ("_binding", "_converts", "_kernel", "_passed", "_results")

    def __init__(self, kernel: Kernel, binding: Binding) -> None:
        self._kernel, self._binding = kernel, binding
        self._passed, self._results = tuple(binding.passed), binding.returned()
        self._converts = binding.returned_as not in ON_SAME_MEMORY  # another package's conversion may copy

    def __call__(self) -> Results:
        self._kernel._native(*self._passed)
        return self._binding.returned() if self._converts else self._results

    def __repr__(self) -> str:
        return f"<BoundCall of {self._kernel!r}>"


def _ctype(argument: Argument) -> CType:
    return np.ctypeslib.as_ctypes_type(argument.dtype) if argument.by_value else ctypes.c_void_p
