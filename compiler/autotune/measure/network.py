"""Operands where a network has them: constants in memory, other inputs just written.

A repeated call finds its weights in the caches. In a network the weights of all other groups have passed through the
caches since, and the producer of its inputs has just written them.
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
from compiler.targets.arguments import Argument, Array, room
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.presence import timed_each, undisturbed
from compiler.types.machines import Machine

PASSED = 2
"""What passes through the caches before a constant is read again, in sizes of the last-level cache."""
MOST_BYTES = 256 << 20
"""The most that this may be, and that copies of constants may take."""
COPIES = 64
"""The most copies of constants; of small ones other memory passes as well."""
CALLS = 15
"""Of how many calls a whole program's time is the median."""


class NetworkCall(ArrangedCall):
    """A kernel on arrays, among them constants, and inputs that a producer has just written.

    Each call reads the next of several copies of the constants, at most `most`. Where these are less than what should
    pass through the caches meanwhile, other memory is read before the call. Then the inputs are written, unless they
    are larger than the last-level cache together: nobody finds those there. The copies are made by `refresh`.
    """

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
        self._copies = [[like(array) for array in self._originals] for _ in range(copies)]
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
        """Give the copies the values of the constants of now."""
        for constant_copies in self._copies:
            for copy, original in zip(constant_copies, self._originals, strict=True):
                np.copyto(copy, original)

    def arrange(self) -> Call:
        """See `ArrangedCall`."""
        next(self._passing).sum()
        for words in self._written:
            np.bitwise_or(words, 0, out=words)
        return next(self._calls)


def seconds_of(kernel: Kernel, machine: Machine) -> float:
    """Seconds of a call of a kernel whose constants are its own, on random inputs: all of the caches is other memory
    when it begins, but for the inputs. The median of CALLS."""
    _, arrays = on_random(kernel)
    call = NetworkCall(kernel, arrays, (), range(len(arrays) - kernel.outputs), machine, most=1)
    threads = kernel.threads or 1
    call()
    return median(undisturbed(lambda _: timed_each(call.arrange, 1, threads)).taken.present for _ in range(CALLS))


def _copies(size: int, passing: int, most: int = COPIES) -> int:
    """The number of copies of some bytes of constants: enough bytes to pass through the caches, and the copy that is
    read."""
    return max(1, min(most, MOST_BYTES // size, ceil(passing / size) + 1)) if size else 1


def _slices(memory: int, size: int) -> list[Array]:
    """Slices of some bytes that together cover memory of other bytes; one empty slice for no bytes."""
    words = _memory(memory // 8)
    step = max(size, 0) // 8
    return [words[start : start + step] for start in range(0, len(words), step)] if step else [words[:0]]


@cache
def _memory(words: int) -> Array:
    return np.ones(words, np.uint64)


def _with(kernel: Kernel, arrays: Sequence[Array], constants: Sequence[int], copies: Sequence[Array]) -> Call:
    """The native call on arrays, copies in the place of the constants."""
    given = list(arrays)
    for position, copy in zip(constants, copies, strict=True):
        given[position] = copy
    return on(kernel, given)


def on(kernel: Kernel, arrays: Sequence[Array]) -> Call:
    """The native call of a kernel on arrays; the last ones are its outputs."""
    inputs = len(arrays) - kernel.outputs
    return kernel.bound(*arrays[:inputs], out=arrays[inputs:])


def on_random(kernel: Kernel) -> tuple[Call, list[Array]]:
    """The native call of a kernel on random inputs, always the same, and its arrays."""
    random, inputs = np.random.default_rng(0), len(kernel.arguments) - kernel.outputs
    arrays = [draw(a, random) for a in kernel.arguments[:inputs]] + [room(a) for a in kernel.arguments[inputs:]]
    return on(kernel, arrays), arrays


def random_weights(arguments: Sequence[Argument]) -> dict[str, Array]:
    """Random constants by their names, always the same. Weights of more than one dimension are smaller, the more
    elements a result sums, so that values stay of one size from layer to layer."""
    random = np.random.default_rng(0)
    arrays = {argument.name: draw(argument, random) for argument in arguments}
    for array in arrays.values():
        if array.ndim > 1 and np.issubdtype(array.dtype, np.floating):
            array /= array.dtype.type(sqrt(array[0].size))
    return arrays


def like(array: Array) -> Array:
    """A new array of the shape and dtype of another, aligned as arguments may be."""
    return room(Argument("", array.shape, array.dtype, alignment=SLOT_ALIGNMENT))


def _words(array: Array) -> Array:
    """The bytes of an array as the largest integers that they are."""
    return array.reshape(-1).view(np.uint64 if array.nbytes % 8 == 0 else np.uint8)
