"""`Budget`: the trials and seconds of a run, spent by one task or shared by several."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

from compiler.autotune.options import TuningOptions

RESERVE = 0.12
"""The share of the seconds reserved for measuring the leaders again, half-way and at the end together."""
HALF = 0.5
"""The spent share of the budget at which the leaders are first measured again."""
DESCENT = 0.7
"""The spent share of the budget from which on the neighbours of the best are proposed first."""
UNLIMITED = (20.0, 0.2)
"""The seconds of the leaders' turns in a run without a time limit: 20 s, or 0.2 of the search's seconds if more."""


@dataclass
class Budget:
    """The remaining budget of a run.

    Trials include those of earlier runs in the database, as set by `record_trials`. Seconds count from `options.began`,
    else from the construction. in_flight: the trials that workers have and have not finished. turn_seconds: the seconds
    that the leaders' turns took.
    """

    options: TuningOptions
    began: float = field(default_factory=lambda: perf_counter())
    in_flight: int = 0
    turn_seconds: float = 0.0
    _trials: dict[str, int] = field(default_factory=dict)
    _measured: int = 0
    _measuring: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.began if self.options.began is None else self.options.began

    @property
    def seconds(self) -> float:
        """The seconds since `began`."""
        return perf_counter() - self.began

    @property
    def is_over(self) -> bool:
        """Whether all seconds are spent, those for the leaders' turns included; False without a limit."""
        return self.options.seconds is not None and self.seconds >= self.options.seconds

    @property
    def trials(self) -> int:
        """The number of trials of all tasks, earlier runs included."""
        return sum(self._trials.values())

    def record_trials(self, task: str, trials: int) -> None:
        """Set the number of trials of the task with the name `task`, earlier runs included."""
        self._trials[task] = trials

    @property
    def has_search_time(self) -> bool:
        """Whether seconds for trials are left, those reserved for the leaders' turns excluded; True without a limit."""
        limit = self.options.seconds
        return limit is None or self.seconds < limit * (1 - RESERVE)

    @property
    def spent_share(self) -> float:
        """The spent share of the trials or of the seconds, whichever is larger; a missing limit counts as 0."""
        of_trials = 0.0 if self.options.trials is None else self.trials / self.options.trials
        of_seconds = 0.0 if self.options.seconds is None else self.seconds / self.options.seconds
        return max(of_trials, of_seconds)

    @property
    def next_batch_size(self) -> int:
        """The number of trials to begin now: a batch, fewer if the budget ends sooner, 0 when it is spent. Trials in
        flight count as spent."""
        if not self.has_search_time:
            return 0
        trials = self.trials + self.in_flight
        remaining_trials = self.options.batch if self.options.trials is None else self.options.trials - trials
        return max(0, min(self.options.batch, remaining_trials, self._in_time()))

    def _in_time(self) -> int:
        """The number of trials that fit into the remaining seconds at the mean time of a trial so far, at least one; a
        batch without a limit of seconds or before the first trial.
        100 s, of which 88 are for trials; 20 trials took 40 s; after 80 s: int((88 - 80) * 20 / 40) = 4."""
        if self.options.seconds is None or not self._measured:
            return self.options.batch
        remaining_seconds = self.options.seconds * (1 - RESERVE) - self.seconds
        return max(1, int(remaining_seconds * self._measured / self._measuring))

    def add_trials(self, count: int, seconds: float) -> None:
        """Count `count` trials, which took `seconds` together, in the mean time of a trial."""
        self._measured += count
        self._measuring += seconds

    @property
    def halfway_turn_seconds(self) -> float:
        """The seconds that the leaders' turns may take half-way: a third of those reserved for all turns."""
        return (self._unlimited if self.options.seconds is None else self.options.seconds * RESERVE) / 3

    def final_turn_seconds(self, share: float = 1.0) -> float:
        """The seconds that the leaders' turns may take at the end: `share` of the remaining ones of the run; without a
        limit, of those reserved for turns and not used half-way. Negative if more than these were used."""
        remaining = (
            self._unlimited - self.turn_seconds if self.options.seconds is None else self.options.seconds - self.seconds
        )
        return share * remaining

    @property
    def _unlimited(self) -> float:
        """The seconds of all the leaders' turns in a run without a limit of seconds, by UNLIMITED. The seconds of the
        search are those since `began`, turns excluded."""
        return max(UNLIMITED[0], UNLIMITED[1] * (self.seconds - self.turn_seconds))
