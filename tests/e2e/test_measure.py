"""Measuring in worker processes: each way to fail is an outcome with its reason, and the next candidate is measured."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler.autotune.measure.limits import Limits, Sampling
from compiler.autotune.measure.local import EstimatingExecutor, LocalExecutor
from compiler.autotune.measure.measurer import Measurer
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.support import worker_pool
from compiler.support.errors import InputError, TargetError
from compiler.support.processes import Worker, import_path
from compiler.support.worker_pool import WorkerPool
from tests.measuring import (
    ABORT,
    EXIT,
    HANG,
    NOTHING,
    QUICK,
    SEGFAULT,
    Fault,
    Faulty,
    Slow,
    hungry,
    matmul,
    none,
    scripts,
    short_of_a_term,
    split,
    subject,
)
from tests.sample import pairs, some

FUNCTION = matmul()
NONE, SPLIT = scripts(FUNCTION, none, split)
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
"""Seconds after which what a test waits for has failed."""
HUNG = 3.0
"""Seconds after which a worker hangs: far more than a job takes where others use the machine."""


@pytest.fixture(scope="module")
def processes() -> Iterator[LocalExecutor]:
    """Workers that all tests share: none should notice what happened to another."""
    actual = LocalExecutor(subject(FUNCTION), replace(QUICK, run_seconds=HUNG, build_seconds=PATIENCE), 1)
    yield actual
    actual.close()


def measured(
    processes: LocalExecutor, texts: Sequence[str], faults: Mapping[int, Fault] | None = None
) -> list[Outcome]:
    """The outcomes of scripts, in their order."""
    executor = Faulty(processes, faults or {})
    actual = dict(Measurer(subject(FUNCTION), executor=executor).measure(texts))
    assert sorted(actual) == list(range(len(texts)))
    return [actual[position] for position in range(len(texts))]


def test_candidates_are_measured(processes: LocalExecutor) -> None:
    for outcome in measured(processes, [NONE, SPLIT, NONE]):
        assert outcome.ok and not outcome.reason
        assert 1 <= len(outcome.seconds) == len(outcome.rates) <= 2
        assert 0 < outcome.cost < float("inf") and outcome.build_seconds > 0


@pytest.mark.parametrize(
    ("fault", "kind", "reason"),
    [
        (SEGFAULT, "crash", "its process ended with SIGSEGV"),
        (ABORT, "crash", "its process ended with SIGABRT"),
        (EXIT, "crash", "it ended its process with status 3"),
        (HANG, "timeout", f"it took more than {HUNG:g} s"),
        (hungry(100), "memory", "it needs more memory to run than it is allowed"),
        (hungry(3), "memory", "it needs more memory to run than it is allowed"),
        (NOTHING, "wrong", "63 of 63 elements, at [0, 0] nan for"),
        (short_of_a_term, "wrong", "of 63 elements"),
    ],
    ids=["segfault", "abort", "exit", "hang", "memory", "limit", "nothing", "term"],
)
def test_a_fault_is_an_outcome_and_the_next_is_measured(
    processes: LocalExecutor, fault: Fault, kind: str, reason: str
) -> None:
    before, wrong, after = measured(processes, [NONE, NONE, SPLIT], {1: fault})
    assert wrong.kind == kind and reason in wrong.reason
    assert wrong.build_seconds > 0 and not wrong.seconds and wrong.cost == float("inf")
    assert before.ok and after.ok


def test_scripts_that_cannot_be_built(processes: LocalExecutor) -> None:
    refused = SPLIT.replace("[-1, 4]", "[2, 4]")
    assert refused != SPLIT
    unread, step, right = measured(processes, ["nonsense", refused, SPLIT])
    assert unread.kind == step.kind == "refused"
    assert unread.reason.startswith("the script cannot be read: ")
    assert step.reason.startswith("step 3: split")
    assert right.ok


@contextmanager
def met(pool: WorkerPool, act: Callable[[int], None], times: int = 1) -> Iterator[None]:
    """Do something to each of the first processes that get a job, before it can have begun."""
    send, seen = Worker.send, set[int]()

    def sent(worker: Worker, job: object) -> None:
        if worker.ready and worker.pid in pool.pids and worker.pid not in seen and len(seen) < times:
            seen.add(worker.pid)
            act(worker.pid)
        send(worker, job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "send", sent)
        yield
    assert len(seen) == times


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def test_a_runner_that_is_killed_once_costs_nothing(processes: LocalExecutor) -> None:
    (pid,) = processes.runner.pids
    with met(processes.runner, kill):
        assert all(outcome.ok for outcome in measured(processes, [NONE, SPLIT]))
    assert processes.runner.pids != [pid]


def test_a_runner_that_is_killed_twice_is_a_crash(processes: LocalExecutor) -> None:
    with met(processes.runner, kill, 2):
        hung, after = measured(processes, [NONE, SPLIT], {0: HANG})
    assert hung.kind == "crash" and hung.reason == "its process ended with SIGKILL"
    assert after.ok


def test_a_builder_that_is_killed_costs_nothing(processes: LocalExecutor) -> None:
    (pid,) = processes.builders.pids
    with met(processes.builders, kill):
        assert all(outcome.ok for outcome in measured(processes, [NONE, SPLIT]))
    assert processes.builders.pids != [pid]


def test_a_builder_that_takes_too_long_is_a_timeout() -> None:
    executor = EstimatingExecutor(subject(FUNCTION), replace(QUICK, build_seconds=1e-4), 1)  # its builders are enough
    with Measurer(subject(FUNCTION), executor=executor) as measurer:
        ((_, slow),) = measurer.measure([SPLIT])
    assert slow.kind == "timeout" and slow.reason == "it took more than 0.0001 s"


def stop(pid: int) -> None:
    """Halt a process as a person at a terminal may."""
    os.kill(pid, signal.SIGSTOP)


@pytest.mark.parametrize(("role", "times"), pairs(["builders", "runner"], [1, 3]))
def test_a_worker_that_is_stopped_costs_nothing(processes: LocalExecutor, role: str, times: int) -> None:
    """It is no timeout, whatever the limit: somebody else did that."""
    workers: WorkerPool = getattr(processes, role)
    before = workers.pids
    with met(workers, stop, times):
        assert all(outcome.ok for outcome in measured(processes, [NONE, SPLIT]))
    assert workers.pids != before


def test_workers_that_are_stopped_each_time_are_said(processes: LocalExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "MAX_STOPS", 2)
    with (
        met(processes.runner, stop, 3),
        pytest.raises(TargetError, match="the processes that measure cannot work: a signal has stopped them"),
    ):
        measured(processes, [NONE])
    assert all(outcome.ok for outcome in measured(processes, [NONE]))


def test_a_parent_that_was_stopped_excuses_its_workers(
    processes: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its clock says that the limit has passed, and it was not there to see the reply."""
    ahead, clock, wait = [0.0], time.monotonic, worker_pool.wait

    def late(connections: list[Any], seconds: float) -> list[Any]:
        actual = wait(connections, 0.0 if not ahead[0] else seconds)
        ahead[0] = 1000.0
        return actual

    monkeypatch.setattr("compiler.support.worker_pool.wait", late)
    monkeypatch.setattr("compiler.support.worker_pool.time.monotonic", lambda: clock() + ahead[0])
    assert all(outcome.ok for outcome in measured(processes, [NONE]))


