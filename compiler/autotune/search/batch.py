"""Pick the candidates of a batch from a pool: good ones that differ from each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from compiler.space.candidates import Candidate, Pool, distance

LOOKED = 64
"""The number of candidates examined, in order of preference, for each one picked."""
CHOSEN_FROM = 64
"""`spread_out` chooses among this many first candidates of each sketch, or `count` if that is more."""
UNLIKE = 2
"""The minimum number of choices in which the candidates of a batch should differ from each other."""


def best_first(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The positions of a pool, the highest score first; a stable sort, so that ties have one order on any machine."""
    return np.argsort(-scores, kind="stable")


def pick(pool: Pool, order: Iterable[int], count: int, beside: Sequence[Candidate] = ()) -> list[int]:
    """Pick at most `count` positions of a pool, in the order of preference `order`: of the first LOOKED * `count`,
    those that are dissimilar to `beside` and to earlier picks. If these are too few, further positions follow in this
    order, similar ones too, but none of `beside` or equal to a pick."""
    ranked = list(order)
    picked: list[int] = []
    near = list(beside)
    for position in ranked[: LOOKED * count]:
        if len(picked) == count:
            break
        if _unlike(pool.candidates[position], near):
            picked.append(position)
            near.append(pool.candidates[position])
    picked_set = {*picked}
    later = (p for p in ranked if p not in picked_set and pool.candidates[p] not in near)
    return picked + [position for position, _ in zip(later, range(count - len(picked)), strict=False)]


def spread_out(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """Choose at most `count` candidates, round robin over their sketches, each farthest from those chosen before. The
    distance is the number of choices in which a candidate differs from the nearest chosen one; a candidate of a sketch
    without a chosen one has the distance 0; ties take the first. Of a sketch only the first max(CHOSEN_FROM, `count`)
    candidates are considered."""
    by_sketch: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        by_sketch.setdefault(candidate[0], []).append(candidate)
    by_sketch = {sketch: rows[: max(CHOSEN_FROM, count)] for sketch, rows in by_sketch.items()}
    chosen: list[Candidate] = []
    while len(chosen) < count and any(by_sketch.values()):
        for rows in by_sketch.values():
            if rows and len(chosen) < count:
                chosen.append(rows.pop(_farthest(rows, chosen)))
    return chosen


def _farthest(rows: Sequence[Candidate], chosen: Sequence[Candidate]) -> int:
    """The position of the row with the largest distance to the nearest chosen candidate of its sketch, the first of
    equals; without a chosen one the distance is 0."""

    def away(candidate: Candidate) -> int:
        distances = [distance(candidate, other_candidate) for other_candidate in chosen]
        return min((d for d in distances if d is not None), default=0)

    return max(range(len(rows)), key=lambda i: away(rows[i]))


def _unlike(candidate: Candidate, neighbours: Sequence[Candidate]) -> bool:
    distances = (distance(candidate, neighbour) for neighbour in neighbours)
    return all(d is None or d >= UNLIKE for d in distances)
