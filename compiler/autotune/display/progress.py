"""`Progress`: the state of a tuning run; `BestTimes`: the times of its best, as they are shown everywhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median

from compiler.autotune.display.in_place import InPlace
from compiler.database.outcome import ESTIMATED, Outcome
from compiler.targets.cpu.presence import Disturbance


@dataclass(frozen=True)
class BestTimes:
    """The best of a task and the program as written, if it was measured, each with its combined outcome.

    compared: the outcomes of the program as written and of the best, measured in turns with each other.

    Samples of different moments compare by cost, which includes the machine's rate at the moment. So only the best has
    a measured time. Any other time is the time of the best times the ratio of the costs, so that the shown times have
    the order of the ranking, and a gain is the ratio of the two times beside it.
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
        """The speedup of the best over the program as written: the ratio of their costs, measured in turns if they
        were. None if the program as written was not measured."""
        if self.compared is not None:
            baseline, best = self.compared
            return baseline.cost / best.cost
        return None if self.baseline is None else self.baseline.cost / self.best.cost

    @property
    def is_exact(self) -> bool:
        """Whether the gain was measured in turns, or both are estimates, which do not depend on the moment."""
        return self.compared is not None or self.best.kind == ESTIMATED

    @property
    def baseline_seconds(self) -> float | None:
        """The time of the program as written, had it been measured beside the best; None if it was not measured."""
        return None if self.gain is None else self.gain * self.seconds


@dataclass
class Progress:
    """The state of a run. `seconds` have passed since its begin; times of candidates are seconds of one call.

    budget, limit: the trials and the seconds after which it ends; None without.
    trials: the scripts in the database for this task, repeated measurements counted once. earlier: those from before
    the run. measured: the trials of this run.
    best: the combined outcome of the best so far; sketch: the name of its sketch. baseline: the combined outcome of the
    program as written. compared: the outcomes of baseline and best, last measured in turns with each other; None while
    the current best was not measured so. curve: pairs of a number of trials and the best cost by then. disturbance: by
    other work while the run measured; None before the first measurement.
    failed: the failed trials by kind; reasons: of the first failure of each kind. infeasible: the candidates rejected
    before building, by reason. sketches, candidates: the size of the space. prior_tasks: earlier tasks whose ranking is
    in use. quality: of the ranking, in one line; accuracy: the share of pairs in the right order.
    phase: such as `choosing candidates`; step: within a batch, such as `building 3 of 8`.
    notes: sentences about the workers of a cluster, in order. rules: sentences about rules that add nothing.
    in_place: the times of the groups inside the whole program, once measured.
    promise: the seconds of a run of the whole program that the next batch of this group is expected to save; None
    without a prediction, or if the task is the whole program.
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
    prior_tasks: int = 0
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
        """The phase and, if there is one, its step: `building and measuring: building 3 of 8`."""
        return f"{self.phase}: {self.step}" if self.step else self.phase

    def record(self, before: Outcome | None, after: Outcome) -> None:
        """Update the counts of trials and failures by a script's combined outcomes before (None if new) and after."""
        if before is None:
            self.trials += 1
        elif not before.ok:
            self.failed -= Counter({before.kind: 1})
        if not after.ok:
            self.failed[after.kind] += 1
            self.reasons.setdefault(after.kind, after.reason)

    @property
    def best_times(self) -> BestTimes | None:
        """The times and the gain of the best; None while nothing was measured."""
        return None if self.best is None else BestTimes(self.best, self.baseline, self.compared)

    @property
    def gain(self) -> float | None:
        """The speedup of the best over the program as written; None while either is unknown."""
        return None if self.best_times is None else self.best_times.gain
