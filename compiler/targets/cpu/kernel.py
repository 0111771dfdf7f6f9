"""`Kernel`: a native function of numpy arrays, with checks of its arguments."""

from __future__ import annotations

import ctypes
import os
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

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
from compiler.targets.cpu.calls import DECLINED, FastCalls, NativeFunction
from compiler.targets.cpu.facts import UNKNOWN_FACTS, BuildFacts
from compiler.targets.cpu.openmp import thread_count, usable_threads
from compiler.targets.cpu.presence import QUIET, Disturbance, Sample, sample_undisturbed, time_calls
from compiler.targets.foreign import ZERO_COPY
from compiler.targets.groups import GroupFacts

VIEWER, EXPLAINER = "compiler.view.collect", "compiler.explain.source_report"
"""The modules that write pages about kernels, and that explain them, which import this one."""
LevelText = str | Callable[[], str]
LevelTexts = Mapping[str, str | Callable[[], str]]
CType: TypeAlias = type[ctypes.c_void_p] | type[ctypes.c_int32]
Results: TypeAlias = Any  # an array, a tuple of several or None, by the number of outputs


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: median, minimum and maximum over repeats, and their disturbance.

    >>> strata.targets.Timing(median=2e-6, minimum=1.5e-6, maximum=4e-6, repeats=9)
    <Timing 2 us: the median of 9 repeats, 1.5 us to 4 us>
    """

    median: float
    minimum: float
    maximum: float
    repeats: int
    disturbance: Disturbance = QUIET

    def __repr__(self) -> str:
        median, minimum, maximum = map(duration, (self.median, self.minimum, self.maximum))
        busy = f"; {self.disturbance}" if self.disturbance.matters else ""
        return f"<Timing {median}: the median of {counted(self.repeats, 'repeat')}, {minimum} to {maximum}{busy}>"


class _TrailingArguments(NamedTuple):
    """The native arguments after the arrays: the address of a workspace or 0, then the thread count if there are
    parallel loops; `memory` owns the workspace; None without one."""

    native_values: Sequence[int]
    memory: Array | None = None


_NO_WORKSPACE = (0,)
"""The trailing arguments of a kernel without workspace and parallel loops."""


@dataclass(frozen=True)
class Interface:
    """The interface of a native function; the last `outputs` arguments are results. workspace: the bytes of scratch
    memory that it needs. `threads` is the default thread count, None without parallel loops."""

    name: str
    arguments: tuple[Argument, ...]
    outputs: int
    workspace: Workspace
    threads: int | None

    @property
    def symbol(self) -> str:
        """The symbol of the function in its object code."""
        return symbol(self.name)


class Code(Protocol):
    """Loaded machine code."""

    def address(self, name: str) -> int:
        """The address of a function by its symbol. Raises TargetError for an unknown symbol, and for code that this
        processor cannot run."""


class Exportable(Protocol):
    """A kernel's program as data."""

    def reduced(self) -> tuple[Callable[[bytes], Kernel], tuple[bytes]]:
        """The value of the kernel's `__reduce_ex__`: a function, and its argument, from which it makes an equal
        kernel."""

    def export(self, path: object, weights: str, name: str | None, texts: Sequence[LevelTexts]) -> list[Path]:
        """Write the kernel as a library and return the paths; path: of a library, or a folder for all files. weights:
        the place of the constants, `library`, `file` or `none`. name: the prefix of the functions, by default that of
        the file. texts: those of the kernel by level, then those of its preparation if it has one."""


@dataclass(frozen=True)
class FixedArguments:
    """The arrays that a kernel passes in each call, by the positions of their arguments in the native function.
    `preparation`: the kernel that computed the arrays that depend on constants alone; None without such arrays."""

    arrays: Mapping[int, Array]
    preparation: Kernel | None = None


NO_FIXED_ARGUMENTS = FixedArguments({})
"""No array is fixed."""


