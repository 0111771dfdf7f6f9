"""What another schedule of a group would win inside its program: found by a few trials, then timed in turns."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from compiler.autotune.measure.turns import run_in_turns
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.database import Record
from compiler.database.outcome import NETWORK
from compiler.driver.building import source_of
from compiler.driver.units.unit import WRITTEN, Scheduled
from compiler.explain.sources import SourceTable

SECONDS = 5.0
"""The most seconds in which the two programs are run in turns."""


@dataclass(frozen=True)
class TriedSchedule:
    """The best of `trials` schedules of a group by times alone. ratio: the time of the group's calls inside the program
    over that under the current schedule. added, removed: the primitives of steps that only the best, or only the
    current script has, with their number. script: the best, with the user's names."""

    trials: int
    ratio: float
    added: tuple[str, ...]
    removed: tuple[str, ...]
    script: str


def tried(table: SourceTable, name: str, trials: int) -> TriedSchedule | None:
    """Tune a group of a table for `trials` trials, then time the best schedule inside the program, in turns with the
    current one. None if none could be measured. Raises InputError for an unknown group."""
    group, current = table.group(name), table.scheduled.get(name, WRITTEN)
    task = SearchTask(
        group, threads=table.threads, policy=table.policy, name=name, constants=group.tree.constants, timing=NETWORK
    )
    best = task.tune(TuningOptions(trials=trials, show=False))
    if not isinstance(best, Record):
        return None
    source = source_of(task, best)
    calls = [n for n, call in enumerate(table.program.constant_split.main.calls) if call.callee == name]
    turns = run_in_turns(table.build(table.scheduled), table.build({**table.scheduled, name: source}), SECONDS)
    before, after = steps(current), steps(source)
    return TriedSchedule(
        trials, turns.of(calls).ratio, _named(after - before), _named(before - after), task.script(best)
    )


def steps(source: Scheduled) -> Counter[str]:
    """Count the steps of a script that change loops, by primitive."""
    names = re.findall(r"(?<!!)\bsched\.(\w+)", source.script or "")
    return Counter(name for name in names if not name.startswith(("get_", "sample_", "multiple")))


def _named(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(name if count == 1 else f"{count} {name}" for name, count in sorted(counts.items()))
