"""Faults of a tuning run: processes killed at any moment, candidates that misbehave, two tuners on one file.

    python -m tests.e2e.test_tuner_faults 100 [SEED]

kills a tuner and its workers so many times, and says what was found; a test does it a few times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from compiler.autotune import workers
from compiler.autotune.display.progress import Progress
from compiler.autotune.measure.builder import Built
from compiler.autotune.measure.local import LocalExecutor
from compiler.autotune.measure.measurer import Measurer
from compiler.autotune.options import TuningOptions
from compiler.autotune.search import replay
from compiler.autotune.task import SearchTask
from compiler.database import Database
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.space.space import SketchSpace
from tests.measuring import HANG, NOTHING, QUICK, SEGFAULT, Fault, hungry, matmul

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
SIZE = 128
"""The extents of the product that is tuned: a trial takes a moment, and there are thousands of candidates."""
WORKERS = ("builder", "runner")
"""The workers of a tuner once it measures, in the order in which they start: that of the reference has ended."""
VICTIMS = ("tuner", "builder", "runner")
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not show its processes")


# --- a tuner in a process of its own --------------------------------------------------------------------------------


def child(database: str, trials: str, seed: str, log: str) -> None:
    """Tune, and say after each trial how many there are."""
    workers.Measurer = quick  # type: ignore[assignment]
    shown = {"trials": -1}

    def say(progress: Progress) -> None:
        if progress.phase != "learning from earlier tasks" and progress.trials != shown["trials"]:
            shown["trials"] = progress.trials
            print(progress.trials, flush=True)

    options = TuningOptions(
        int(trials), database=database, seed=int(seed), builders=1, batch=4, log=log, callbacks=[say]
    )
    SearchTask(matmul(SIZE, SIZE, SIZE), threads=1).tune(options)
    print("end", flush=True)


def quick(subject: Subject, builders: int | None = None) -> Measurer:
    return Measurer(subject, QUICK, builders)


class Tuner:
    """A tuner's process, and what it has said so far."""

    def __init__(self, folder: Path, trials: int, seed: int = 0, log: str = "log") -> None:
        self.said: list[str] = []
        arguments = ["child", str(folder / "tuning.db"), str(trials), str(seed), str(folder / log)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.test_tuner_faults", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        )
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.strip())

    @property
    def reported(self) -> int:
        """The trials that it has reported as finished."""
        return max((int(line) for line in self.said if line.isdigit()), default=0)

    @property
    def workers(self) -> list[int]:
        """Its WORKERS, in the order in which they were started."""
        return sorted(_children(self.process.pid))

    def ended(self) -> str:
        """What it wrote to its standard error, once it has ended."""
        assert self.process.stderr is not None
        error = self.process.stderr.read()
        self.process.wait()
        self._reader.join()
        return error


def _stat(pid: int | str) -> list[str]:
    """The state of a process, its parent, and so on; nothing where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _children(parent: int) -> list[int]:
    collected = [(int(p.name), _stat(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit()]
    return [pid for pid, stat in collected if stat and stat[0] != "Z" and int(stat[1]) == parent]


def gone(pids: Sequence[int]) -> bool:
    """Whether some processes have ended, or do so soon."""
    return soon(lambda: all(_stat(pid)[:1] in ([], ["Z"]) for pid in pids))


def soon(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether something comes about in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


# --- kills ----------------------------------------------------------------------------------------------------------


@dataclass
class Campaign:
    """Kills of a tuner and its workers on one file; each check raises AssertionError."""

    folder: Path
    rng: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    tuner: Tuner | None = None
    known: int = 0
    idle: int = 0

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *error: object) -> None:
        if self.tuner is not None:
            kill(self.tuner.process.pid)

    def kill(self, victim: str, longest: float) -> None:
        """Kill a tuner, or one of its workers, after a random time."""
        running = self.tuner = self.tuner or Tuner(self.folder, 100000, log=f"log{self.killed.total()}")
        if victim != "tuner":
            assert soon(lambda: len(running.workers) == len(WORKERS) and running.reported > self.known), running.said
        time.sleep(self.rng.uniform(0, longest))
        workers = running.workers
        self.killed[victim] += 1
        if victim == "tuner":
            kill(running.process.pid)
            self._check_end(running, workers)
            self.tuner = None
        elif len(workers) == len(WORKERS):
            before = running.reported
            kill(workers[WORKERS.index(victim)])
            assert soon(lambda: running.reported > before or running.process.poll() is not None), "it goes on"
            assert running.process.poll() is None, (running.ended(), running.process.returncode, running.said[-3:])

    def _check_end(self, running: Tuner, workers: Sequence[int]) -> None:
        """What it reported is in the file, the file is whole, no worker is left, its log is that of a search."""
        running.ended()
        assert gone(workers), "no worker outlives its tuner"
        actual = self.scripts()
        assert actual >= max(running.reported, self.known), (actual, running.reported, self.known)
        self.idle += actual == self.known
        first = next((int(line) for line in running.said if line.isdigit() and int(line)), None)
        assert first is None or first >= self.known, "it goes on where the last one ended"
        self.known = actual

    def scripts(self) -> int:
        """How many different scripts the file has."""
        path = self.folder / "tuning.db"
        if not path.exists():
            return 0
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        try:
            with Database(path) as database:
                return len({record.script for record in database.records()})
        finally:
            connection.close()

    def finish(self) -> None:
        """A last run goes on, and ends when it is interrupted."""
        if self.tuner is not None:
            workers = self.tuner.workers
            kill(self.tuner.process.pid)
            self._check_end(self.tuner, workers)
            self.tuner = None
        last = Tuner(self.folder, 100000)
        assert soon(lambda: last.reported >= self.known + 3), last.said
        workers = last.workers
        last.process.send_signal(signal.SIGINT)
        assert last.ended() == "" and last.process.returncode == 0 and last.said[-1] == "end"
        assert len(workers) == len(WORKERS) and gone(workers)
        assert self.scripts() >= last.reported
        space = _space(SIZE)
        text = (self.folder / "log").read_text()
        assert replay(space, text).log() == text, "its log replays the search"


def _space(size: int) -> SketchSpace:
    task = SearchTask(matmul(size, size, size), threads=1)
    return SketchSpace(task.derived.sketches, task.machine)


@needs_proc
def test_kills_lose_nothing(tmp_path: Path) -> None:
    with Campaign(tmp_path, random.Random(1)) as campaign:
        for victim in ("runner", "builder", "tuner"):
            campaign.kill(victim, 0.5)
        campaign.finish()
        assert campaign.known >= 3


def main(kills: int, seed: int) -> None:
    """Kill at random moments, and say what came of it."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="strata-kills-") as folder, Campaign(Path(folder), rng) as campaign:
        for _ in range(kills):
            campaign.kill(rng.choice(VICTIMS), 4.0)
        campaign.finish()
        victims = ", ".join(f"{number} of a {victim}" for victim, number in sorted(campaign.killed.items()))
        print(f"{kills} kills with seed {seed} ({victims}): no trial lost, the last run ended;")
        print(f"{campaign.idle} tuners were killed before their first trial")


