"""The assignment of booleans to variables with the least sum of costs, exactly, by eliminating variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

MOST = 12
"""The most variables of a cost between variables that are left, beyond which an assignment is not looked for."""


@dataclass(frozen=True)
class Cost:
    """A cost that depends on some variables: by their values, in their order."""

    variables: tuple[int, ...]
    by_values: Mapping[tuple[bool, ...], float]


def cost(variables: Sequence[int], of: Callable[[Mapping[int, bool]], float]) -> Cost:
    """A cost from a function of the values of some variables."""
    every = product((False, True), repeat=len(variables))
    return Cost(tuple(variables), {values: of(dict(zip(variables, values, strict=True))) for values in every})


def least(costs: Sequence[Cost]) -> dict[int, bool] | None:
    """The values of all variables with the least sum of costs; None where too many depend on each other.

    Bucket elimination (Dechter 1999): the variable with the fewest neighbours goes first, and what the others cost it
    at best becomes a cost between these.
    """
    left, decided = list(costs), list[tuple[int, Cost, dict[tuple[bool, ...], bool]]]()
    while variables := {v for c in left for v in c.variables}:
        neighbours = {v: {u for c in left if v in c.variables for u in c.variables} - {v} for v in variables}
        first = min(sorted(variables), key=lambda v: len(neighbours[v]))
        if len(neighbours[first]) > MOST:
            return None
        near = [c for c in left if first in c.variables]
        best: dict[tuple[bool, ...], bool] = {}

        def rest(
            values: Mapping[int, bool], first: int = first, near: Sequence[Cost] = tuple(near)
        ) -> tuple[float, bool]:
            sums = [(_total(near, {**values, first: value}), value) for value in (False, True)]
            return min(sums)

        around = sorted(neighbours[first])
        new = cost(around, lambda values: rest(values)[0])
        best = {key: rest(dict(zip(around, key, strict=True)))[1] for key in new.by_values}
        decided.append((first, new, best))
        left = [c for c in left if first not in c.variables] + [new]
    values: dict[int, bool] = {}
    for variable, around_cost, choice in reversed(decided):
        values[variable] = choice[tuple(values[v] for v in around_cost.variables)]
    return values


def _total(costs: Sequence[Cost], values: Mapping[int, bool]) -> float:
    return sum(c.by_values[tuple(values[v] for v in c.variables)] for c in costs)
