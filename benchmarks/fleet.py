"""`python -m benchmarks.fleet [NAME]`: what one trial on a cluster costs its tuner, and how many workers that feeds.

On one core: choosing candidates (features, forest, refit) after so many trials, keeping a record on disk, a job there
and back through a scheduler of this process, and the bytes of a trial on the way. Costs of candidates are made up, as
a function of their features: choosing does not depend on what they are. The table that follows is arithmetic.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from compiler.autotune import SearchTask
from compiler.autotune.measure.builder import BuilderSetup, Built
from compiler.autotune.search import Search
from compiler.bench import workloads
from compiler.database import Database, Record
from compiler.database.outcome import MEASURED, Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.text import duration

BATCH = 8
TRIALS = (64, 256, 1024)
WORKERS = (10, 100, 1000)
SECONDS = 1.0
"""What a worker takes for a trial: about 0.6 s to build and prove it, 0.4 s to check and time it."""
JOBS = 400


@dataclass(frozen=True)
class Costs:
    """Seconds of the tuner for each trial, by activity, and bytes of each trial, by destination."""

    seconds: dict[str, float]
    size: dict[str, int]


def choosing(task: SearchTask, trials: int) -> float | None:
    """Seconds to choose one candidate after `trials` trials, the refit of the forest included; None if the space has no
    further candidate."""
    draws = np.random.default_rng(0)
    search = Search(task.space, 0)
    while len(search) < trials:
        proposals = search.propose(max(BATCH, (trials - len(search)) // 2))
        if not proposals:
            break
        for proposal in proposals:
            search.update(proposal.candidate, Outcome(MEASURED, (1e-3 * draws.uniform(1, 4),), (1e9,)))
    begin = time.perf_counter()
    chosen = search.propose(BATCH)
    return (time.perf_counter() - begin) / len(chosen) if chosen else None


def costs(task: SearchTask) -> Costs:
    """Measure the tuner's seconds and the bytes of a trial of a task; without dask the seconds of jobs are left out."""
    subject = Subject(str(task.module), task.schedule.name)
    script = task.space.script((0, tuple(0 for _ in task.space.sizes[0])))
    outcome = Outcome(MEASURED, (1e-3,) * 12, (1e9,) * 12, build_seconds=0.5)
    built = BuilderSetup(subject, 1 << 40).start()(script)
    assert isinstance(built, Built), built
    chosen = {f"choose, after {count} trials": choosing(task, count) for count in TRIALS}
    seconds = {what: taken for what, taken in chosen.items() if taken is not None}
    seconds["keep on disk"] = _kept(task, script, outcome)
    if (carried := _carried(subject, script)) is not None:
        seconds["two jobs of the scheduler"] = 2 * carried
    size = {
        "to a worker: program and script": len(pickle.dumps((subject, script))),
        "between workers: machine code": len(pickle.dumps(built)),
        "to the tuner: outcome": len(pickle.dumps(outcome)),
    }
    return Costs(seconds, size)


def _kept(task: SearchTask, script: str, outcome: Outcome) -> float:
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "f.db") as database:
        begin = time.perf_counter()
        for number in range(50):
            database.add(Record(task.key, task.name, task.program, f"{script}\n// {number}", outcome))
        return (time.perf_counter() - begin) / 50


def _carried(subject: Subject, script: str) -> float | None:
    """Seconds of a job to a worker and back through dask; None if dask is not installed."""
    try:
        from distributed import Client
    except ImportError:
        return None
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        work: Callable[[Subject, str], int] = _nothing
        begin = time.perf_counter()
        client.gather([client.submit(work, subject, f"{script}{n}", pure=False) for n in range(JOBS)])
        return (time.perf_counter() - begin) / JOBS


def _nothing(subject: Subject, script: str) -> int:
    return len(script)


def main() -> None:
    """Measure, and print two tables."""
    name = sys.argv[1] if len(sys.argv) > 1 else "mm_exp_mm"
    task = SearchTask(workloads.find(name).function(), threads=1)
    found, console = costs(task), Console(width=120, highlight=False)
    table = Table(f"{name}: of one trial", "", box=None)
    for what, seconds in found.seconds.items():
        table.add_row(what, duration(seconds))
    for what, size in found.size.items():
        table.add_row(what, f"{size / 1024:.1f} KiB")
    console.print(table)
    console.print(scaled(found))


def scaled(found: Costs) -> Table:
    """Tabulate the cores that the tuner needs, and the data through the scheduler, for counts of workers that all
    measure."""
    table = Table("workers", "trials/s", *found.seconds, "through the scheduler", box=None)
    bytes_there = sum(size for what, size in found.size.items() if not what.startswith("between"))
    for workers in WORKERS:
        rate = workers / SECONDS
        parts = [f"{rate * seconds:.2g} cores" for seconds in found.seconds.values()]
        table.add_row(str(workers), f"{rate:.0f}", *parts, f"{rate * bytes_there / 2**20:.2g} MiB/s")
    return table


if __name__ == "__main__":
    main()
