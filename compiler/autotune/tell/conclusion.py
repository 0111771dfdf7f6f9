"""`Conclusion`: what a tuning run has come to, in words and as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from compiler.autotune.database import Record
from compiler.autotune.measure.subject import share
from compiler.autotune.outcome import ESTIMATED, Outcome
from compiler.autotune.space.gpu_features import ideal
from compiler.autotune.space.space import work
from compiler.autotune.task import SearchTask
from compiler.autotune.tell.progress import Progress
from compiler.autotune.tell.standing import Standing
from compiler.targets.cpu.ceilings import credible
from compiler.targets.machine import Gpu

GAIN = 1.01
"""A lower ratio to the program as written is no gain: the medians are known to that."""
WRITTEN = "as written"
"""The name of the sketch that is the program as written."""
LATER = "later"
"""Why a candidate is put off, and not infeasible for good."""
UNKNOWN = "the ceiling could not be measured"
"""What stands in the place of a share above 100%."""
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
    def standing(self) -> Standing | None:
        """The times and the gain of the best; None where nothing was measured."""
        return self.progress.standing or (None if self.record is None else Standing(self.record.outcome))

    @property
    def gain(self) -> float | None:
        """How many times as fast as the program as written the best is; None where one of them was not measured."""
        return None if self.standing is None else self.standing.gain

    @property
    def is_gain(self) -> bool:
        """Whether the best is known to be faster than the program as written."""
        return self.gain is not None and self.gain >= GAIN and self.progress.sketch != WRITTEN

    def lines(self) -> Iterator[str]:
        """The result in sentences, a line each."""
        name, made = self.task.name, trials(self.progress) + (" (interrupted)" if self.interrupted else "")
        if self.standing is None:
            yield f"{name}: nothing was measured in {made}"
        else:
            yield f"{name}: {timed(self.task, self.standing)}, in {made}: {self._compared(self.standing)}"
        yield from failures(self.progress)
        yield from busy(self.progress)

    def _compared(self, standing: Standing) -> str:
        if standing.baseline_seconds is None:
            return "the program as written was not measured"
        written = f"the program as written ({duration(standing.baseline_seconds)})"
        return f"{gained(standing)} {written}" if self.is_gain else f"no gain: {written} is the answer"

    def data(self) -> dict[str, Any]:
        """The result as JSON has it: times in seconds, the curve as trials and the cost of the best then, costs in the
        operations or bytes that the ceiling would have done meanwhile."""
        p, standing = self.progress, self.standing
        return {
            "name": self.task.name,
            "key": asdict(self.task.key),
            "best_seconds": None if standing is None else standing.seconds,
            "baseline_seconds": None if standing is None else standing.baseline_seconds,
            "gain": self.gain,
            "ceiling_share": None if standing is None else credible(ceiling_share(self.task, standing.best)),
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


def gained(standing: Standing) -> str:
    """`2.1 times as fast as`; `about` where the two were measured at different moments."""
    return f"{'' if standing.is_exact else 'about '}{standing.gain:.3g} times as fast as"


def busy(progress: Progress) -> Iterator[str]:
    """That the machine was busy while the run measured, with figures; nothing where it was quiet."""
    if progress.disturbance is not None and progress.disturbance.matters:
        yield str(progress.disturbance)


def ceiling_share(task: SearchTask, outcome: Outcome) -> float | None:
    """The share of the machine's ceiling that an outcome reached; above 1 where the probe of the ceiling was broken."""
    if isinstance(task.machine, Gpu):
        program = task.schedule.program
        return ideal(program, work(program), task.machine) / outcome.cost if outcome.cost > 0 else None
    return share(task.schedule.program, task.machine, outcome.cost) if outcome.cost > 0 else None


def timed(task: SearchTask, standing: Standing) -> str:
    """The time of the best, and the share of the ceiling: `1.97 ms, 78% of the ceiling`."""
    reached = ceiling_share(task, standing.best)
    time = duration(standing.seconds) + (", estimated" if standing.best.kind == ESTIMATED else "")
    if reached is None:
        return time
    return f"{time}, {reached:.0%} of the ceiling" if credible(reached) is not None else f"{time}, {UNKNOWN}"


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
