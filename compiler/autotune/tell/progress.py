"""`Progress`: how far a tuning run is; `Standing`: the one place where the times that are shown are computed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median

from compiler.autotune.tell.in_place import InPlace
from compiler.database.outcome import ESTIMATED, Outcome
from compiler.targets.cpu.presence import Disturbance


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

    def seconds_of(self, outcome: Outcome) -> float:
        """The time of another script of the task, had it been measured beside the best."""
        return self.seconds * outcome.cost / self.best.cost

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
        """Whether the gain was measured in turns, or is an estimate, so that no moment changes it."""
        return self.compared is not None or self.best.kind == ESTIMATED

    @property
    def baseline_seconds(self) -> float | None:
        """The time of the program as written, had it been measured beside the best."""
        return None if self.gain is None else self.gain * self.seconds


@dataclass
class Progress:
    """How far a run is. `seconds` have passed since it began; times of candidates are seconds of one call.

    trials: scripts in the database for this task, each once however often it was measured; `earlier` of them were there
    before the run, which has measured `measured`.
    best: all that was measured of the best so far, and `sketch` the name of its sketch; `baseline` the same of the
    program as it is written. compared: those two, baseline first, as they were last measured in turns with each other;
    None while the best of now has not taken such turns.
    disturbance: how far the machine was busy with other work while the run measured; None while nobody has looked.
    failed: trials that came to nothing, by kind, and in `reasons` why the first of each did. infeasible: candidates
    that were not worth building, by reason. heard: earlier tasks of the database whose ranking helps.
    quality: how well the model ranks, in one line; accuracy: the share of pairs in the right order.
    phase: what is being done; step: how far a batch is, such as `building 3 of 8`.
    notes: sentences about the workers of a cluster, as they came. rules: sentences about rules that add nothing.
    in_place: what the groups of the whole program take inside it, once that is known.
    promise: how many seconds of a run of the whole program the next batch of this group is expected to save; None
    while nothing tells, or where the task is the whole program.
    """

    name: str
    budget: int | None
    limit: float | None
    trials: int = 0
    earlier: int = 0
    measured: int = 0
    seconds: float = 0.0
    best: Outcome | None = None
    sketch: str = ""
    baseline: Outcome | None = None
    compared: tuple[Outcome, Outcome] | None = None
    disturbance: Disturbance | None = None
    failed: Counter[str] = field(default_factory=Counter)
    infeasible: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    heard: int = 0
    quality: str = ""
    accuracy: float | None = None
    phase: str = "deriving sketches"
    step: str = ""
    sketches: int = 0
    candidates: int = 0
    curve: list[tuple[int, float]] = field(default_factory=list)
    promise: float | None = None
    in_place: InPlace | None = None
    notes: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    @property
    def doing(self) -> str:
        """The phase, and the step of it."""
        return f"{self.phase}: {self.step}" if self.step else self.phase

    def record(self, before: Outcome | None, after: Outcome) -> None:
        """Replace a script's former state, if it was tried before, by its current one in the counts."""
        if before is None:
            self.trials += 1
        elif not before.ok:
            self.failed -= Counter({before.kind: 1})
        if not after.ok:
            self.failed[after.kind] += 1
            self.reasons.setdefault(after.kind, after.reason)

    @property
    def standing(self) -> Standing | None:
        """The times and the gain of the best; None while nothing was measured."""
        return None if self.best is None else Standing(self.best, self.baseline, self.compared)

    @property
    def gain(self) -> float | None:
        """How many times as fast as the program as it is written the best is; None while either is unknown."""
        return None if self.standing is None else self.standing.gain