class Kernel:
    """A compiled function of numpy arrays. It releases the GIL, and concurrent calls are safe.

    origin: the arguments of `build`, None for a kernel made otherwise.
    threads: the default thread count of its parallel loops; None without such loops. fixed: the constants and prepared
    arrays that it passes itself; `arguments` are the others. policy: the numeric one of its build. library: its loaded
    code. facts: those of its build. program: what pickle and `export` write; None if it was not kept.

    >>> A = te.placeholder((4,), name="A")
    >>> kernel = build(te.function("double", [A], te.nn.add(A, A, name="B")), threads=1)
    >>> kernel
    <Kernel double(A: float32[4], B: float32[4]), 1 output>
    >>> kernel(np.ones(4, np.float32))
    array([2., 2., 2., 2.], dtype=float32)
    """

    _refusal = "the code of this kernel was not kept: it cannot be pickled or copied, and not be exported"

    def __init__(
        self,
        interface: Interface,
        library: Code,
        policy: str = "contract",
        texts: Mapping[str, LevelText] | None = None,
        fixed: FixedArguments = NO_FIXED_ARGUMENTS,
        facts: BuildFacts = UNKNOWN_FACTS,
        callees: Mapping[str, Interface] = MappingProxyType({}),
        program: Exportable | None = None,
    ) -> None:
        self.facts = facts
        self.program = program
        self.origin: object | None = None
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
        """The facts of its compiled groups, those that run once first, in the order of their first calls; none for a
        program of one nest that was built as written."""
        return self.facts.groups

    @property
    def arena_bytes(self) -> int:
        """Bytes of temporaries between groups, which share memory, and of the groups' scratch memory."""
        return self.facts.arena_bytes

    @property
    def temporaries_bytes(self) -> int:
        """Bytes of all temporaries between groups if they shared no memory."""
        return self.facts.temporaries_bytes

    @property
    def constant_bytes(self) -> int:
        """Bytes of constants and prepared arrays."""
        return self.facts.constant_bytes

    @property
    def build_seconds(self) -> float:
        """The seconds of its build, from the program to this kernel."""
        return self.facts.build_seconds

    @cached_property
    def _native(self) -> Callable[..., None]:
        """The native function. Raises TargetError if this processor cannot run it."""
        return ctypes.CFUNCTYPE(None, *self._types)(self.library.address(symbol(self.name)))

    @cached_property
    def _usual_calls(self) -> FastCalls:
        fixed = {position: address(array) for position, array in self.fixed.arrays.items()}
        has_threads = self.threads is not None
        return FastCalls(self.name, NativeFunction(self._native, self.arguments, self.outputs, fixed, has_threads))

    def __call__(self, /, *arrays: object, out: Out = None, threads: int | None = None, **named: object) -> Results:
        """Run on arrays of the expected shapes and dtypes; return the result, or a tuple of several.

        Arrays are numpy's, torch's or any with `__dlpack__` on the CPU, by position or by name; an argument named `out`
        or `threads` can be passed by position only. Inputs may have any strides, alignment and byte order: those that
        native code cannot read are copied. `out` (an array or a tuple) receives the results and must be contiguous,
        writable, and disjoint from all other arrays; without it results are new arrays of the first input's package. A
        function without outputs works in place on its arguments, under the same conditions, and returns None. Parallel
        loops run on `threads` threads, one without OpenMP; results do not depend on the count. Raises TargetError for
        arrays of another shape or dtype and others that break these conditions, for a wrong count or name, and if this
        processor lacks features that the kernel was built for. See docs/calls.md.
        """
        trailing = (
            _NO_WORKSPACE if threads is None and self._is_plain else self._trailing_arguments(threads).native_values
        )
        inputs = self._binder.in_order(arrays, named) if named or len(arrays) != self._inputs else arrays
        if inputs:
            calls = self._usual_calls
            outputs = calls[type(inputs[0])](inputs, out, *trailing)
            if outputs is DECLINED:
                outputs = calls.on_views(inputs, out, *trailing)
            if outputs is not DECLINED:
                return outputs
        binding = self._binder.bind(inputs, out)
        self._native(*binding.native_values, *trailing)
        return binding.wrapped_results()

    def bound(self, /, *arrays: object, out: Out = None, threads: int | None = None, **named: object) -> BoundCall:
        """Check and bind the arrays once; return the native call without Python's overhead. Arguments, results and
        exceptions are those of a call, but each run writes to the same arrays: those of `out`, or new ones. `threads`:
        of the parallel loops, None for the kernel's own count."""
        binding, trailing = (
            self._binder.bind(self._binder.in_order(arrays, named), out),
            self._trailing_arguments(threads),
        )
        binding.native_values.extend(trailing.native_values)
        binding.owners.append(trailing.memory)
        return BoundCall(self, binding)

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[[bytes], Kernel], tuple[bytes]]:
        """Pickle the machine code, the constants and the prepared constants, at any protocol; the restored kernel has
        no texts of levels. Raises TypeError if the code was not kept."""
        if self.program is None:
            raise TypeError(self._refusal)
        return self.program.reduced()

    def export(self, path: str | os.PathLike[str], weights: str = "library", name: str | None = None) -> list[Path]:
        """Write the kernel as a library for callers without Python, with headers in C and C++; return the paths.

        path: `libNAME.so`, `.a` or `.o`, or a folder for all of these and the texts. weights: the place of the
        constants and the prepared constants: the `library`, a `file` NAME.safetensors beside it, or `none` (the caller
        has the weights). name: the prefix of the functions; that of the file by default. See docs/export.md. Raises
        InputError for a wrong path or word, TargetError without a C compiler and for a kernel without its object code.

        >>> A = te.placeholder((4,), name="A")
        >>> kernel = build(te.function("double", [A], te.nn.add(A, A, name="B")), threads=1)
        >>> [path.name for path in kernel.export("double.o")]
        ['double.h', 'double.hpp', 'double.o', 'double.certificate.json']
        """
        if self.program is None:
            raise TargetError(f"{self.name}: {self._refusal}")
        before = self.fixed.preparation
        return self.program.export(path, weights, name, [self._texts, *([] if before is None else [before._texts])])

    def group(self, name: str) -> Kernel:
        """Return one of `groups` as a kernel, with all arrays that main passes to it, prepared ones included; a kernel
        of one nest returns itself, whatever the name. It serves timing: a group that works in place expects part of its
        results in the array that it overwrites. Its prepared and constant arrays are arguments. Raises KeyError for an
        unknown name."""
        return Kernel(self._callees[name], self.library, self.policy) if self._callees else self

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of its texts."""
        return tuple(self._texts)

    def text(self, level: str) -> str:
        """Return the program at a level of its build: te, loop, low, llvm or asm, or its `certificate`, the te programs
        and scheduled loops of its groups as JSON. Raises TargetError for a name that `levels` lacks."""
        if validation.text("level", level, TargetError) not in self._texts:
            raise TargetError(f"{self.name}: no level '{level}' (there are {', '.join(self._texts)})")
        text = self._texts[level]
        return text if isinstance(text, str) else text()

    def view(self, path: str | os.PathLike[str] | None = None, program: object = None) -> Path:
        """Write a page in HTML about the kernel to a file, by default NAME.html in the current folder; return its path.

        For the program and each of its groups it has the IR after each pass, the loops, the schedule script step by
        step, the memory that a loop touches, machine loops with their bound, and the proof: see docs/view.md. program:
        the te program or model that was built, for the modules, nodes and lines of source behind each loop, or the
        Schedule, also for its script. Raises InputError for a path that cannot be written, TargetError for a kernel
        without texts of levels, such as a pickled one.

        >>> A = te.placeholder((4,), name="A")
        >>> kernel = build(te.function("double", [A], te.nn.add(A, A, name="B")), threads=1)
        >>> kernel.view("double.html").name
        'double.html'
        """
        written: Path = import_module(VIEWER).write_view(self, path, program)
        return written

    def explain(self, runs: int = 15) -> Any:
        """Return a report of the time of the kernel's program by the parts of its model: modules of torch, nodes of
        ONNX, lines of source. `print` shows it, `rows` are the parts, those with most time to be won first: see
        docs/explain.md.

        The program is built again, with counters around its calls, and run `runs` times on random inputs and weights.
        Raises TargetError for a kernel that `build` has not made here, such as a pickled one, and InputError for a
        program below te, under a script, or with large constants that is no longer in memory.

        >>> A = te.placeholder((64, 64), name="A")
        >>> kernel = build(te.function("product", [A], te.nn.matmul(A, A, name="B")), threads=1, schedule="auto")
        >>> [len(row.calls) for row in kernel.explain(runs=3).rows]
        [1]
        """
        if self.origin is None:
            raise TargetError(f"{self.name}: only a kernel that build has made in this process can be explained")
        return import_module(EXPLAINER).explain_kernel(self.name, self.origin, runs)

    def time(self, *arrays: object, repeats: int = 9, min_seconds: float = 0.0, threads: int | None = None) -> Timing:
        """Time native calls on the input `arrays` and new results, after a warm-up call, on `threads` threads (None:
        the kernel's own number). Each repeat makes enough calls to last `min_seconds`, at least one; times are seconds
        of a call. A disturbed repeat is tried again a few times, and its least disturbed try counts; `disturbance`
        covers all tries, rejected ones included. Raises TargetError for fewer than one repeat and a negative
        `min_seconds`."""
        repeats = validation.integer("repeats", repeats, 1, error=TargetError)
        min_repeat_seconds = validation.seconds("min_seconds", min_seconds, TargetError)
        call = self.bound(*arrays, threads=threads)
        thread_count_ = self._team(threads) or 1

        def take(calls: int) -> Sample:
            return time_calls(call, calls, thread_count_)

        calls = max(1, int(np.ceil(min_repeat_seconds / max(take(1).wall, 1e-7))))
        results = [sample_undisturbed(lambda repeat: take(calls)) for _ in range(repeats)]
        seconds = [result.sample.wall for result in results]
        disturbance = sum((result.disturbance for result in results), QUIET)
        return Timing(statistics.median(seconds), min(seconds), max(seconds), repeats, disturbance)

    def _trailing_arguments(self, threads: int | None) -> _TrailingArguments:
        team = self._team(threads)
        memory = self._scratch(team or 1)
        native_values = [0 if memory is None else address(memory)]
        return _TrailingArguments(native_values if team is None else [*native_values, team], memory)

    def _team(self, threads: int | None) -> int | None:
        """Return the thread count of a call, at most what OpenMP can use here; None without parallel loops, where
        `threads` is checked and ignored."""
        count = self.threads if threads is None else thread_count(threads)
        return None if self.threads is None or count is None else usable_threads(count)

    def _scratch(self, threads: int) -> Array | None:
        """Return this Python thread's workspace, at least as large as `threads` threads need, and allocated again if it
        is too small; None if the kernel needs none."""
        size = self._workspace.size(threads)
        if not size:
            return None
        local = self._local
        if getattr(local, "size", 0) < size:
            local.memory, local.size = arena(size), size
        memory: Array = local.memory
        return memory


class BoundCall(Unpicklable):
    """A kernel's native call on bound arrays. Each run writes its results to the same arrays; concurrent runs race."""

    _refusal = "a bound call has addresses and cannot be pickled or copied: `bound` of its kernel makes another"
    __slots__ = ("_binding", "_converts", "_kernel", "_native_values", "_results")

    def __init__(self, kernel: Kernel, binding: Binding) -> None:
        self._kernel, self._binding = kernel, binding
        self._native_values, self._results = tuple(binding.native_values), binding.wrapped_results()
        self._converts = binding.result_wrapper not in ZERO_COPY  # another package's conversion may copy

    def __call__(self) -> Results:
        self._kernel._native(*self._native_values)
        return self._binding.wrapped_results() if self._converts else self._results

    def __repr__(self) -> str:
        return f"<BoundCall of {self._kernel!r}>"


def _ctype(argument: Argument) -> CType:
    return np.ctypeslib.as_ctypes_type(argument.dtype) if argument.by_value else ctypes.c_void_p
