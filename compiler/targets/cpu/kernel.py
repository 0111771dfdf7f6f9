"""`Kernel`: a native function that takes numpy arrays, and says in a sentence what does not fit."""

from __future__ import annotations

import ctypes
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from compiler import stated
from compiler.errors import TargetError
from compiler.lowering.low_to_llvm.signature import Workspace, symbol
from compiler.targets.arena import arena
from compiler.targets.arguments import (
    Argument,
    Array,
    Passed,
    address,
    are_apart,
    check_apart,
    check_input,
    check_target,
    plain,
    room,
)
from compiler.targets.cpu.compile import Loaded
from compiler.targets.cpu.openmp import thread_count, usable
from compiler.targets.cpu.presence import QUIET, Disturbance, Taken, timed, undisturbed

Text = str | Callable[[], str]
Out = Array | Sequence[Array] | None
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


class _Call(NamedTuple):
    """What native code is passed, the memory that this points into, and the arrays that are results."""

    passed: list[Passed]
    held: list[object]
    results: list[Array]


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

    `preparation` is the kernel that made those which depend on constants alone.
    """

    arrays: Mapping[int, Array]
    preparation: Kernel | None = None


NOTHING = FixedArguments({})
"""No array is fixed."""


class Kernel:
    """A compiled function of numpy arrays. Python threads may call it at once; it releases the GIL.

    `threads` is how many threads its parallel loops run on where a call does not say; None if it has no such loops.
    `fixed` are the constants, and what was prepared of them, that no call gives: `arguments` are the others.
    """

    def __init__(
        self,
        interface: Interface,
        library: Loaded,
        policy: str = "contract",
        texts: Mapping[str, Text] | None = None,
        fixed: FixedArguments = NOTHING,
    ) -> None:
        self.name = interface.name
        self.arguments = tuple(a for n, a in enumerate(interface.arguments) if n not in fixed.arrays)
        self.outputs = interface.outputs
        self.policy = policy
        self.threads = interface.threads
        self.fixed = fixed
        self.library = library
        self._fixed = [(position, array.ctypes.data) for position, array in sorted(fixed.arrays.items())]
        self._inputs = len(self.arguments) - self.outputs
        self._sizes = [argument.size for argument in self.arguments]
        self._has_values = any(argument.by_value for argument in self.arguments)
        self._workspace = interface.workspace
        self._texts = dict(texts or {})
        self._local = threading.local()
        count: list[CType] = [] if self.threads is None else [ctypes.c_int32]
        self._types = [*map(_ctype, interface.arguments), ctypes.c_void_p, *count]

    def __repr__(self) -> str:
        count = f"{self.outputs} output{'' if self.outputs == 1 else 's'}"
        return f"<Kernel {self.name}({', '.join(map(str, self.arguments))}), {count}>"

    @cached_property
    def _native(self) -> Callable[..., None]:
        """The native function. Raises TargetError where this processor cannot run it."""
        return ctypes.CFUNCTYPE(None, *self._types)(self.library.address(symbol(self.name)))

    def __call__(self, *arrays: object, out: Out = None, threads: int | None = None) -> Results:
        """Run on arrays of the expected shapes and dtypes; the result, or a tuple of several.

        Inputs may have any strides, alignment and byte order: what native code cannot read is copied. `out`
        (an array or a tuple) receives the results and must be contiguous, writable, and apart from the rest;
        without it they are new arrays. A function without outputs works in place on its arguments, which are
        held to the same, and returns None. Parallel loops run on `threads` threads, one without OpenMP; results
        do not depend on the count. Raises TargetError for arrays that do not fit, for a wrong count, and where this
        processor lacks what the kernel was built for.
        """
        call = self._bind(arrays, out, threads)
        self._native(*call.passed)
        results = call.results
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def bound(self, *arrays: object, out: Out = None, threads: int | None = None) -> Callable[[], None]:
        """The native call on arrays that are checked here, once: what is left is the kernel's own time.

        Takes and raises what a call does; results are in `out` each time.
        """
        call = self._bind(arrays, out, threads)
        return lambda: self._native(*call.passed)

    def text(self, level: str) -> str:
        """The program at a level: te, loop, low, llvm or asm, where the kernel came through it."""
        if stated.text("level", level, TargetError) not in self._texts:
            raise TargetError(f"{self.name}: no level '{level}' (there are {', '.join(self._texts)})")
        text = self._texts[level]
        return text if isinstance(text, str) else text()

    def time(self, *arrays: object, repeats: int = 9, min_seconds: float = 0.0, threads: int | None = None) -> Timing:
        """Time native calls, after a first one that does not count, with results in arrays of their own.

        Each repeat makes as many calls as it takes to last `min_seconds`, at least one; figures are per call. One whose
        threads were off their processors is made again, a few times; `disturbance` says how far that did not help.
        """
        repeats = stated.integer("repeats", repeats, 1, error=TargetError)
        least = stated.seconds("min_seconds", min_seconds, TargetError)
        call = self._bind(arrays, None, threads)
        native, passed = self._native, call.passed
        team = self._team(threads) or 1

        def take(calls: int) -> Taken:
            return timed(lambda: native(*passed), calls, team)

        calls = max(1, int(np.ceil(least / max(take(1).wall, 1e-7))))
        found = [undisturbed(lambda repeat: take(calls)) for _ in range(repeats)]
        seconds = [one.taken.wall for one in found]
        disturbance = sum((one.disturbance for one in found), QUIET)
        return Timing(statistics.median(seconds), min(seconds), max(seconds), repeats, disturbance)

    def _bind(self, arrays: Sequence[object], out: Out, threads: int | None) -> _Call:
        team = self._team(threads)
        if len(arrays) != self._inputs:
            raise TargetError(f"{self.name}: takes {_arrays(self._inputs)}, got {len(arrays)}")
        call = self._plain(arrays, out) or self._checked(arrays, out)
        for position, start in self._fixed:
            call.passed.insert(position, start)
        memory = self._scratch(1 if team is None else team)
        call.held.append(memory)
        call.passed.append(0 if memory is None else self._local.address)
        if team is not None:
            call.passed.append(team)
        return call

    def _plain(self, arrays: Sequence[object], out: Out) -> _Call | None:
        """A call of the usual kind, whose arrays are passed as they are; None for any other, right or wrong.

        A call of a small kernel takes 4 us by this way, and 7 us with `out` without it.
        """
        targets = _listed(out)
        given = [*arrays, *targets]
        expected = self.arguments[: self._inputs] if out is None else self.arguments
        if self._has_values or len(given) != len(expected):
            return None
        passed = plain(expected, given)
        if passed is None:
            return None
        if out is None and self.outputs:
            targets = [room(argument) for argument in self.arguments[self._inputs :]]
            passed += map(address, targets)
        elif not are_apart(passed, self._sizes):
            return None
        return _Call(passed, [*arrays, *targets], targets)

    def _checked(self, arrays: Sequence[object], out: Out) -> _Call:
        """Any call: each array is checked, and copied where that helps. Raises TargetError."""
        check = check_input if self.outputs else _check_in_place
        pairs = zip(self.arguments, arrays, strict=False)
        inputs = [check(self.name, expected, array) for expected, array in pairs]
        results = self._results(out)
        if out is not None or not self.outputs:
            written = [not self.outputs] * self._inputs + [True] * self.outputs
            check_apart(self.name, self.arguments, [*arrays, *results], written)
        every = [*inputs, *results]
        passed = [_passed(a, array) for a, array in zip(self.arguments, every, strict=True)]
        return _Call(passed, [*every], results)

    def _team(self, threads: int | None) -> int | None:
        """The threads of one call; None where the kernel has no parallel loops."""
        count = self.threads if threads is None else thread_count(threads)
        return None if self.threads is None or count is None else usable(count)

    def _results(self, out: Out) -> list[Array]:
        expected = self.arguments[self._inputs :]
        if out is None:
            return [room(argument) for argument in expected]
        given = _listed(out)
        if len(given) != len(expected):
            raise TargetError(f"{self.name}: has {len(expected)} outputs, out= has {len(given)} arrays")
        for array in given:
            if not isinstance(array, np.ndarray):
                raise TargetError(f"{self.name}: out= holds a {type(array).__name__}, expected numpy arrays")
        return [check_target(self.name, a, array) for a, array in zip(expected, given, strict=True)]

    def _scratch(self, threads: int) -> Array | None:
        """This Python thread's workspace, allocated once, and again for a larger count of threads."""
        size = self._workspace.size(threads)
        if not size:
            return None
        local = self._local
        if getattr(local, "size", 0) < size:
            local.memory = arena(size)
            local.address = address(local.memory)
            local.size = size
        memory: Array = local.memory
        return memory


def _arrays(count: int) -> str:
    return f"{count} array{'' if count == 1 else 's'}"


def _listed(out: Out) -> list[Array]:
    """The arrays that a caller gives for results."""
    return [] if out is None else list(out) if isinstance(out, tuple | list) else [out]  # type: ignore[list-item]


def _check_in_place(kernel: str, expected: Argument, given: object) -> Array:
    check = check_input if expected.by_value else check_target
    return check(kernel, expected, given)


def _ctype(argument: Argument) -> CType:
    return np.ctypeslib.as_ctypes_type(argument.dtype) if argument.by_value else ctypes.c_void_p


def _passed(argument: Argument, array: Array) -> Passed:
    return array.item() if argument.by_value else address(array)
