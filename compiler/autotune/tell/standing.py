"""`Standing`: how fast the best is, and others beside it; the one place where times that are shown are computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from compiler.autotune.outcome import ESTIMATED, Outcome


@dataclass(frozen=True)
class Standing:
    """The best of a task, all that was measured of it together, and the program as written, where it was measured.

    compared: the program as written and the best, as they were measured in turns with each other.

    Samples of different moments are compared by their costs, which see how fast the machine was then. So the best alone
    has a measured time, and every other time is that of the best times the ratio of their costs: what is shown as
    slower ranks lower, and a gain is the ratio of the two times beside it.
    """

    best: Outcome
    baseline: Outcome | None = None
    compared: tuple[Outcome, Outcome] | None = None

    @property
    def seconds(self) -> float:
        """The time of the best: the median of its samples."""
        return median(self.best.seconds)

    def seconds_of(self, other: Outcome) -> float:
        """The time of another script of the task, had it been measured beside the best."""
        return self.seconds * other.cost / self.best.cost

    @property
    def gain(self) -> float | None:
        """How many times as fast as the program as written the best is: in turns with each other where they took such,
        else by their costs; None where the program as written was not measured."""
        if self.compared is not None:
            baseline, best = self.compared
            return baseline.cost / best.cost
        return None if self.baseline is None else self.baseline.cost / self.best.cost

    @property
    def is_exact(self) -> bool:
        """Whether the gain is that of turns, or of estimates, which no moment changes."""
        return self.compared is not None or self.best.kind == ESTIMATED

    @property
    def baseline_seconds(self) -> float | None:
        """The time of the program as written, had it been measured beside the best."""
        return None if self.gain is None else self.gain * self.seconds


def best_of(outcomes: Iterable[Outcome]) -> Standing | None:
    """The standing of the best of some outcomes, one a script; None where none was measured."""
    best = min((one for one in outcomes if one.ranks), key=lambda one: one.cost, default=None)
    return None if best is None else Standing(best)
