"""Boxes of points: origin + sum of t[n] * direction[n], 0 <= t[n] < extent[n]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Side:
    """A side of a box: its number of points and the step from one to the next."""

    extent: int
    direction: Point


@dataclass(frozen=True)
class Box:
    """The least point in lexicographic order, and the sides, the last of which has the least direction."""

    origin: Point
    sides: tuple[Side, ...]


def box_of(points: Sequence[Point]) -> Box | None:
    """The box that some points are, each once; None where they are none.

    Of (0, 0), (0, 1), (2, 0), (2, 1): (0, 0), and the sides 2 along (2, 0) and 2 along (0, 1). The least step between
    two points is a side, whose runs all have one length, and the first points of the runs are a box again.
    """
    left = sorted(set(points))
    if len(left) < len(points):
        return None
    sides: list[Side] = []
    while len(left) > 1:
        step = tuple(b - a for a, b in zip(left[0], left[1], strict=True))
        present = set(left)
        firsts = [point for point in left if _moved(point, step, -1) not in present]
        extent = len(left) // len(firsts)
        runs = {_moved(first, step, n) for first in firsts for n in range(extent)}
        if runs != present:
            return None
        sides.append(Side(extent, step))
        left = firsts
    return Box(left[0], tuple(reversed(sides))) if left else None


def _moved(point: Point, step: Point, times: int) -> Point:
    return tuple(a + times * b for a, b in zip(point, step, strict=True))
