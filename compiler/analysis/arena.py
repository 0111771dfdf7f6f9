"""Offsets of temporaries in one arena: temporaries that live at the same time do not overlap.

Greedy by size, each at the best fit among those placed before: Pisarchyk and Lee, Efficient Memory Management for Deep
Neural Net Inference (2020), as in TensorFlow Lite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lifetime:
    """A temporary: its size in bytes, and the first and the last step that use it."""

    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """The byte offset of each temporary, in the order of the lifetimes, and the size of the arena in bytes."""

    offsets: tuple[int, ...]
    size: int


def plan(lifetimes: Sequence[Lifetime], alignment: int) -> Arena:
    """Assign offsets, multiples of `alignment` bytes, so that temporaries that live at a common step do not overlap.

    Time: the sum of all lifetimes in steps, times the number of temporaries that live at a step.
    """
    offsets = [0] * len(lifetimes)
    alive: dict[int, list[int]] = {}
    order = sorted(range(len(lifetimes)), key=lambda n: (-lifetimes[n].size, lifetimes[n].first, n))
    size = 0
    for number in order:
        lifetime = lifetimes[number]
        steps = range(lifetime.first, lifetime.last + 1)
        neighbours = {neighbour for step in steps for neighbour in alive.get(step, ())}
        occupied = sorted((offsets[n], _rounded(lifetimes[n].size, alignment)) for n in neighbours)
        length = _rounded(lifetime.size, alignment)
        offsets[number] = _best_fit(occupied, length)
        size = max(size, offsets[number] + length)
        for step in steps:
            alive.setdefault(step, []).append(number)
    return Arena(tuple(offsets), size)


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _best_fit(occupied: Sequence[tuple[int, int]], length: int) -> int:
    """Return the start of the smallest gap of at least `length` between (offset, size) pairs in the order of offsets;
    without such a gap, the greatest end."""
    end = 0
    best_gap: tuple[int, int] | None = None
    for offset, size in occupied:
        gap = offset - end
        if gap >= length and (best_gap is None or gap < best_gap[0]):
            best_gap = (gap, end)
        end = max(end, offset + size)
    return end if best_gap is None else best_gap[1]
