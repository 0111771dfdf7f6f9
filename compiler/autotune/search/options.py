"""`Options`: what can be set of a search."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from compiler.errors import InputError


@dataclass(frozen=True)
class Options:
    """What can be set of a search.

    `start`: trials of the first round, the space's defaults included. `random`: the share of later proposals that are
    drawn at random. `greedy`: the share of the model's picks that go by the mean alone, the others by the improvement
    to expect. `pool`: candidates drawn for each round; a space of no more than that is enumerated. `mutants`:
    candidates made from good ones for each round and generation. `parents`: how many good ones. `generations`: how
    often; the first from what was measured best, each further one from the best scored so far. `repeats`: measurements
    that a leader has before it is trusted. `trials`: the budget, where there is one, of which the last `descent`
    share goes to the neighbours of the best.
    """

    start: int = 16
    random: float = 0.1
    greedy: float = 0.5
    pool: int = 4096
    mutants: int = 1024
    parents: int = 16
    generations: int = 2
    repeats: int = 3
    trials: int | None = None
    descent: float = 0.25

    def __post_init__(self) -> None:
        for name in ("random", "greedy", "descent"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"the search option {name} is a share between 0 and 1, not {getattr(self, name)}")
        for name in ("start", "pool", "parents", "repeats"):
            if getattr(self, name) < 1:
                raise InputError(f"the search option {name} is at least 1, not {getattr(self, name)}")
        for name in ("mutants", "generations", "trials"):
            if (getattr(self, name) or 0) < 0:
                raise InputError(f"the search option {name} is at least 0, not {getattr(self, name)}")

    @property
    def final(self) -> int | None:
        """The number of trials after which the final descent begins, or None without a budget."""
        return None if self.trials is None else self.trials - round(self.trials * self.descent)

    def as_data(self) -> dict[str, Any]:
        """Itself as JSON data."""
        return {f.name: getattr(self, f.name) for f in fields(self)}
