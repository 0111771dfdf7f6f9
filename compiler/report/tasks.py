"""`TaskFacts`: times, bound, curve, predictions and failures of a task, from its records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import isfinite

from compiler.analysis.cost import total_flops
from compiler.autotune.display.operator import operator
from compiler.autotune.display.progress import BestTimes
from compiler.autotune.search.ranking import Pairs, pairs
from compiler.database import Key, Record
from compiler.database.outcome import total_disturbance
from compiler.database.summary import ScriptTrials, by_script, ranked
from compiler.dialects.functions import find_function
from compiler.driver.reference.subject import ceiling, share
from compiler.graph.main import size
from compiler.opt.diagnostics import PROGRAM_ERRORS
from compiler.pipeline.source import parse
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.targets.cpu.ceilings import plausible_share
from compiler.targets.cpu.presence import Disturbance
from compiler.types.machines import host

MIN_SECONDS, MAX_SECONDS = 1e-12, 1e6
"""The limits of a call's seconds; other values, of a damaged file, are clamped to them."""


@dataclass(frozen=True)
class Trial:
    """A measured script: its number among the task's scripts, the seconds of a call at the machine's rate beside the
    best script, the lowest such time so far, and the model's prediction in seconds (None without one)."""

    number: int
    seconds: float
    best: float
    predicted: float | None


@dataclass(frozen=True)
class Failure:
    """A kind of failure of a task: the count of its scripts, and the number and the reason of the first of them."""

    kind: str
    count: int
    number: int
    reason: str


@dataclass(frozen=True)
class Work:
    """The work of one call: floating-point operations, bytes of its arguments, and the ceiling (flops or bytes) that
    bounds it."""

    flops: int
    bytes: int
    ceiling: str

    @property
    def intensity(self) -> float:
        """Operations per byte; 0 without arguments."""
        return self.flops / self.bytes if self.bytes else 0.0


