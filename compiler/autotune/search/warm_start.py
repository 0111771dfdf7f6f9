"""Warm starts: the measurements of earlier tasks in a database, as features and costs for a new task's cost model."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator

import numpy as np

from compiler.autotune.search.model import MEMBERS, WarmStart
from compiler.database import Database, Key, Record
from compiler.database.replay import plan_record
from compiler.database.summary import by_script
from compiler.passes.split_constants import without_preparation
from compiler.space.extractor import extractor_for
from compiler.space.space import work
from compiler.support.errors import ScheduleError
from compiler.types.machines import Gpu, Machine

ROWS = 240
"""The maximum number of records of all earlier tasks together; the features of a record take some 20 ms."""
LEAST = 8
"""The minimum number of measured scripts of an earlier task; one with fewer is not used."""
SECONDS = 4.0
"""The default of `seconds` in `warm_starts`; a run that reads all its records in less does not depend on time."""


def warm_starts(
    database: Database, key: Key, program: str, machine: Machine | Gpu, seconds: float = SECONDS
) -> list[WarmStart]:
    """The measurements of at most MEMBERS earlier tasks, each with at least LEAST usable ones, on the machine, threads
    and policy of a key, the most similar last. Costs compare within one task only. No record is read after `seconds`.
    program: the text of the key's program. machine: gives the features.

    The features are computed from the stored programs under the stored scripts, whichever rules made these. Legality is
    not judged again, since the scripts were measured. Scripts that no longer apply are left out. Raises InputError for
    a damaged file.
    """
    tasks = _tasks(database, key, program)
    deadline = time.perf_counter() + seconds
    starts = []
    for task in reversed(tasks):
        rows = list(_rows(_chosen(database.records(task), ROWS // len(tasks)), machine, deadline))
        if len(rows) >= LEAST:
            values, costs = zip(*rows, strict=True)
            starts.append(WarmStart(np.array(values, np.float32), np.array(costs)))
    return starts[::-1]


def _tasks(database: Database, key: Key, program: str) -> list[Key]:
    """Other keys of the same machine, threads and policy with at least LEAST measured scripts, at most MEMBERS. The
    latest come last, after them those whose programs differ only in numbers, such as extents."""
    conditions = (key.machine, key.threads, key.policy)
    summaries = database.keys()
    measured = [summary.key for summary in summaries if summary.ok >= LEAST and summary.key != key]
    comparable = [task for task in measured if (task.machine, task.threads, task.policy) == conditions]
    texts, shape = database.programs, _without_numbers(program)
    alike = {task: _without_numbers(texts.get(task.program, "")) == shape for task in comparable}
    return sorted(comparable, key=alike.__getitem__)[-MEMBERS:]


def _without_numbers(program: str) -> str:
    return re.sub(r"\d+", "", program)


def _chosen(records: Iterable[Record], count: int) -> list[tuple[Record, float]]:
    """About `count` scripts, a record of each with the script's combined cost: half are the best, half are spread
    evenly over the others. Records without a candidate are left out."""
    scripts = by_script(record for record in records if record.candidate is not None)
    combined = [(script.records[0], script.outcome) for script in scripts]
    ranked = sorted(
        ((record, o.cost) for record, o in combined if o.is_comparable), key=lambda row: (row[1], row[0].id)
    )
    best, worse = ranked[: count // 2], ranked[count // 2 :]
    return best + worse[:: max(1, -(-len(worse) // (count - count // 2)))]


def _rows(
    chosen: Iterable[tuple[Record, float]], machine: Machine | Gpu, deadline: float
) -> Iterator[tuple[tuple[float, ...], float]]:
    """The features and the cost of each record whose script still applies; ends at the deadline, a time of
    perf_counter."""
    for record, cost in chosen:
        if time.perf_counter() > deadline:
            return
        try:
            original, scheduled = plan_record(record)
        except ScheduleError:
            continue
        yield (
            tuple(
                float(value)
                for value in extractor_for(machine).extract(without_preparation(scheduled), work(original)).features
            ),
            cost,
        )
