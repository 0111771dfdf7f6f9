"""`Kernel`: a native function that takes numpy arrays, and says in a sentence what does not fit."""

from __future__ import annotations

import ctypes
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.errors import TargetError
from compiler.lowering.low_to_llvm.signature import SLOT_ALIGNMENT, symbol
from compiler.targets.cpu.arguments import Argument, Array, check_apart, check_input, check_target
from compiler.targets.cpu.compile import Library

Text = str | Callable[[], str]
Out = Array | Sequence[Array] | None


@dataclass(frozen=True)
class Timing:
    """Seconds for one call: median, minimum and maximum over a number of repeats."""

    median: float
    minimum: float
    maximum: float
    repeats: int


@dataclass(frozen=True)
class _Call:
    """What native code is passed, the arrays that this points into, and those of them that are results."""

    passed: tuple[Any, ...]
    arrays: list[Array]
    results: list[Array]


class Kernel:
    """A compiled function of numpy arrays. Python threads may call it at once; it releases the GIL."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[Argument],
        outputs: int,
        workspace: int,
        library: Library,
        texts: Mapping[str, Text] | None = None,
        policy: str = "contract",
    ) -> None:
        self.name = name
        self.arguments = tuple(arguments)
        self.outputs = outputs
        self.policy = policy
        self._inputs = len(self.arguments) - outputs
        self._workspace = workspace
        self._library = library
        self._texts = dict(texts or {})
        self._local = threading.local()
        types = [_ctype(argument) for argument in self.arguments]
        self._native = ctypes.CFUNCTYPE(None, *types, ctypes.c_void_p)(library.address(symbol(name)))

    def __repr__(self) -> str:
        count = f"{self.outputs} output{'' if self.outputs == 1 else 's'}"
        return f"<Kernel {self.name}({', '.join(map(str, self.arguments))}), {count}>"

    def __call__(self, *arrays: Any, out: Out = None) -> Any:
        """Run on arrays of the expected shapes and dtypes; the result, or a tuple of several.

        Inputs may have any strides, alignment and byte order: what native code cannot read is copied. `out`
        (an array or a tuple) receives the results and must be contiguous, writable, and apart from the rest;
        without it they are new arrays. A function without outputs works in place on its arguments, which are
        held to the same, and returns None. Raises TargetError for arrays that do not fit.
        """
        call = self._bind(arrays, out)
        self._native(*call.passed)
        results = call.results
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def text(self, level: str) -> str:
        """The program at a level: te, loop, low, llvm or asm, where the kernel came through it."""
        if level not in self._texts:
            raise TargetError(f"{self.name}: no level '{level}' (there are {', '.join(self._texts)})")
        text = self._texts[level]
        return text if isinstance(text, str) else text()

    def time(self, *arrays: Any, repeats: int = 9, min_seconds: float = 0.0) -> Timing:
        """Time native calls, after a first one that does not count, with results in arrays of their own.

        Each repeat makes as many calls as it takes to last `min_seconds`, at least one; figures are per call.
        """
        if repeats < 1:
            raise TargetError(f"{self.name}: cannot time {repeats} repeats")
        call = self._bind(arrays, None)
        warm = self._seconds(call, 1)
        calls = max(1, int(np.ceil(min_seconds / max(warm, 1e-7))))
        seconds = [self._seconds(call, calls) for _ in range(repeats)]
        return Timing(statistics.median(seconds), min(seconds), max(seconds), repeats)

    def _seconds(self, call: _Call, calls: int) -> float:
        native, passed = self._native, call.passed
        start = time.perf_counter()
        for _ in range(calls):
            native(*passed)
        return (time.perf_counter() - start) / calls

    def _bind(self, arrays: Sequence[Any], out: Out) -> _Call:
        if len(arrays) != self._inputs:
            raise TargetError(f"{self.name}: takes {_arrays(self._inputs)}, got {len(arrays)}")
        check = check_input if self.outputs else _check_in_place
        pairs = zip(self.arguments, arrays, strict=False)
        inputs = [check(self.name, expected, array) for expected, array in pairs]
        results = self._results(out)
        if out is not None or not self.outputs:
            written = [not self.outputs] * self._inputs + [True] * self.outputs
            check_apart(self.name, self.arguments, [*arrays, *results], written)
        every = [*inputs, *results]
        passed = [_passed(a, array) for a, array in zip(self.arguments, every, strict=True)]
        return _Call((*passed, self._scratch()), every, results)

    def _results(self, out: Out) -> list[Array]:
        expected = self.arguments[self._inputs :]
        if out is None:
            return [np.empty(argument.shape, argument.dtype) for argument in expected]
        given = list(out) if isinstance(out, tuple | list) else [out]
        if len(given) != len(expected):
            raise TargetError(f"{self.name}: has {len(expected)} outputs, out= has {len(given)} arrays")
        for array in given:
            if not isinstance(array, np.ndarray):
                raise TargetError(f"{self.name}: out= holds a {type(array).__name__}, expected numpy arrays")
        return [check_target(self.name, a, array) for a, array in zip(expected, given, strict=True)]

    def _scratch(self) -> int:
        """The address of this thread's workspace, allocated once."""
        if not self._workspace:
            return 0
        if not hasattr(self._local, "memory"):
            self._local.memory = np.empty(self._workspace + SLOT_ALIGNMENT, np.uint8)
        address: int = self._local.memory.ctypes.data
        return -(-address // SLOT_ALIGNMENT) * SLOT_ALIGNMENT


def _arrays(count: int) -> str:
    return f"{count} array{'' if count == 1 else 's'}"


def _check_in_place(kernel: str, expected: Argument, given: object) -> Array:
    check = check_input if expected.by_value else check_target
    return check(kernel, expected, given)


def _ctype(argument: Argument) -> Any:
    return np.ctypeslib.as_ctypes_type(argument.dtype) if argument.by_value else ctypes.c_void_p


def _passed(argument: Argument, array: Array) -> Any:
    return array.item() if argument.by_value else array.ctypes.data