@dataclass(frozen=True)
class TaskFacts:
    """A task of a report: its name, the key of its records, and its scripts in the order of trials.

    calls: the number of calls in a run of its whole program; None without a program. layers: the layers of a network
    that call the task. chosen: the record of the script inside the program, if one was chosen.
    """

    name: str
    key: Key
    scripts: tuple[ScriptTrials, ...]
    calls: int | None = None
    layers: tuple[str, ...] = ()
    chosen: Record | None = None

    @classmethod
    def of(cls, name: str, key: Key, records: Sequence[Record]) -> TaskFacts:
        """Return the facts of a task; its records are grouped by script."""
        return cls(name, key, tuple(by_script(records)))

    @cached_property
    def ranked(self) -> list[ScriptTrials]:
        """The measured scripts, best first."""
        return ranked(self.scripts)

    @property
    def best(self) -> ScriptTrials | None:
        """The best measured script; None without one."""
        return self.ranked[0] if self.ranked else None

    @cached_property
    def baseline(self) -> ScriptTrials | None:
        """The baseline of the gain: the program as written if measured, else the first measured script, or None."""
        measured = sorted(self.ranked, key=lambda script: script.number)
        return next((script for script in measured if is_written(script)), measured[0] if measured else None)

    @cached_property
    def _standing(self) -> BestTimes | None:
        return None if self.best is None else BestTimes(self.best.outcome)

    def seconds_of(self, script: ScriptTrials) -> float:
        """Return the seconds of a call under a script, at the machine's rate beside the best script, clamped to
        MIN_SECONDS and MAX_SECONDS. The task must have a measured script."""
        assert self._standing is not None
        seconds = self._standing.seconds_of(script.outcome)
        return min(max(seconds, MIN_SECONDS), MAX_SECONDS) if isfinite(seconds) else MAX_SECONDS

    @property
    def seconds(self) -> float | None:
        """The seconds of a call under the best script; None without one."""
        return None if self.best is None else self.seconds_of(self.best)

    @property
    def together(self) -> float | None:
        """The seconds of all calls of the task in one execution of its whole program, under the best script; of one
        call if the number of calls is unknown. None without a measured script."""
        return None if self.seconds is None else (self.calls or 1) * self.seconds

    @property
    def gain(self) -> float | None:
        """The cost of the baseline over that of the best script; None without measured scripts, or if not finite."""
        if self.best is None or self.baseline is None:
            return None
        gain = self.baseline.outcome.cost / self.best.outcome.cost
        return gain if isfinite(gain) else None

    @cached_property
    def program(self) -> Program | None:
        """The program as a tree; None if the stored text is damaged."""
        try:
            return read(find_function(parse(self.scripts[0].first.program))) if self.scripts else None
        except PROGRAM_ERRORS:
            return None

    @cached_property
    def operator(self) -> str:
        """The computation in a few words; empty if the program is damaged."""
        return "" if self.program is None else operator(self.program)

    @property
    def is_of_this_machine(self) -> bool:
        """Whether the records of the task are of this machine."""
        return self.key.machine == host().name

    @cached_property
    def work(self) -> Work | None:
        """The work of one call; None for records of another machine, and for a damaged program."""
        if self.program is None or not self.is_of_this_machine:
            return None
        flops = total_flops(self.program, self.program.body)
        return Work(flops, sum(map(size, self.program.arguments)), ceiling(self.program, host()))

    @cached_property
    def bound(self) -> float | None:
        """The share of the ceiling that the best script reaches; None for a damaged program, without `work` or a
        measured script, or if implausible."""
        if self.program is None or self.work is None or self.best is None:
            return None
        return plausible_share(share(self.program, host(), self.best.outcome.cost))

    @property
    def bound_seconds(self) -> float | None:
        """The seconds of all calls at the ceiling; None if `bound` is."""
        return None if self.bound is None or self.together is None else self.bound * self.together

    @property
    def loss(self) -> float | None:
        """The seconds of all calls beyond `bound_seconds`; None if these are unknown."""
        return None if self.together is None or self.bound_seconds is None else self.together - self.bound_seconds

    @cached_property
    def curve(self) -> list[Trial]:
        """The measured scripts in the order of trials, with times, best times so far and predictions."""
        measured = sorted(self.ranked, key=lambda script: script.number)
        seconds = [self.seconds_of(script) for script in measured]
        lowest = accumulate(seconds, min)
        return [
            Trial(script.number, time, best, self._predicted(script))
            for script, time, best in zip(measured, seconds, lowest, strict=True)
        ]

    def _predicted(self, script: ScriptTrials) -> float | None:
        """Return the seconds of a call that the model predicted for a script; None without a prediction."""
        cost = script.records[0].predicted
        if cost is None or self.best is None or self.seconds is None or cost <= 0:
            return None
        return min(max(self.seconds * cost / self.best.outcome.cost, MIN_SECONDS), MAX_SECONDS)

    @property
    def ranking(self) -> Pairs:
        """The number of pairs of scripts with predictions, and of those that the model had ordered correctly."""
        predictions = [(t.predicted, t.seconds) for t in self.curve if t.predicted is not None]
        return pairs([predicted for predicted, _ in predictions], [seconds for _, seconds in predictions])

    @property
    def failures(self) -> Iterator[Failure]:
        """The kinds of failure, in the order of their first scripts."""
        failed: dict[str, list[ScriptTrials]] = {}
        for script in self.scripts:
            if not script.outcome.ok:
                failed.setdefault(script.outcome.kind, []).append(script)
        for kind, scripts in failed.items():
            yield Failure(kind, len(scripts), scripts[0].number, scripts[0].outcome.reason)

    @cached_property
    def records(self) -> list[Record]:
        """All records, in the order of time."""
        return sorted((r for script in self.scripts for r in script.records), key=lambda r: (r.created, r.id))

    @property
    def disturbance(self) -> Disturbance | None:
        """The disturbance of all measurements; None without data."""
        return total_disturbance(record.outcome.disturbance for record in self.records)


def is_written(script: ScriptTrials) -> bool:
    """Return whether a script leaves the program as written: its only steps reorder loops."""
    return _STEPS_AS_WRITTEN.issuperset(_STEP.findall(script.first.script)) and "transform.yield" in script.first.script


_STEP = re.compile(r"(?<!!)\bsched\.(\w+)")
_STEPS_AS_WRITTEN = frozenset({"get_block", "get_loops", "reorder"})
