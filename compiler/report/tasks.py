"""`TaskFacts`: what the records of one task say: times, bound, curve, predictions, failures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import isfinite

from compiler.analysis.cost import total_flops
from compiler.autotune.search.ranking import Pairs, pairs
from compiler.autotune.tell.operator import operator
from compiler.autotune.tell.progress import Standing
from compiler.database import Key, Record
from compiler.database.outcome import together
from compiler.database.summary import ScriptTrials, by_script, ranked
from compiler.dialects.functions import find_function
from compiler.driver.reference.subject import ceiling, share
from compiler.graph.main import size
from compiler.opt.diagnostics import SAID
from compiler.pipeline import parse
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.targets.cpu.ceilings import plausible_share
from compiler.targets.cpu.presence import Disturbance
from compiler.types.machines import host

SHORTEST, LONGEST = 1e-12, 1e6
"""Seconds that a call may take; less and more, which only a file may say, count as these."""


@dataclass(frozen=True)
class Trial:
    """A script that was measured: its number among the scripts of the task, the seconds of a call, had it been
    measured beside the best, and what the model promised; `best` is the lowest time so far."""

    number: int
    seconds: float
    best: float
    predicted: float | None


@dataclass(frozen=True)
class Failure:
    """A kind of failure: how many scripts ended so, and the number and the reason of the first."""

    kind: str
    count: int
    number: int
    reason: str


@dataclass(frozen=True)
class Work:
    """The work of one call: floating-point operations, bytes of its arguments, and which of them bounds it."""

    flops: int
    bytes: int
    ceiling: str

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.bytes if self.bytes else 0.0


@dataclass(frozen=True)
class TaskFacts:
    """A task: its name, what its records are comparable under, its scripts as they were tried, and how often a run of
    its program calls it; None where no program is known. `layers` are those of a network that the calls are of.
    `chosen` is the record that was chosen inside the program, if one was."""

    name: str
    key: Key
    scripts: tuple[ScriptTrials, ...]
    calls: int | None = None
    layers: tuple[str, ...] = ()
    chosen: Record | None = None

    @classmethod
    def of(cls, name: str, key: Key, records: Sequence[Record]) -> TaskFacts:
        """The facts of a task with these records."""
        return cls(name, key, tuple(by_script(records)))

    @cached_property
    def ranked(self) -> list[ScriptTrials]:
        """The scripts that were measured, the best first."""
        return ranked(self.scripts)

    @property
    def best(self) -> ScriptTrials | None:
        """The best script."""
        return self.ranked[0] if self.ranked else None

    @cached_property
    def baseline(self) -> ScriptTrials | None:
        """What the best is compared with: the program as written; the first script measured where that was not."""
        measured = sorted(self.ranked, key=lambda script: script.number)
        return next((script for script in measured if is_written(script)), measured[0] if measured else None)

    @cached_property
    def _standing(self) -> Standing | None:
        return None if self.best is None else Standing(self.best.outcome)

    def seconds_of(self, script: ScriptTrials) -> float:
        """The time of a call under a script, as it stands beside the best."""
        assert self._standing is not None
        seconds = self._standing.seconds_of(script.outcome)
        return min(max(seconds, SHORTEST), LONGEST) if isfinite(seconds) else LONGEST

    @property
    def seconds(self) -> float | None:
        """The time of a call under the best."""
        return None if self.best is None else self.seconds_of(self.best)

    @property
    def together(self) -> float | None:
        """The time of all calls of a run; of one call if their number is not known."""
        return None if self.seconds is None else (self.calls or 1) * self.seconds

    @property
    def gain(self) -> float | None:
        """How many times as fast as the baseline the best is."""
        if self.best is None or self.baseline is None:
            return None
        gain = self.baseline.outcome.cost / self.best.outcome.cost
        return gain if isfinite(gain) else None

    @cached_property
    def program(self) -> Program | None:
        """The program; None if the stored text is damaged."""
        try:
            return read(find_function(parse(self.scripts[0].first.program))) if self.scripts else None
        except SAID:
            return None

    @cached_property
    def operator(self) -> str:
        """The computation in a few words."""
        return "" if self.program is None else operator(self.program)

    @property
    def is_of_this_machine(self) -> bool:
        """Whether its times are of a machine like this one, whose facts are known."""
        return self.key.machine == host().name

    @cached_property
    def work(self) -> Work | None:
        """The work of one call; None if this machine cannot tell."""
        if self.program is None or not self.is_of_this_machine:
            return None
        flops = total_flops(self.program, self.program.body)
        return Work(flops, sum(map(size, self.program.arguments)), ceiling(self.program, host()))

    @cached_property
    def bound(self) -> float | None:
        """The share of the machine's ceiling that the best reaches; None where it is not known."""
        if self.program is None or self.work is None or self.best is None:
            return None
        return plausible_share(share(self.program, host(), self.best.outcome.cost))

    @property
    def bound_seconds(self) -> float | None:
        """The time of all calls at the ceiling."""
        return None if self.bound is None or self.together is None else self.bound * self.together

    @property
    def loss(self) -> float | None:
        """The time of all calls above that."""
        return None if self.together is None or self.bound_seconds is None else self.together - self.bound_seconds

    @cached_property
    def curve(self) -> list[Trial]:
        """The scripts that were measured, in the order in which they were tried."""
        measured = sorted(self.ranked, key=lambda script: script.number)
        seconds = [self.seconds_of(script) for script in measured]
        lowest = accumulate(seconds, min)
        return [
            Trial(script.number, time, best, self._predicted(script))
            for script, time, best in zip(measured, seconds, lowest, strict=True)
        ]

    def _predicted(self, script: ScriptTrials) -> float | None:
        """The seconds that the model promised when a script was first chosen."""
        cost = script.records[0].predicted
        if cost is None or self.best is None or self.seconds is None or cost <= 0:
            return None
        return min(max(self.seconds * cost / self.best.outcome.cost, SHORTEST), LONGEST)

    @property
    def ranking(self) -> Pairs:
        """How many pairs of scripts the model had in the right order before they were measured."""
        predictions = [(t.predicted, t.seconds) for t in self.curve if t.predicted is not None]
        return pairs([predicted for predicted, _ in predictions], [seconds for _, seconds in predictions])

    @property
    def failures(self) -> Iterator[Failure]:
        """The kinds of failure, in the order in which they came."""
        failed: dict[str, list[ScriptTrials]] = {}
        for script in self.scripts:
            if not script.outcome.ok:
                failed.setdefault(script.outcome.kind, []).append(script)
        for kind, scripts in failed.items():
            yield Failure(kind, len(scripts), scripts[0].number, scripts[0].outcome.reason)

    @cached_property
    def records(self) -> list[Record]:
        """All records, in the order in which they were made."""
        return sorted((r for script in self.scripts for r in script.records), key=lambda r: (r.created, r.id))

    @property
    def disturbance(self) -> Disturbance | None:
        """How far the machine was busy with other work; None where nobody has looked."""
        return together(record.outcome.disturbance for record in self.records)


def is_written(script: ScriptTrials) -> bool:
    """Whether a script is the program as written: `build` only orders its loops."""
    return _STEPS_AS_WRITTEN.issuperset(_STEP.findall(script.first.script)) and "transform.yield" in script.first.script


_STEP = re.compile(r"(?<!!)\bsched\.(\w+)")
_STEPS_AS_WRITTEN = frozenset({"get_block", "get_loops", "reorder"})
