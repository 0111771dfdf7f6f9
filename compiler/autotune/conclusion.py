"""`Conclusion`: what a tuning run has come to, in words and as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from compiler.autotune.database import Record
from compiler.autotune.gpu_features import ideal
from compiler.autotune.measure.subject import share
from compiler.autotune.outcome import ESTIMATED, Outcome
from compiler.autotune.progress import Progress, seconds_of
from compiler.autotune.space import work
from compiler.autotune.task import SearchTask
from compiler.targets.machine import Gpu

GAIN = 1.01
"""A lower ratio to the program as written is no gain: the medians are known to that."""
WRITTEN = "as written"
"""The name of the sketch that is the program as written."""
LATER = "later"
"""Why a candidate is put off, and not infeasible for good."""
INTERRUPTED = "interrupted"
"""The phase of a run that was ended from outside."""


@dataclass(frozen=True)
class Conclusion:
    """The last progress of a run, and its best record; None where nothing could be measured."""

    task: SearchTask
    progress: Progress
    record: Record | None

    @property
    def interrupted(self) -> bool:
        """Whether the run was ended from outside."""
        return self.progress.phase == INTERRUPTED

    @property
    def best(self) -> Outcome | None:
        """All that was measured of the best together."""
        return self.progress.best or (self.record.outcome if self.record is not None else None)

    @property
    def gain(self) -> float | None:
        """How many times as fast as the program as written the best is; None where one of them was not measured.

        Of costs, which see the machine's slow moments: the ratio of the times may differ by some percent.
        """
        return gain(self.progress)

    @property
    def is_gain(self) -> bool:
        """Whether the best is known to be faster than the program as written."""
        return self.gain is not None and self.gain >= GAIN and self.progress.sketch != WRITTEN

    def lines(self) -> Iterator[str]:
        """The result in sentences, a line each."""
        name, made = self.task.name, trials(self.progress) + (" (interrupted)" if self.interrupted else "")
        if self.best is None:
            yield f"{name}: nothing was measured in {made}"
        else:
            yield f"{name}: {timed(self.task, self.best)}, in {made}: {self._compared()}"
        yield from failures(self.progress)

    def _compared(self) -> str:
        baseline, found = self.progress.baseline, self.gain
        if baseline is None or found is None:
            return "the program as written was not measured"
        if self.is_gain:
            return f"{found:.3g} times as fast as the program as written ({duration(seconds_of(baseline))})"
        return f"no gain: the program as written ({duration(seconds_of(baseline))}) is the answer"

    def data(self) -> dict[str, Any]:
        """The result as JSON has it: times in seconds, the curve as trials and the cost of the best then, costs in the
        operations or bytes that the ceiling would have done meanwhile."""
        p, best = self.progress, self.best
        return {
            "name": self.task.name,
            "key": asdict(self.task.key),
            "best_seconds": None if best is None else seconds_of(best),
            "baseline_seconds": None if p.baseline is None else seconds_of(p.baseline),
            "gain": self.gain,
            "ceiling_share": None if best is None else ceiling_share(self.task, best),
            "sketch": p.sketch or None,
            "trials": p.trials,
            "earlier_trials": p.earlier,
            "seconds": p.seconds,
            "interrupted": self.interrupted,
            "failures": {kind: {"count": n, "reason": p.reasons[kind]} for kind, n in sorted(p.failed.items())},
            "infeasible": dict(sorted(p.infeasible.items())),
            "quality": p.quality,
            "curve": p.curve,
            "record": None if self.record is None else self.record.id,
            "script": None if self.record is None else self.record.script,
        }


def gain(progress: Progress) -> float | None:
    """How many times as fast as the program as written the best is; None where one of them was not measured."""
    if progress.best is None or progress.baseline is None:
        return None
    return progress.baseline.cost / progress.best.cost


def ceiling_share(task: SearchTask, outcome: Outcome) -> float | None:
    """The share of the machine's ceiling that an outcome reached."""
    if isinstance(task.machine, Gpu):
        program = task.schedule.program
        return ideal(program, work(program), task.machine) / outcome.cost if outcome.cost > 0 else None
    return share(task.schedule.program, task.machine, outcome.cost) if outcome.cost > 0 else None


def timed(task: SearchTask, outcome: Outcome) -> str:
    """A time, and the share of the ceiling: `1.97 ms, 78% of the ceiling`."""
    reached = ceiling_share(task, outcome)
    time = duration(seconds_of(outcome)) + (", estimated" if outcome.kind == ESTIMATED else "")
    return time if reached is None else f"{time}, {reached:.0%} of the ceiling"


def duration(seconds: float) -> str:
    """A time with three digits, in a unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def trials(progress: Progress) -> str:
    """`23 trials, 8 of them from before`."""
    earlier = f", {progress.earlier} of them from before" if progress.earlier else ""
    return f"{progress.trials} trial{'' if progress.trials == 1 else 's'}{earlier}"


def failures(progress: Progress) -> Iterator[str]:
    """`2 wrong, the first: ...`, a line for each kind of failure."""
    for kind, count in sorted(progress.failed.items()):
        reason = " ".join(progress.reasons.get(kind, "").split())
        yield f"{count} {kind}" + (f", the first: {reason}" if reason else "")


def infeasible(progress: Progress) -> str:
    """`cache 210, registers 12`, without what nobody has looked at yet; empty where there is none."""
    return ", ".join(f"{reason} {count}" for reason, count in progress.infeasible.most_common() if reason != LATER)
