"""Warm starts: what earlier tasks of a database measured, as features and costs, before a new one's first trial."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator

import numpy as np

from compiler.autotune.search.model import MEMBERS, WarmStart
from compiler.database import Database, Key, Record
from compiler.database.replay import planned
from compiler.database.summary import by_script
from compiler.passes.split_constants import called
from compiler.space.extractor import extractor_for
from compiler.space.space import work
from compiler.support.errors import ScheduleError
from compiler.types.machines import Gpu, Machine

ROWS = 240
"""The most records of all earlier tasks together; the features of one take some 20 ms."""
LEAST = 8
"""The fewest scripts of a task that say something."""
SECONDS = 4.0
"""The time after which no further record is read; within it the result does not depend on the time."""


def warm_starts(
    database: Database, key: Key, program: str, machine: Machine | Gpu, seconds: float = SECONDS
) -> list[WarmStart]:
    """What was measured of other programs, or by another timing, under the rest of a key: of at most MEMBERS, the most
    similar last. Costs of one task are compared with each other alone.

    The features are those of the stored programs under the stored scripts, so that it does not matter which rules the
    candidates came from. Legality is not judged again: they were measured. Scripts that no longer apply are left out.
    Raises InputError for a damaged file.
    """
    tasks = _tasks(database, key, program)
    until = time.perf_counter() + seconds
    starts = []
    for task in reversed(tasks):
        rows = list(_rows(_chosen(database.records(task), ROWS // len(tasks)), machine, until))
        if len(rows) >= LEAST:
            values, costs = zip(*rows, strict=True)
            starts.append(WarmStart(np.array(values, np.float32), np.array(costs)))
    return starts[::-1]


def _tasks(database: Database, key: Key, program: str) -> list[Key]:
    """The last keys with enough trials that differ from a key in the program alone; programs that differ in numbers
    alone come last."""
    conditions = (key.machine, key.threads, key.policy)
    summaries = database.keys()
    told = [summary.key for summary in summaries if summary.ok >= LEAST and summary.key != key]
    kept = [task for task in told if (task.machine, task.threads, task.policy) == conditions]
    texts, shape = database.programs, _without_numbers(program)
    alike = {task: _without_numbers(texts.get(task.program, "")) == shape for task in kept}
    return sorted(kept, key=alike.__getitem__)[-MEMBERS:]


def _without_numbers(program: str) -> str:
    return re.sub(r"\d+", "", program)


def _chosen(records: Iterable[Record], count: int) -> list[tuple[Record, float]]:
    """Some scripts, a record of each, with the cost of all that was measured of it: half of them the best, half of them
    from all the others."""
    scripts = by_script(record for record in records if record.candidate is not None)
    combined = [(script.records[0], script.outcome) for script in scripts]
    ranked = sorted(((record, o.cost) for record, o in combined if o.ranks), key=lambda row: (row[1], row[0].id))
    best, worse = ranked[: count // 2], ranked[count // 2 :]
    return best + worse[:: max(1, -(-len(worse) // (count - count // 2)))]


def _rows(
    chosen: Iterable[tuple[Record, float]], machine: Machine | Gpu, until: float
) -> Iterator[tuple[tuple[float, ...], float]]:
    """The features and the cost of each record whose script still applies, while there is time."""
    for record, cost in chosen:
        if time.perf_counter() > until:
            return
        try:
            original, scheduled = planned(record)
        except ScheduleError:
            continue
        yield (
            tuple(float(value) for value in extractor_for(machine).of(called(scheduled), work(original)).features),
            cost,
        )
