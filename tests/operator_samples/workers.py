"""Processes that run samples: a crash or a hang is an outcome; outcomes are kept as they come."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

from tests.operator_samples.running import CRASHED, Outcome, outcomes
from tests.operator_samples.samples import Unit

SECONDS = 120.0
"""The longest that one sample may take."""


class Kept:
    """A file of outcomes, one a line: what it has is not run again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: list[Outcome] = []
        self.ended: set[Unit] = set()
        self.last: dict[Unit, int] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            self._note(json.loads(line))

    def _note(self, entry: dict[str, Any]) -> None:
        unit = Unit(**entry.pop("unit"))
        if "ended" in entry:
            self.ended.add(unit)
            return
        self.outcomes.append(Outcome(unit, **entry))
        self.last[unit] = max(self.last.get(unit, -1), entry["number"])

    def add(self, entry: dict[str, Any]) -> None:
        """Keep an outcome, or that a unit is done."""
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        self._note(json.loads(json.dumps(entry)))


def run(units: Sequence[Unit], kept: Kept, jobs: int, seconds: float) -> bool:
    """Run units in some processes for at most so long; whether all are done."""
    todo = [unit for unit in units if unit not in kept.ended]
    ends = time.monotonic() + seconds
    workers = [_Worker() for _ in range(min(jobs, len(todo)))]
    queue = iter(todo)
    busy = {worker for worker in workers if worker.take(next(queue), kept)}
    while busy and time.monotonic() < ends:
        ready = wait([worker.pipe for worker in busy], 1.0)
        for worker in list(busy):
            idle = worker.hear(kept) if worker.pipe in ready else worker.overdue(kept)
            if idle and not worker.take(next(queue, None), kept):
                busy.discard(worker)
    for worker in workers:
        worker.stop()
    return not busy


class _Worker:
    """A process that runs one unit after the other; a new one where it dies."""

    def __init__(self) -> None:
        self.unit: Unit | None = None
        self.begun: tuple[int, str] | None = None
        self.since = time.monotonic()
        self._start()

    def _start(self) -> None:
        context = get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def take(self, unit: Unit | None, kept: Kept) -> bool:
        """Begin a unit behind the samples that have an outcome."""
        self.unit, self.begun, self.since = unit, None, time.monotonic()
        if unit is not None:
            self.pipe.send((unit, kept.last.get(unit, -1)))
        return unit is not None

    def hear(self, kept: Kept) -> bool:
        """Take in what the process says; whether its unit is done."""
        try:
            entry = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode or 0
            return self._fallen(kept, signal.Signals(-code).name if code < 0 else f"exit status {code}")
        self.since = time.monotonic()
        if isinstance(entry, tuple):
            self.begun = entry
            return False
        kept.add(entry)
        return "ended" in entry

    def overdue(self, kept: Kept) -> bool:
        """End a process that takes too long for one sample."""
        if time.monotonic() - self.since < SECONDS:
            return False
        self.process.kill()
        self.process.join()
        return self._fallen(kept, f"no end in {SECONDS:.0f} seconds")

    def _fallen(self, kept: Kept, how: str) -> bool:
        unit, (number, variant) = self.unit, self.begun or (10**9, "")
        assert unit is not None
        kept.add(asdict(Outcome(unit, number, variant, CRASHED, [how])))
        self._start()
        self.take(unit, kept)
        return False

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def _serve(pipe: Connection) -> None:
    torch.set_num_threads(1)
    os.environ["PYTHONWARNINGS"] = "ignore"
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while True:
        try:
            unit, after = pipe.recv()
        except EOFError:
            return
        for entry in _entries(unit, after):
            pipe.send(entry)


def _entries(unit: Unit, after: int) -> Iterator[Any]:
    for number, variant, sample in outcomes(unit, after):
        yield number, variant
        for outcome in sample():
            yield asdict(outcome)
    yield {"unit": asdict(unit), "ended": True}
