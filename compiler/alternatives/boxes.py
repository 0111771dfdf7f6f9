"""Boxes of points: origin + sum of t[n] * direction[n], 0 <= t[n] < extent[n]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class BoxSide:
    """A side of a box of points: its number of points (`extent`) and the step from a point to the next
    (`direction`)."""

    extent: int
    direction: Point


@dataclass(frozen=True)
class Box:
    """A box of points. origin: the least point in lexicographic order. sides: the greatest direction first."""

    origin: Point
    sides: tuple[BoxSide, ...]


def box_of(points: Sequence[Point]) -> Box | None:
    """The box that consists of `points`; None if they are no box, such as no points, or a point occurs twice.

    (0, 0), (0, 1), (2, 0), (2, 1) have the origin (0, 0) and the sides 2 along (2, 0) and 2 along (0, 1). The step
    between the two least points is a side if all runs along it have one length. The first points of the runs must be a
    box again.
    """
    remaining = sorted(set(points))
    if len(remaining) < len(points):
        return None
    sides: list[BoxSide] = []
    while len(remaining) > 1:
        step = tuple(b - a for a, b in zip(remaining[0], remaining[1], strict=True))
        present = set(remaining)
        firsts = [point for point in remaining if _moved(point, step, -1) not in present]
        extent = len(remaining) // len(firsts)
        runs = {_moved(first, step, n) for first in firsts for n in range(extent)}
        if runs != present:
            return None
        sides.append(BoxSide(extent, step))
        remaining = firsts
    return Box(remaining[0], tuple(reversed(sides))) if remaining else None


def _moved(point: Point, step: Point, times: int) -> Point:
    return tuple(a + times * b for a, b in zip(point, step, strict=True))
