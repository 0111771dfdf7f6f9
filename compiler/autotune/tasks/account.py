"""`Account`: what is known of a task when batches are given out, and `Turn`: what one batch did, as the log has it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import log

USUAL = 0.02
"""How far the logarithm of a task's time falls with a turn, before any has shown it."""
DECAY = 0.8
"""The weight of a turn relative to the next one in `habit`."""


@dataclass(frozen=True)
class Turn:
    """One batch of a task. `weight`: how often the program calls what is tuned. `promise`: how far the logarithm of its
    time was expected to fall; None where nothing told. `before`, `after`: seconds of a call under the best, None while
    nothing was measured. `count` trials took `took` seconds together."""

    task: str
    weight: int
    promise: float | None
    before: float | None
    after: float | None
    count: int
    took: float

    @property
    def gained(self) -> float:
        """How far the logarithm of the time fell."""
        return 0.0 if self.before is None or self.after is None else max(0.0, log(self.before / self.after))

    def line(self) -> str:
        """Itself as a line of JSON."""
        return json.dumps(asdict(self))


@dataclass
class Account:
    """A task that waits for its next turn.

    `weight` and `seconds` (of a call under the best; None while nothing was measured) say what it takes of the program,
    `promise` what the model expects of the next batch, as `Turn` has it. `promised` and `gained` are sums of what was
    expected of earlier batches and of what came of these; `count` trials took `took` seconds so far, in `turns` turns.
    `habit` is how far the logarithm of its time usually falls with a turn: USUAL at first, then a mean in which each
    turn counts DECAY times as much as the next. `estimate` tells tasks apart of which nothing was measured: what a
    perfect implementation of all calls would take, in any unit.
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
    def together(self) -> float:
        """The seconds of all calls of a run; 0 while nothing was measured."""
        return 0.0 if self.seconds is None else self.weight * self.seconds

    def add(self, turn: Turn) -> None:
        """Count a turn."""
        if turn.promise is not None and turn.before is not None:
            self.promised += turn.promise
            self.gained += turn.gained
        if turn.before is not None:
            self.habit = DECAY * self.habit + (1 - DECAY) * turn.gained
        self.seconds = turn.after
        self.count += turn.count
        self.took += turn.took
        self.turns += 1
