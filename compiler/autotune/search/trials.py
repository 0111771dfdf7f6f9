"""`Trials`: the outcomes of each candidate, combined."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from compiler.database.outcome import Outcome, combine

Name = TypeVar("Name", bound=Hashable)
"""The identity of a candidate: a Candidate of a space, or a script."""


@dataclass
class Trials(Generic[Name]):
    """The tried candidates, each with all its outcomes, and the ranking of the measured ones. Ties rank by the order of
    the first trials. `changed` is the number of outcomes: a model fitted at a smaller number is stale."""

    changed: int = 0
    _outcomes: dict[Name, list[Outcome]] = field(default_factory=dict)
    _combined: dict[Name, Outcome] = field(default_factory=dict)
    _number: dict[Name, int] = field(default_factory=dict)
    _ranked: list[tuple[float, int, Name]] = field(default_factory=list)

    def __contains__(self, candidate: object) -> bool:
        return candidate in self._combined

    def __len__(self) -> int:
        return len(self._combined)

    def add(self, candidate: Name, outcome: Outcome) -> Outcome:
        """Record an outcome, and return the combination of all outcomes of the candidate."""
        number = self._number.setdefault(candidate, len(self._number))
        before = self._combined.get(candidate)
        self._outcomes.setdefault(candidate, []).append(outcome)
        after = self._combined[candidate] = combine(self._outcomes[candidate])
        if before is not None and before.is_comparable:
            del self._ranked[bisect_left(self._ranked, (before.cost, number, candidate))]
        if after.is_comparable:
            insort(self._ranked, (after.cost, number, candidate))
        self.changed += 1
        return after

    def outcome(self, candidate: Name) -> Outcome:
        """The combined outcome of a tried candidate. Raises KeyError for another."""
        return self._combined[candidate]

    def ranks(self, candidate: Name) -> bool:
        """Whether a tried candidate was measured, with a cost that can be compared. Raises KeyError for another."""
        return self._combined[candidate].is_comparable

    def times(self, candidate: Name) -> int:
        """The number of outcomes of a candidate; 0 if it was not tried."""
        return len(self._outcomes.get(candidate, ()))

    def best(self, count: int) -> list[Name]:
        """The `count` measured candidates of the lowest cost, best first."""
        return [candidate for _, _, candidate in self._ranked[:count]]

    def tried(self) -> list[Name]:
        """All candidates with an outcome, in the order of their first outcomes."""
        return list(self._combined)
