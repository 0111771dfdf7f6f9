"""Several tasks tuned one after the other: they share a database and the seconds of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from compiler.autotune.database import Database, Record
from compiler.autotune.options import TuningOptions
from compiler.autotune.tuner import MEMORY, Problem, search


def tune_each(tasks: Sequence[Problem], options: TuningOptions) -> dict[str, Record]:
    """Tune each task, and give the best records by the names of their tasks.

    Trials are those of each. Of the seconds that are left each has an equal share, so that one that needs less leaves
    more to the others; where none are left the others are not tuned. An interruption ends the run.
    """
    began = perf_counter()
    with Database(options.path or MEMORY) as database:
        for number, task in enumerate(tasks):
            passed, left = perf_counter() - began, len(tasks) - number
            seconds = None if options.seconds is None else (options.seconds - passed) / left
            if seconds is not None and seconds <= 0:
                break
            own = replace(options, seconds=seconds, log=log_of(options.log, task.name))
            if not search(task, own, database):
                break
        every = {task.name: database.best(task.key) for task in tasks}
    return {name: record for name, record in every.items() if record is not None}


def log_of(log: object, name: str) -> Path | None:
    """The file of a task's log, where one is stated for several: `LOG.group_3` of `layer.group_3`."""
    return None if log is None else Path(f"{log}.{name.rpartition('.')[2]}")