PLANTED = ("pickle", "numpy", "compiler", "struct", "xdsl", "sitecustomize", "usercustomize", "queue", "typing")
TUNES = "import sys; from compiler.__main__ import main; sys.exit(main(sys.argv[1:]))"


def test_nothing_in_the_current_folder_is_run(tmp_path: Path) -> None:
    """Neither by workers, nor by what they start."""
    folder, temporary = tmp_path / "current", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    for name in PLANTED:
        (folder / f"{name}.py").write_text(f"import os\nos.close(os.open({str(tmp_path / 'ran')!r}, os.O_CREAT))\n")
    for name in ("gcc", "cc", "ld", "python", "ldconfig"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-P", "-c", TUNES, "tune", "softmax:4x8", "--trials", "2", "--threads", "1", "--quiet"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary), "PATH": f":.:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists() and (folder / "strata.db").exists()


def test_workers_find_modules_where_their_parent_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The package's own place comes last, where no other says it: it is the parent's, installed or not."""
    monkeypatch.setattr(sys, "path", ["", "lib", ".", str(tmp_path)])
    assert import_path() == [str(tmp_path), str(ROOT)]
    monkeypatch.setattr(sys, "path", [str(ROOT), str(tmp_path)])
    assert import_path() == [str(ROOT), str(tmp_path)]


@pytest.mark.parametrize("size", some([3000, 0], 2))
def test_a_full_temporary_folder_is_said_with_its_reason(size: int, tmp_path: Path) -> None:
    """The folder takes nothing, or too little for the reference."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
    done = subprocess.run(
        [sys.executable, "-c", limit + TUNES, "tune", "matmul:32x32x32", "--no-database", "--threads", "1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},  # the limit is for these, too
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "strata: error: the processes that measure cannot" in done.stderr and "File too large" in done.stderr


def test_leaders_take_turns(processes: LocalExecutor) -> None:
    executor = Faulty(processes, {1: SEGFAULT, 2: NOTHING})
    measurer = Measurer(subject(FUNCTION), executor=executor)
    first, crash, wrong, refused, last = measurer.compare([NONE, NONE, NONE, "nonsense", SPLIT], 3)
    assert len(first.seconds) == len(first.rates) == len(last.seconds) == 3
    assert first.ok and last.ok
    assert (crash.kind, wrong.kind, refused.kind) == ("crash", "wrong", "refused")


def test_nothing_starts_while_something_is_timed(tmp_path: Path) -> None:
    pool = WorkerPool(Slow(str(tmp_path)), 3, {}, PATIENCE, PATIENCE)
    try:
        assert list(pool.map([1])) == [(0, 1)], "one worker does the job"
        pool.settle()
        assert {import_path.name for import_path in tmp_path.iterdir()} == set(map(str, pool.pids)) and len(
            pool.pids
        ) == 3
        assert pool.busy == []
    finally:
        pool.close()


def test_parallel_loops_run_on_their_threads_and_no_more_samples_are_taken_than_the_limits_say() -> None:
    def parallel(s: object) -> None:
        s.parallel(s.get_loops(s.get_block("C"))[0])  # type: ignore[attr-defined]

    limits = Limits(sampling=Sampling(min_seconds=1e-3, min_samples=2, max_samples=3, spread=0.0, seconds=PATIENCE))
    with Measurer(subject(FUNCTION, threads=2), limits, 1) as measurer:
        ((_, outcome),) = measurer.measure(scripts(FUNCTION, parallel))
    assert outcome.ok
    assert 2 <= len(outcome.seconds) <= 3, "a disturbed one is left out where the others are enough"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "Operation nonsense is not registered"),
        ("func.func @f(%A: memref<4xf32>) {\n  func.return\n}", "the program is at the low level"),
    ],
)
def test_a_program_that_cannot_be_measured_is_refused_in_words(text: str, said: str) -> None:
    with Measurer(Subject(text), QUICK, 1) as measurer, pytest.raises(InputError, match=said):
        list(measurer.measure([NONE]))


def test_workers_that_are_left_in_the_middle_are_replaced(processes: LocalExecutor) -> None:
    measurer = Measurer(subject(FUNCTION), executor=Faulty(processes, {1: HANG}))
    for _ in measurer.measure([NONE, NONE]):
        break
    assert all(outcome.ok for outcome in measured(processes, [NONE]))


def gone(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not show its processes")
@pytest.mark.parametrize("how", some([signal.SIGKILL, signal.SIGINT], 2), ids=lambda how: how.name)
def test_no_worker_survives_its_parent(how: signal.Signals, tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.measuring"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # a parent that is killed leaves its files
    )
    assert parent.stdout is not None
    pids = parent.stdout.readline().split()
    assert len(pids) == 2 and not any(map(gone, pids))
    time.sleep(1.0)  # the candidate that never ends has begun, or is being built
    parent.send_signal(how)
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + PATIENCE
    while not all(map(gone, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert all(map(gone, pids))
