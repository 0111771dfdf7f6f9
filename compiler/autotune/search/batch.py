"""Which candidates of a pool are proposed together: good ones, but not the same one eight times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from compiler.space.candidates import Candidate, Pool, distance

LOOKED = 64
"""How many candidates, for each wanted, are looked at for one that is unlike those already picked."""
CHOSEN_FROM = 64
"""How many candidates of a sketch, the first ones, a spread is chosen from."""
UNLIKE = 2
"""The number of choices in which candidates of a batch differ, where there are such."""


def best_first(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The positions of a pool, the highest score first; the sort is stable, so that ties repeat on any machine."""
    return np.argsort(-scores, kind="stable")


def pick(pool: Pool, order: Iterable[int], count: int, beside: Sequence[Candidate] = ()) -> list[int]:
    """`count` positions of a pool in an order of preference, each unlike those `beside` and those picked before.

    Where too few are unlike, the most preferred of the others make up the number.
    """
    ranked = list(order)
    picked: list[int] = []
    near = list(beside)
    for position in ranked[: LOOKED * count]:
        if len(picked) == count:
            break
        if _unlike(pool.candidates[position], near):
            picked.append(position)
            near.append(pool.candidates[position])
    taken = {*picked}
    later = (p for p in ranked if p not in taken and pool.candidates[p] not in near)
    return picked + [position for position, _ in zip(later, range(count - len(picked)), strict=False)]


def spread_out(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """`count` of some candidates in turns over their sketches, each as unlike those before it as can be.

    Unlike means the most choices in which it differs from the nearest; of equals the first.
    """
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
    """The position of the candidate that is least like those chosen."""

    def away(candidate: Candidate) -> int:
        apart = [distance(candidate, other_candidate) for other_candidate in chosen]
        return min((d for d in apart if d is not None), default=0)

    return max(range(len(rows)), key=lambda i: away(rows[i]))


def _unlike(candidate: Candidate, neighbours: Sequence[Candidate]) -> bool:
    apart = (distance(candidate, neighbour) for neighbour in neighbours)
    return all(d is None or d >= UNLIKE for d in apart)