# --- candidates that misbehave --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planted:
    """An executor that plants faults in what certain scripts become."""

    inner: LocalExecutor
    faults: Mapping[str, Fault]

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        for position, actual in self.inner.build(scripts):
            fault = self.faults.get(scripts[position])
            if fault is not None and isinstance(actual, Built):
                actual = replace(actual, artefact=fault(actual.artefact))
            yield position, actual

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_candidates_that_misbehave_are_named_and_never_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = SearchTask(matmul(64, 64, 64), threads=1)
    faults = (SEGFAULT, hungry(100), HANG, NOTHING)
    defaults = [c for c in task.space.defaults if c[1]][: len(faults)]  # the program as written is left alone
    planted = dict(zip(map(task.space.script, defaults), faults, strict=True))
    limits = replace(QUICK, run_seconds=3.0)  # far more than any other takes, where others use the machine
    seen: list[Progress] = []

    def faulty(subject: Subject, builders: int | None = None) -> Measurer:
        return Measurer(subject, executor=Planted(LocalExecutor(subject, limits, builders), planted))

    monkeypatch.setattr(workers, "Measurer", faulty)
    path = tmp_path / "tuning.db"
    best = task.tune(TuningOptions(trials=12, database=path, builders=1, callbacks=[seen.append]))
    progress = seen[-1]
    assert progress.trials == 12 and progress.failed == Counter(crash=1, memory=1, timeout=1, wrong=1)
    assert "SIGSEGV" in progress.reasons["crash"] and "3 s" in progress.reasons["timeout"]
    assert all(progress.reasons.values())
    with Database(path) as database:
        records = database.records()
    steps = {r.script: task.space.script(r.candidate) for r in records if r.candidate is not None}
    costs = {r.script: r.outcome.cost for r in records if r.outcome.ok}
    assert best is not None and steps[best.script] not in planted and best.script in costs
    assert {steps[r.script] for r in records if not r.outcome.ok} == set(planted)
    assert task.best(path).script == best.script


# --- two tuners -----------------------------------------------------------------------------------------------------


@needs_proc
def test_two_tuners_share_a_file(tmp_path: Path) -> None:
    tuners = [Tuner(tmp_path, 8, seed, f"log{seed}") for seed in (1, 2)]
    assert [tuner.ended() for tuner in tuners] == ["", ""]
    assert all(tuner.said[-1] == "end" and tuner.process.returncode == 0 for tuner in tuners)
    with Database(tmp_path / "tuning.db") as database:
        records = database.records()
    own = Counter(run for run, _ in {(record.run, record.script) for record in records})
    actual = len({record.script for record in records})
    assert len(own) == 2 and 8 <= actual <= 8 + 4 and all(tuner.reported >= 8 for tuner in tuners)
    for number in (1, 2):
        text = (tmp_path / f"log{number}").read_text()
        assert replay(_space(SIZE), text).log() == text
        told = [json.loads(line).get("update") for line in text.splitlines()]
        assert len({str(candidate) for candidate in told if candidate}) >= 8, "each learns what the other adds"


# --- ends -----------------------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


@contextmanager
def _no_child_left() -> Iterator[None]:
    before = set(_children(os.getpid()))
    yield
    assert gone(sorted(set(_children(os.getpid())) - before))


@needs_proc
@pytest.mark.parametrize("phase", ["building and measuring", "measuring the leaders again"])
def test_a_callback_that_raises_leaves_no_process(phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "Measurer", quick)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def stop(progress: Progress) -> None:
        if progress.phase == phase and progress.trials >= 2:
            raise Stop

    with _no_child_left(), pytest.raises(Stop):
        options = TuningOptions(trials=4, database=tmp_path / "tuning.db", builders=2, callbacks=[stop])
        SearchTask(matmul(64, 64, 64), threads=1).tune(options)
    assert [p.name for p in tmp_path.iterdir()] == ["tuning.db"], "and no file"


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child(*sys.argv[2:])
    else:
        main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
