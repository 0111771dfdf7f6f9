"""`RunFacts`: the state of a tuning run, as rows of a table, sentences, JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from compiler.autotune.display.progress import BestTimes, Progress
from compiler.autotune.display.subject import RunSubject
from compiler.database import Record
from compiler.database.fields import key_fields
from compiler.database.outcome import ESTIMATED, Outcome
from compiler.driver.reference.subject import share
from compiler.program.tree import Program
from compiler.space.candidates import LATER
from compiler.space.extractor import AnyMachine
from compiler.space.gpu_features import ideal
from compiler.space.space import work
from compiler.support.text import counted, duration
from compiler.targets.cpu.ceilings import plausible_share

GAIN = 1.01
"""The minimum speedup over the program as written that counts as a gain; below it is noise of the medians."""
WRITTEN = "as written"
"""The name of the sketch that stands for the program as written."""
UNKNOWN = "the ceiling could not be measured"
"""The text instead of a share above 100%, which a disturbed probe causes."""
INTERRUPTED = "interrupted"
"""The phase of a run that an interruption ended."""
ENOUGH = 3
"""The number of new trials from which on the remaining time of a run is extrapolated."""


@dataclass(frozen=True)
class RunFacts:
    """The state of a run of a task: its progress, and its best record; None before the end or without a measurement."""

    task: RunSubject
    progress: Progress
    record: Record | None = None

    @property
    def interrupted(self) -> bool:
        """Whether an interruption ended the run."""
        return self.progress.phase == INTERRUPTED

    @property
    def best_times(self) -> BestTimes | None:
        """The times and the gain of the best, by the progress, else by the record; None if nothing was measured."""
        return self.progress.best_times or (None if self.record is None else BestTimes(self.record.outcome))

    @property
    def gain(self) -> float | None:
        """The speedup of the best over the program as written; None if one of them was not measured."""
        return None if self.best_times is None else self.best_times.gain

    @property
    def is_gain(self) -> bool:
        """Whether the best is not the program as written, and at least GAIN times as fast."""
        return self.gain is not None and self.gain >= GAIN and self.progress.sketch != WRITTEN

    @property
    def seconds_left(self) -> float | None:
        """The remaining seconds of the run: to its limit, or to its last trial at the mean time of a trial if that is
        less. None if both are unknown: without a limit of seconds, and without one of trials or before ENOUGH new
        trials. 6 new trials of 10 in 12 s: (10 - 6) * 12 / 6 = 8 s."""
        p = self.progress
        guesses = [] if p.limit is None else [max(0.0, p.limit - p.seconds)]
        new = p.trials - p.earlier
        if p.budget is not None and new >= ENOUGH:
            guesses.append(max(0, p.budget - p.trials) * p.seconds / new)
        return min(guesses, default=None)

    # --- words ------------------------------------------------------------------------------------------------------

    @property
    def best(self) -> str:
        """The time of the best, with its share of the ceiling: `1.97 ms, 78% of the ceiling`, or UNKNOWN for a share
        above 1. An estimate is marked so. Empty without a best."""
        if self.best_times is None:
            return ""
        outcome = self.best_times.best
        reached = ceiling_share(self.task, outcome)
        time = duration(self.best_times.seconds) + (", estimated" if outcome.kind == ESTIMATED else "")
        if reached is None:
            return time
        return f"{time}, {reached:.0%} of the ceiling" if plausible_share(reached) is not None else f"{time}, {UNKNOWN}"

    @property
    def gained(self) -> str:
        """The gain as text: `2.1 times as fast as the program as written`, after `about` if not measured in turns;
        empty if unknown."""
        if self.best_times is None or self.gain is None:
            return ""
        return f"{'' if self.best_times.is_exact else 'about '}{self.gain:.3g} times as fast as the program as written"

    @property
    def trials(self) -> str:
        """The number of trials as text: `23 trials, 8 of them from before`."""
        earlier = f", {self.progress.earlier} of them from before" if self.progress.earlier else ""
        return counted(self.progress.trials, "trial") + earlier

    @property
    def failures(self) -> list[str]:
        """A line for each kind of failure: `2 wrong, the first: ...`."""
        lines = []
        for kind, count in sorted(self.progress.failed.items()):
            reason = self.task.with_user_names(" ".join(self.progress.reasons.get(kind, "").split()))
            lines.append(f"{count} {kind}" + (f", the first: {reason}" if reason else ""))
        return lines

    @property
    def busy(self) -> list[str]:
        """A line about other work that disturbed the measurements, with figures; empty on a quiet machine."""
        disturbance = self.progress.disturbance
        return [str(disturbance)] if disturbance is not None and disturbance.matters else []

    @property
    def infeasible(self) -> str:
        """The numbers of infeasible candidates by reason: `cache 210, registers 12`; deferred ones are left out."""
        counts = self.progress.infeasible.most_common()
        return ", ".join(f"{reason} {count}" for reason, count in counts if reason != LATER)

    # --- renderings -------------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[tuple[str, str]]:
        """The rows of a table, heading and value; rows of unknown values are left out."""
        p, seconds_left = self.progress, self.seconds_left
        rows = [
            ("space", f"{p.sketches} sketches, {p.candidates} candidates" if p.sketches else ""),
            ("best", self.best),
            ("gain", self.gained),
            *(("rules", line) for line in p.rules),
            ("sketch", p.sketch),
            ("trials", self.trials + ("" if p.budget is None else f", {p.budget} in all")),
            ("time", f"{p.seconds:.0f} s" + ("" if seconds_left is None else f", about {seconds_left:.0f} s left")),
            ("phase", p.doing),
            *(("failed", line) for line in self.failures),
            *(("busy", line) for line in self.busy),
            ("infeasible", self.infeasible),
            ("model", p.quality),
        ]
        return (row for row in rows if row[1])

    def sentences(self) -> Iterator[str]:
        """The conclusion of the run, a sentence a line: the best time and the gain, failures, disturbance."""
        name, trials = self.task.name, self.trials + (" (interrupted)" if self.interrupted else "")
        if self.best_times is None:
            yield f"{name}: nothing was measured in {trials}"
        else:
            yield f"{name}: {self.best}, in {trials}: {self._compared(self.best_times)}"
        yield from self.failures
        yield from self.busy

    def _compared(self, best_times: BestTimes) -> str:
        if best_times.baseline_seconds is None:
            return "the program as written was not measured"
        written = f"({duration(best_times.baseline_seconds)})"
        return (
            f"{self.gained} {written}" if self.is_gain else f"no gain: the program as written {written} is the answer"
        )

    def data(self) -> Mapping[str, object]:
        """The conclusion of the run as JSON data.

        Times are in seconds. The curve has pairs of a number of trials and the best cost by then; costs are the
        operations or bytes that the machine could have done in the time of a call.
        """
        p, best_times = self.progress, self.best_times
        return {
            "name": self.task.name,
            "key": key_fields(self.task.key),
            "best_seconds": None if best_times is None else best_times.seconds,
            "baseline_seconds": None if best_times is None else best_times.baseline_seconds,
            "gain": self.gain,
            "ceiling_share": None if best_times is None else plausible_share(ceiling_share(self.task, best_times.best)),
            "sketch": p.sketch or None,
            "trials": p.trials,
            "earlier_trials": p.earlier,
            "seconds": p.seconds,
            "interrupted": self.interrupted,
            "failures": {kind: {"count": n, "reason": p.reasons[kind]} for kind, n in sorted(p.failed.items())},
            "infeasible": dict(sorted(p.infeasible.items())),
            "quality": p.quality,
            "disturbance": None if p.disturbance is None else asdict(p.disturbance),
            "curve": p.curve,
            "record": None if self.record is None else self.record.id,
            "script": None if self.record is None else self.record.script,
        }


def ceiling_share(task: RunSubject, outcome: Outcome) -> float | None:
    """The share of the ceiling that an outcome reached, above 1 after a disturbed probe; None if the cost is 0 or the
    program has no ceiling."""
    if outcome.cost <= 0:
        return None
    program = task.schedule.program
    return SHARES[task.machine.family](program, task.machine, outcome.cost)


SHARES: Mapping[str, Callable[[Program, AnyMachine, float], float | None]] = {
    "cpu": share,
    "gpu": lambda program, machine, cost: ideal(program, work(program), machine) / cost,
}
"""By family of machines: a function (program, machine, cost) -> the share of the ceiling that a candidate reaches."""
