"""Booleans with the least sum of costs that depend on a few of them each: exact, by eliminating variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

MOST = 12
"""The most variables that one cost may depend on while others are eliminated: tables have as many as 2 to this."""
Values = Mapping[int, bool]


@dataclass(frozen=True)
class Cost:
    """A cost by the values of some variables, in their order."""

    variables: tuple[int, ...]
    by_values: Mapping[tuple[bool, ...], float]

    def of(self, values: Values) -> float:
        """The cost by the values of all variables."""
        return self.by_values[tuple(values[variable] for variable in self.variables)]


def cost(variables: Sequence[int], of: Callable[[Values], float]) -> Cost:
    """A cost from a function of the values of some variables."""
    keys = product((False, True), repeat=len(variables))
    return Cost(tuple(variables), {key: of(dict(zip(variables, key, strict=True))) for key in keys})


def least(costs: Sequence[Cost]) -> dict[int, bool] | None:
    """Values of all variables with the least sum of costs; None where a table would depend on more than MOST.

    Bucket elimination (Dechter 1999): the variable with the fewest neighbours goes first; what it costs at best, by the
    values of these, takes the place of the costs that depend on it. Its value follows from theirs, last to first.
    """
    left, eliminated = list(costs), list[tuple[int, list[Cost]]]()
    while any(each.variables for each in left):
        variable, around = _next(left)
        if len(around) > MOST:
            return None
        bucket = [each for each in left if variable in each.variables]
        best = cost(around, partial(_at_best, variable, bucket))
        left = [*(each for each in left if variable not in each.variables), best]
        eliminated.append((variable, bucket))
    values: dict[int, bool] = {}
    for variable, bucket in reversed(eliminated):
        plain, last = _sums(variable, bucket, values)
        values[variable] = last < plain
    return values


def _next(costs: Sequence[Cost]) -> tuple[int, list[int]]:
    """The variable that shares costs with the fewest others, and those others in order."""
    neighbours: dict[int, set[int]] = {}
    for each in costs:
        for variable in each.variables:
            neighbours.setdefault(variable, set()).update(each.variables)
    variable = min(sorted(neighbours), key=lambda v: len(neighbours[v]))
    return variable, sorted(neighbours[variable] - {variable})


def _at_best(variable: int, bucket: Sequence[Cost], values: Values) -> float:
    """The least sum of some costs over both values of a variable."""
    return min(_sums(variable, bucket, values))


def _sums(variable: int, bucket: Sequence[Cost], values: Values) -> tuple[float, float]:
    """The sum of some costs where a variable is false, and where it is true."""
    false, true = (sum(each.of({**values, variable: value}) for each in bucket) for value in (False, True))
    return false, true
