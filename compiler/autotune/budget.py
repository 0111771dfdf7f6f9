"""`Budget`: how much of a tuning run's trials and seconds is spent, and what that leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

from compiler.autotune.options import TuningOptions

RESERVE = 0.12
"""The share of the seconds that is kept for the leaders' turns, at the end and half-way together."""
HALF = 0.5
"""The share after which the leaders take turns for the first time."""
DESCENT = 0.7
"""The share after which the neighbours of the best come first."""
UNLIMITED = (20.0, 0.2)
"""Without a limit leaders take turns for so many seconds, or such a share of what the search took if that is more."""


@dataclass
class Budget:
    """What a run may still do. Trials are those in the database for the task; seconds pass from when this is made."""

    options: TuningOptions
    began: float = field(default_factory=lambda: perf_counter())
    _measured: int = 0
    _measuring: float = 0.0
    _turns: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds that have passed."""
        return perf_counter() - self.began

    @property
    def searching(self) -> bool:
        """Whether there is time for trials."""
        limit = self.options.seconds
        return limit is None or self.seconds < limit * (1 - RESERVE)

    def spent(self, trials: int) -> float:
        """The share that is spent: of the trials or of the seconds, whichever is more."""
        of_trials = 0.0 if self.options.trials is None else trials / self.options.trials
        of_seconds = 0.0 if self.options.seconds is None else self.seconds / self.options.seconds
        return max(of_trials, of_seconds)

    def wanted(self, trials: int) -> int:
        """How many trials to begin now: a batch, less where the budget ends sooner; none when it has ended."""
        if not self.searching:
            return 0
        left = self.options.batch if self.options.trials is None else self.options.trials - trials
        return max(0, min(self.options.batch, left, self._in_time()))

    def _in_time(self) -> int:
        """For how many trials there is time, by what those so far have taken; one always is begun."""
        if self.options.seconds is None or not self._measured:
            return self.options.batch
        left = self.options.seconds * (1 - RESERVE) - self.seconds
        return max(1, int(left * self._measured / self._measuring))

    def measured(self, count: int, seconds: float) -> None:
        """Some trials took so many seconds together."""
        self._measured += count
        self._measuring += seconds

    def turned(self, seconds: float) -> None:
        """The leaders' turns took so many seconds."""
        self._turns += seconds

    def turns(self, last: bool) -> float:
        """The seconds that the leaders' turns may take now; half-way a third of what is kept for them."""
        limit = self.options.seconds
        if limit is not None:
            return limit - self.seconds if last else limit * RESERVE / 3
        kept = max(UNLIMITED[0], UNLIMITED[1] * (self.seconds - self._turns))
        return kept - self._turns if last else kept / 3
