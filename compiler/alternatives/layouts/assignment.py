"""Minimise a sum of costs, each of a few boolean variables: exact, by variable elimination."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

MOST = 12
"""The most variables of a table made by an elimination; it has 2 ** MOST entries."""
Values = Mapping[int, bool]


@dataclass(frozen=True)
class CostTable:
    """A table of costs: map the values of `variables`, in that order, to a cost."""

    variables: tuple[int, ...]
    by_values: Mapping[tuple[bool, ...], float]

    def at_values(self, values: Values) -> float:
        """The cost at `values`, which may have further variables."""
        return self.by_values[tuple(values[variable] for variable in self.variables)]


def cost(variables: Sequence[int], of: Callable[[Values], float]) -> CostTable:
    """Tabulate the function `of` over all values of some variables."""
    keys = product((False, True), repeat=len(variables))
    return CostTable(tuple(variables), {key: of(dict(zip(variables, key, strict=True))) for key in keys})


def minimum_assignment(costs: Sequence[CostTable]) -> dict[int, bool] | None:
    """The values of all variables with the least sum of costs; None if a table would have more than MOST variables.

    Bucket elimination (Dechter 1999): the variable that shares tables with the fewest others is eliminated first. A
    table of its best cost, by the values of those others, replaces its tables. Then values are fixed in reverse order.
    """
    # Costs of 3 for x0, 1 for x1 and 5 for x0 != x1. Without x0 they are 0 for x1 false and 1 + 3 for x1 true, so x1 is
    # false. Then they are 0 for x0 false and 3 + 5 for x0 true: {1: False, 0: False}.
    remaining, eliminated = list(costs), list[tuple[int, list[CostTable]]]()
    while any(each.variables for each in remaining):
        variable, neighbours = _next(remaining)
        if len(neighbours) > MOST:
            return None
        bucket = [each for each in remaining if variable in each.variables]
        best = cost(neighbours, partial(_at_best, variable, bucket))
        remaining = [*(each for each in remaining if variable not in each.variables), best]
        eliminated.append((variable, bucket))
    values: dict[int, bool] = {}
    for variable, bucket in reversed(eliminated):
        if_false, if_true = _sums(variable, bucket, values)
        values[variable] = if_true < if_false
    return values


def _next(costs: Sequence[CostTable]) -> tuple[int, list[int]]:
    """The variable that shares tables with the fewest others, and those others, sorted."""
    neighbours: dict[int, set[int]] = {}
    for each in costs:
        for variable in each.variables:
            neighbours.setdefault(variable, set()).update(each.variables)
    variable = min(sorted(neighbours), key=lambda v: len(neighbours[v]))
    return variable, sorted(neighbours[variable] - {variable})


def _at_best(variable: int, bucket: Sequence[CostTable], values: Values) -> float:
    """The least sum of the tables in `bucket` over both values of a variable; `values` has all other variables."""
    return min(_sums(variable, bucket, values))


def _sums(variable: int, bucket: Sequence[CostTable], values: Values) -> tuple[float, float]:
    """The sums of the tables in `bucket` for a variable that is false and true; `values` has all other variables."""
    false, true = (sum(each.at_values({**values, variable: value}) for each in bucket) for value in (False, True))
    return false, true
