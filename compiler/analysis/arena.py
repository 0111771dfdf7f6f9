"""Offsets of temporaries in one block of memory: temporaries that live at the same time do not overlap.

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
    """The offset in bytes of each temporary, in their order, and the size of the whole."""

    offsets: tuple[int, ...]
    size: int


def plan(lifetimes: Sequence[Lifetime], alignment: int) -> Arena:
    """Offsets that are multiples of an alignment; temporaries that share a step do not overlap.

    Takes time linear in the steps that temporaries live through, times how many live at a step.
    """
    offsets = [0] * len(lifetimes)
    alive: dict[int, list[int]] = {}
    order = sorted(range(len(lifetimes)), key=lambda n: (-lifetimes[n].size, lifetimes[n].first, n))
    size = 0
    for number in order:
        lifetime = lifetimes[number]
        steps = range(lifetime.first, lifetime.last + 1)
        neighbours = {neighbour for step in steps for neighbour in alive.get(step, ())}
        taken = sorted((offsets[neighbour], _rounded(lifetimes[neighbour].size, alignment)) for neighbour in neighbours)
        length = _rounded(lifetime.size, alignment)
        offsets[number] = _best_fit(taken, length)
        size = max(size, offsets[number] + length)
        for step in steps:
            alive.setdefault(step, []).append(number)
    return Arena(tuple(offsets), size)


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _best_fit(taken: Sequence[tuple[int, int]], length: int) -> int:
    """The start of the smallest gap among stretches, sorted by their offsets, that is long enough; else their end."""
    end = 0
    best: tuple[int, int] | None = None
    for offset, size in taken:
        gap = offset - end
        if gap >= length and (best is None or gap < best[0]):
            best = (gap, end)
        end = max(end, offset + size)
    return end if best is None else best[1]
