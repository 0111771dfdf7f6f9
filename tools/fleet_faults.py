"""`python tools/fleet_faults.py --kills N`: kill workers, scheduler and tuner of a fleet at random; nothing is lost.

A scheduler and two workers run as processes of this machine, and a tuner that takes one workload after another. Every
few seconds one of them is killed as a loss of power would kill it, and started again. After each kill the
database must hold all records that it held before; at the end every task must have the trials that were asked, all
of them measured, and the best kernel of each must compute what the program says. Exits with 1 where that is not so.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import count
from pathlib import Path

import numpy as np

from compiler.autotune import SearchTask
from compiler.bench import workloads
from compiler.database import Database
from tests.fleet.clusters import Processes

WORKLOADS = ("matmul_512", "conv_56x56", "mlp", "batched")
SCALE = "1/4"
TRIALS = 16
"""Of a task, and as many more each time that it comes again; each space has more than 48 candidates."""
PAUSE = (6.0, 14.0)
"""Seconds between two kills: a start of the tuner takes some, and a kill during it shows nothing."""


def main() -> int:
    """Kill processes at random, then check the database; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draws = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name, Processes(Path(name)) as processes:
        run = _Run(processes, Path(name) / "fleet.db")
        for number in range(given.kills):
            run.go_on(draws.uniform(*PAUSE))
            victim = draws.choice(["worker 1", "worker 2", "scheduler", "tuner"])
            run.kill(victim)
            print(f"{number + 1}: killed {victim}; {run.records} records of {run.tasks} tasks", flush=True)
            run.restart(victim)
        run.end()
        return run.report()


class _Run:
    """The processes, the workload that is tuned, and the number of records after the last kill."""

    def __init__(self, processes: Processes, database: Path) -> None:
        self.processes, self.database = processes, database
        self.killed: Counter[str] = Counter()
        self.faults: list[str] = []
        self.records = 0
        self._workloads = self._names()
        self.current = next(self._workloads)
        self.done: list[tuple[str, int]] = []
        for victim in ("worker 1", "worker 2", "tuner"):
            self.restart(victim)

    @property
    def tasks(self) -> int:
        """The number of finished tasks."""
        return len(self.done)

    def go_on(self, seconds: float) -> None:
        """Wait some seconds; a task that ends meanwhile is followed by the next."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.2)
            self._follow()

    def _follow(self) -> None:
        process = self.processes.running["tuner"]
        status = process.poll()
        if status is None:
            return
        if status != 0:
            self.faults.append(f"the tuner ended with {status}: {self._said()[-200:]}")
        self.done.append(self.current)
        self.current = next(self._workloads)
        self.restart("tuner")

    def _said(self) -> str:
        return (self.processes.folder / "tuner.txt").read_text("utf-8")

    def kill(self, victim: str) -> None:
        """Kill a process, and note a fault if the database has fewer records than after the last kill, or damaged
        ones."""
        self.processes.kill(victim)
        self.killed[victim.partition(" ")[0]] += 1
        before = self.records
        if self.database.exists():
            with Database(self.database) as database:
                self.records = len(database.records())
                damaged = dict(database.damaged)
            if damaged or self.records < before:
                self.faults.append(f"{before} records became {self.records}, {len(damaged)} damaged")

    def restart(self, victim: str) -> None:
        """Start a process again: a worker, the scheduler, or the tuner with the current workload."""
        if victim == "scheduler":
            self.processes.schedule()
        elif victim == "tuner":
            name, trials = self.current
            words = ["tune", name, "--scale", SCALE, "--trials", str(trials), "--threads", "1", "--json"]
            cluster = ["--scheduler", self.processes.address, "--patience", "60", "--database", str(self.database)]
            self.processes.start("tuner", "-m", "compiler", *words, *cluster)
        else:
            self.processes.worker(victim)

    def end(self) -> None:
        """Wait for the end of the current task, at most 240 s, and end the tuner."""
        tasks = self.tasks
        until = time.monotonic() + 240
        while self.tasks == tasks and time.monotonic() < until:
            self.go_on(1.0)
        self.processes.kill("tuner")

    def _names(self) -> Iterator[tuple[str, int]]:
        """Yield the workloads with their trials, endlessly: TRIALS in the first turn, and as many more in each further
        one."""
        for again in count(1):
            for name in WORKLOADS:
                yield name, again * TRIALS

    def report(self) -> int:
        """Print the content of the database and the faults; return 1 if there are some."""
        failed: Counter[str] = Counter()
        for name, trials in dict(self.done).items():
            task = SearchTask(workloads.find(name, Fraction(SCALE)).function(), threads=1, name=name)
            with Database(self.database) as database:
                records = database.records(task.key)
            scripts = {record.script for record in records}
            failed.update(record.outcome.kind for record in records)
            if len(scripts) < trials:
                self.faults.append(f"{name}: {len(scripts)} trials of {trials}")
            self._check(task)
        print(json.dumps({"killed": self.killed, "tasks": self.tasks, "records": self.records, "outcomes": failed}))
        print("\n".join(self.faults) or "nothing was lost, and the best kernels are right")
        return int(bool(self.faults))

    def _check(self, task: SearchTask) -> None:
        """Note a fault unless the best kernel computes the same as the program as written."""
        from compiler.driver import build_as_written

        best, plain = task.apply_best(self.database), build_as_written(task.func, threads=1)
        draws = np.random.default_rng(0)
        inputs = [
            draws.standard_normal(argument.shape).astype(argument.dtype)
            for argument in plain.arguments[: -plain.outputs]
        ]
        if not np.allclose(best(*inputs), plain(*inputs), rtol=1e-3, atol=1e-3):
            self.faults.append(f"the best of {task.name} is wrong")


if __name__ == "__main__":
    sys.exit(main())
