"""`Options`: the parameters of a search."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.support.validation import integer, share

LEAST = {"start": 1, "pool": 1, "parents": 1, "repeats": 1, "mutants": 0, "generations": 0}
"""The integer options with their lower limits."""
MOST = 1_000_000
"""The upper limit of each option in LEAST."""


@dataclass(frozen=True)
class Options:
    """The parameters of a search.

    start: trials of the first round, the space's defaults included; if there are more sketches, one for each, up to
    twice `start`. random: the share of later proposals drawn at random. greedy: the share of the model's picks by
    predicted mean; the others are by expected improvement. pool: candidates drawn for each round; a space of at most
    that many is enumerated. mutants: candidates mutated from `parents` good ones, for each round and generation.
    generations: the first mutates the best measured candidates, each further one the best scored so far. repeats: the
    number of measurements after which a leader is not measured again. trials: the budget, if there is one; its last
    `descent` share goes to the neighbours of the best. Raises InputError for a value out of range.
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
        """Replace a field of the frozen dataclass by its checked value, a plain number that JSON can hold."""
        object.__setattr__(self, name, value)

    @property
    def final(self) -> int | None:
        """The number of trials after which the final descent begins; None without a limit of trials."""
        return None if self.trials is None else self.trials - round(self.trials * self.descent)
