"""`Options`: the parameters of a search."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.support.validation import integer, share

LEAST = {"start": 1, "pool": 1, "parents": 1, "repeats": 1, "mutants": 0, "generations": 0}
"""The options that count, and the least of each."""
MOST = 1_000_000
"""The most that each may be."""


@dataclass(frozen=True)
class Options:
    """The parameters of a search.

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
            self._set(name, share(f"the search option {name}", getattr(self, name)))
        for name, minimum in LEAST.items():
            self._set(name, integer(f"the search option {name}", getattr(self, name), minimum, MOST))
        if self.trials is not None:
            self._set("trials", integer("the search option trials", self.trials, 0))

    def _set(self, name: str, value: float) -> None:
        """Keep a value in its plain type, as a log has it."""
        object.__setattr__(self, name, value)

    @property
    def final(self) -> int | None:
        """The number of trials after which the final descent begins, or None without a budget."""
        return None if self.trials is None else self.trials - round(self.trials * self.descent)
