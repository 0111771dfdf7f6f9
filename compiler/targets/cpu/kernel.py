"""`Kernel`: a native function that takes numpy arrays, checks them, and says in a sentence what does not fit."""

from __future__ import annotations

import ctypes
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp

from compiler.dialects.functions import find_function, outputs
from compiler.errors import TargetError
from compiler.lowering.low_to_llvm import emit
from compiler.lowering.low_to_llvm.function import SLOT_ALIGNMENT, slot_offsets
from compiler.lowering.low_to_llvm.types import suffix
from compiler.targets.cpu.compile import Library, compile_llvm
from compiler.targets.machine import Machine

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
Array = np.ndarray[Any, Any]
Text = str | Callable[[], str]


@dataclass(frozen=True)
class Argument:
    """What a kernel expects at one position: a name, a shape, and a numpy dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Timing:
    """Seconds for one call: median, minimum and maximum over a number of calls."""

    median: float
    minimum: float
    maximum: float
    calls: int


class Kernel:
    """A compiled function. Safe to call from several Python threads; the interpreter lock is released meanwhile."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[Argument],
        outputs: int,
        workspace: int,
        library: Library,
        texts: Mapping[str, Text],
    ) -> None:
        self.name = name
        self.arguments = tuple(arguments)
        self.outputs = outputs
        self._workspace = workspace
        self._library = library
        self._texts = dict(texts)
        self._local = threading.local()
        pointers = [ctypes.c_void_p] * (len(arguments) + 1)
        self._call = ctypes.CFUNCTYPE(None, *pointers)(library.address(name))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{a.name}: {a.dtype}{list(a.shape)}" for a in self.arguments)
        return f"<Kernel {self.name}({shapes}), {self.outputs} outputs>"

    def __call__(self, *arrays: Array, out: Array | Sequence[Array] | None = None) -> Any:
        """Run on arrays of the expected shapes and dtypes; the result, or a tuple of several.

        Inputs may have any strides and alignment (what is not contiguous is copied). `out` receives the results
        and must be contiguous, writable, and apart from the inputs; without it, new arrays do. A function without
        outputs works in place and returns None. Raises TargetError for arrays that do not fit.
        """
        split = len(self.arguments) - self.outputs
        if len(arrays) != split:
            raise TargetError(f"{self.name}: takes {split} arrays, got {len(arrays)}")
        check = self._input if self.outputs else self._target
        inputs = [check(a, array) for a, array in zip(self.arguments[:split], arrays, strict=True)]
        results = self._results(out, self.arguments[split:])
        self._apart(inputs, results)
        self._call(*(array.ctypes.data for array in (*inputs, *results)), self._scratch())
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def text(self, level: str) -> str:
        """The program at a level: te, loop, low, llvm or asm, where the kernel came through it."""
        if level not in self._texts:
            raise TargetError(f"{self.name}: no level '{level}' (there are {', '.join(self._texts)})")
        text = self._texts[level]
        return text if isinstance(text, str) else text()

    def time(self, *arrays: Array, calls: int = 9) -> Timing:
        """Time a number of calls after a first one that does not count, results in arrays of its own."""
        if calls < 1:
            raise TargetError(f"{self.name}: cannot time {calls} calls")
        first = self(*arrays)
        out = first if self.outputs else None
        seconds = []
        for _ in range(calls):
            start = time.perf_counter()
            self(*arrays, out=out)
            seconds.append(time.perf_counter() - start)
        return Timing(statistics.median(seconds), min(seconds), max(seconds), calls)

    def _scratch(self) -> int:
        """The address of this thread's workspace, allocated once."""
        if not self._workspace:
            return 0
        if not hasattr(self._local, "memory"):
            self._local.memory = np.empty(self._workspace + SLOT_ALIGNMENT, np.uint8)
        address: int = self._local.memory.ctypes.data
        return -(-address // SLOT_ALIGNMENT) * SLOT_ALIGNMENT

    def _matching(self, expected: Argument, array: Array) -> Array:
        if not isinstance(array, np.ndarray | np.generic):
            kind = type(array).__name__
            raise TargetError(f"{self.name}: argument '{expected.name}' is a {kind}, expected a numpy array")
        if array.shape != expected.shape:
            raise TargetError(
                f"{self.name}: argument '{expected.name}' has shape {array.shape}, expected {expected.shape}"
            )
        if array.dtype != expected.dtype:
            raise TargetError(
                f"{self.name}: argument '{expected.name}' has dtype {array.dtype}, expected {expected.dtype}"
            )
        return np.asarray(array)

    def _input(self, expected: Argument, array: Array) -> Array:
        array = self._matching(expected, array)
        native = array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned
        return array if native else np.array(array, dtype=expected.dtype, order="C")

    def _target(self, expected: Argument, array: Array) -> Array:
        array = self._matching(expected, array)
        for fault, holds in (
            ("not contiguous", not array.flags.c_contiguous),
            ("read-only", not array.flags.writeable),
            ("not aligned to its elements", not array.flags.aligned),
            ("not in the machine's byte order", not array.dtype.isnative),
        ):
            if holds:
                raise TargetError(f"{self.name}: the output '{expected.name}' is {fault}")
        return array

    def _results(self, out: Array | Sequence[Array] | None, expected: Sequence[Argument]) -> list[Array]:
        if out is None:
            return [np.empty(a.shape, a.dtype) for a in expected]
        given: list[Any] = list(out) if isinstance(out, tuple | list) else [out]
        if len(given) != len(expected):
            raise TargetError(f"{self.name}: has {len(expected)} outputs, out= has {len(given)} arrays")
        for array in given:
            if not isinstance(array, np.ndarray):
                raise TargetError(f"{self.name}: out= holds a {type(array).__name__}, expected numpy arrays")
        return [self._target(a, array) for a, array in zip(expected, given, strict=True)]

    def _apart(self, inputs: Sequence[Array], results: Sequence[Array]) -> None:
        """No result overlaps an input or another result: the code relies on it."""
        names = [a.name for a in self.arguments]
        arrays = [*inputs, *results]
        first_written = len(inputs) if self.outputs else 0
        for i in range(first_written, len(arrays)):
            for j in range(i):
                if np.may_share_memory(arrays[i], arrays[j]):
                    raise TargetError(f"{self.name}: the output '{names[i]}' shares memory with '{names[j]}'")


def load(
    module: ModuleOp, machine: Machine, name: str | None = None, texts: Mapping[str, Text] | None = None
) -> Kernel:
    """Compile a low-level module whose buffers are planned, and make its function (or the named one) callable."""
    function = find_function(module, name)
    llvm = emit(module, machine)
    library = compile_llvm(llvm, machine)
    arguments = []
    for position, value in enumerate(function.args):
        name_of = value.name_hint or f"arg{position}"
        if not isinstance(value.type, MemRefType):
            raise TargetError(f"@{function.sym_name.data}: argument '{name_of}' is not a buffer")
        element = suffix(value.type.element_type)
        if element not in DTYPES:
            raise TargetError(f"@{function.sym_name.data}: numpy has no dtype for '{name_of}' ({value.type})")
        arguments.append(Argument(name_of, value.type.get_shape(), np.dtype(DTYPES[element])))
    levels: dict[str, Text] = {**(texts or {}), "llvm": llvm, "asm": library.asm}
    workspace = slot_offsets(function)[-1]
    return Kernel(function.sym_name.data, arguments, outputs(function), workspace, library, levels)
