"""Operands placed as in a network: constants in memory, other inputs just written.

A call that is repeated alone finds its weights in the caches. Between two calls in a network, the weights of all other
groups evict them, and the producer of the inputs has just written these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import cycle
from math import ceil, sqrt
from statistics import median

import numpy as np

from compiler.autotune.measure.timing import ArrangedCall, Call
from compiler.dialects.functions import SLOT_ALIGNMENT
from compiler.driver.reference.cases import draw
from compiler.targets.arguments import Argument, Array, new_array
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.presence import sample_undisturbed, time_each_call
from compiler.types.machines import Machine

PASSED = 2
"""The bytes read between two reads of the same copy of a constant, in sizes of the last-level cache."""
MOST_BYTES = 256 << 20
"""The upper limit of the bytes read between two reads of a copy, and of all copies of constants together."""
COPIES = 64
"""The maximum number of copies of constants; if they have too few bytes, other memory is read as well."""
CALLS = 15
"""The number of calls whose median is the time of a whole program."""


class NetworkCall(ArrangedCall):
    """A call of a kernel whose operands are in caches or memory as inside a network. arrays: the inputs and outputs of
    a call. constants, inputs: positions in `arrays`. Each call reads the next of at most `most` copies of the
    constants. If the copies are too small to evict each other, other memory is read before the call. Then the inputs
    are written, unless together they exceed the last-level cache. `refresh` fills the copies."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: Sequence[Array],
        constants: Sequence[int],
        inputs: Sequence[int],
        machine: Machine,
        most: int = COPIES,
    ) -> None:
        size = sum(arrays[n].nbytes for n in constants)
        passing = min(PASSED * machine.l3_bytes, MOST_BYTES)
        copies = _copies(size, passing, most)
        self._originals = [arrays[n] for n in constants]
        self._copies = [[empty_like(array) for array in self._originals] for _ in range(copies)]
        self._calls: Iterator[Call] = cycle(
            [_with(kernel, arrays, constants, constant_copies) for constant_copies in self._copies]
        )
        self._passing = cycle(_slices(passing, passing // most - size))
        written = [arrays[n] for n in inputs]
        fits = sum(array.nbytes for array in written) <= machine.l3_bytes
        self._written = [_words(array) for array in written] if fits else []

    @property
    def nbytes(self) -> int:
        """The bytes of all copies."""
        return sum(array.nbytes for constant_copies in self._copies for array in constant_copies)

    def refresh(self) -> None:
        """Copy the current values of the constants into the copies."""
        for constant_copies in self._copies:
            for copy, original in zip(constant_copies, self._originals, strict=True):
                np.copyto(copy, original)

    def arrange(self) -> Call:
        """Read other memory, write the inputs, and return the call on the next copy of the constants."""
        next(self._passing).sum()
        for words in self._written:
            np.bitwise_or(words, 0, out=words)
        return next(self._calls)


def seconds_of(kernel: Kernel, machine: Machine) -> float:
    """Seconds of a call of a kernel whose constants are built in, on random inputs, with `network` timing: the caches
    of `machine` hold other memory before each call, then the inputs. The median of CALLS calls."""
    _, arrays = random_call(kernel)
    call = NetworkCall(kernel, arrays, (), range(len(arrays) - kernel.outputs), machine, most=1)
    threads = kernel.threads or 1
    call()
    return median(
        sample_undisturbed(lambda _: time_each_call(call.arrange, 1, threads)).sample.present for _ in range(CALLS)
    )


def _copies(size: int, passing: int, most: int = COPIES) -> int:
    """Return the number of copies of constants of `size` bytes such that `passing` bytes are read between two reads of
    a copy; 1 for size 0. 4 MiB of constants and 32 MiB passing: ceil(32 / 4) + 1 = 9 copies, at most `most`, and at
    most MOST_BYTES together."""
    return max(1, min(most, MOST_BYTES // size, ceil(passing / size) + 1)) if size else 1


def _slices(memory: int, size: int) -> list[Array]:
    """Views of `size` bytes each, the last perhaps of fewer, on `memory` bytes; one empty view if `size` is below 8."""
    words = _memory(memory // 8)
    step = max(size, 0) // 8
    return [words[start : start + step] for start in range(0, len(words), step)] if step else [words[:0]]


@cache
def _memory(words: int) -> Array:
    return np.ones(words, np.uint64)


def _with(kernel: Kernel, arrays: Sequence[Array], constants: Sequence[int], copies: Sequence[Array]) -> Call:
    """The native call of a kernel on arrays, in which `copies` replace those at the positions `constants`."""
    operands = list(arrays)
    for position, copy in zip(constants, copies, strict=True):
        operands[position] = copy
    return native_call(kernel, operands)


def native_call(kernel: Kernel, arrays: Sequence[Array]) -> Call:
    """The native call of a kernel on arrays; the last ones are its outputs."""
    inputs = len(arrays) - kernel.outputs
    return kernel.bound(*arrays[:inputs], out=arrays[inputs:])


def random_call(kernel: Kernel) -> tuple[Call, list[Array]]:
    """The native call of a kernel on random inputs of a fixed seed, and its arrays: inputs, then outputs."""
    random, inputs = np.random.default_rng(0), len(kernel.arguments) - kernel.outputs
    arrays = [draw(a, random) for a in kernel.arguments[:inputs]] + [new_array(a) for a in kernel.arguments[inputs:]]
    return native_call(kernel, arrays), arrays


def random_weights(arguments: Sequence[Argument]) -> dict[str, Array]:
    """Random constants by name, of a fixed seed. Floating-point weights with several dimensions are divided by the
    square root of the elements of `array[0]`, which a result of a layer sums, so that the scale of values is the same
    in all layers."""
    random = np.random.default_rng(0)
    arrays = {argument.name: draw(argument, random) for argument in arguments}
    for array in arrays.values():
        if array.ndim > 1 and np.issubdtype(array.dtype, np.floating):
            array /= array.dtype.type(sqrt(array[0].size))
    return arrays


def empty_like(array: Array) -> Array:
    """A new uninitialised array of the shape and dtype of `array`, aligned to SLOT_ALIGNMENT bytes."""
    return new_array(Argument("", array.shape, array.dtype, alignment=SLOT_ALIGNMENT))


def _words(array: Array) -> Array:
    """A flat view of an array as u64, or as u8 if its size is no multiple of 8 bytes."""
    return array.reshape(-1).view(np.uint64 if array.nbytes % 8 == 0 else np.uint8)
