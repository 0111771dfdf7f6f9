"""`TaskState`: the state of a task for the allocation of batches; `Turn`: one batch and its gain, a line of the log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import log

USUAL = 0.02
"""The initial `habit`: the decrease of a task's log time by a turn, before any turn."""
DECAY = 0.8
"""The weight of a turn in the mean `habit`, relative to that of the next turn."""


@dataclass(frozen=True)
class Turn:
    """One batch of a task.

    weight: the number of calls in a run of the program. promise: the expected decrease of the log time; None without a
    prediction. before, after: seconds of a call of the best; None while nothing was measured. count: the trials. took:
    their seconds together.
    """

    task: str
    weight: int
    promise: float | None
    before: float | None
    after: float | None
    count: int
    took: float

    @property
    def gained(self) -> float:
        """The decrease of the log time of a call; 0 if it rose or is unknown."""
        return 0.0 if self.before is None or self.after is None else max(0.0, log(self.before / self.after))

    def line(self) -> str:
        """The turn as a line of JSON."""
        return json.dumps(asdict(self))


@dataclass
class TaskState:
    """The state of a task between its turns.

    weight: the number of calls in a run of the program. seconds: of a call of the best; None while nothing was
    measured. promise: the expected decrease of the log time by the next batch. promised, gained: the sums of expected
    and of actual decreases of the log time over earlier turns that began with a measurement and a promise. count, took,
    turns: the trials so far, their seconds, and the turns. habit: the usual decrease of the log time by a turn: USUAL
    at first, then a mean in which each turn that began with a measurement counts DECAY times as much as the next.
    estimate: the cost of a perfect implementation of all calls, in any unit; it ranks tasks without a measurement.
    """

    weight: int
    estimate: float = 0.0
    seconds: float | None = None
    promise: float | None = None
    promised: float = 0.0
    gained: float = 0.0
    count: int = 0
    took: float = 0.0
    turns: int = 0
    habit: float = USUAL

    @property
    def total_seconds(self) -> float:
        """The seconds of all calls of a run; 0 while nothing was measured."""
        return 0.0 if self.seconds is None else self.weight * self.seconds

    def add(self, turn: Turn) -> None:
        """Add a finished turn to the sums and means. The gain of a turn that began without a measurement does not
        count, in the sums also of one without a promise."""
        if turn.promise is not None and turn.before is not None:
            self.promised += turn.promise
            self.gained += turn.gained
        if turn.before is not None:
            self.habit = DECAY * self.habit + (1 - DECAY) * turn.gained
        self.seconds = turn.after
        self.count += turn.count
        self.took += turn.took
        self.turns += 1
