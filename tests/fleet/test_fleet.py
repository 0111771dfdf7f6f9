"""A scheduler and its workers as processes: tuning on them finds what it finds here, whatever happens to them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from compiler import te
from compiler.autotune import SearchTask, TuningOptions
from compiler.autotune.display.progress import Progress
from compiler.database import Database
from compiler.support.errors import InputError, TargetError
from compiler.types.machines import MACHINES, Machine, host
from tests.fleet.clusters import HERE, Processes

pytest.importorskip("distributed", reason="dask.distributed is not installed")
PATIENCE = 20.0


def task(**given: object) -> SearchTask:
    a, b = te.placeholder((48, 64), name="A"), te.placeholder((64, 80), name="B")
    return SearchTask(te.function("f", [a, b], te.nn.relu(te.nn.matmul(a, b))), threads=1, **given)  # type: ignore[arg-type]


def tuned(
    address: str, file: Path, trials: int, each: Callable[[Progress], None] = lambda progress: None, **given: object
) -> list[str]:
    """Tune on a cluster, and give what was said of its workers; all trials are right and in the database."""
    notes: list[str] = []

    def watch(progress: Progress) -> None:
        notes[:] = progress.notes
        each(progress)

    asked = task(**given)
    options = TuningOptions(
        trials=trials, database=file, scheduler=address, patience=PATIENCE, batch=4, callbacks=[watch]
    )
    assert asked.tune(options) is not None
    with Database(file) as database:
        records = database.records(asked.key)
    assert len({record.script for record in records}) == trials
    assert {record.outcome.kind for record in records} == {"measured"}, [record.outcome for record in records]
    return notes


def test_bad_workers_are_named_and_cost_nothing(tmp_path: Path) -> None:
    faults = ("wrong", "impossible", "hang", "version")
    with Processes(tmp_path) as processes:
        for fault in faults:
            processes.worker(fault, fault)
        processes.worker("good")
        processes.ready([*faults, "good"])
        notes = tuned(processes.address, tmp_path / "f.db", 12)
    said = "\n".join(notes)
    assert "it said 'wrong' of a candidate that is right on" in said
    assert "it says that a call took 1e-12 s, and no such machine does it in" in said
    assert f"it has not answered for {PATIENCE:g} s" in said
    assert "cannot be asked: it has strata 0.0.1, this is" in said
    kernel = task().apply_best(tmp_path / "f.db")
    assert kernel.arguments


def test_a_scheduler_and_a_worker_that_die_cost_nothing(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        processes.worker("first")

        def restart() -> None:
            processes.kill("scheduler")
            processes.schedule()

        left = [lambda: processes.kill("first"), restart]

        def kill(progress: Progress) -> None:
            if left and progress.measured >= 4 * (3 - len(left)):
                left.pop(0)()

        processes.worker("second")
        processes.ready(["first", "second"])
        notes = tuned(processes.address, tmp_path / "f.db", 16, kill)
    joined = sum("builders" in note for note in notes)  # dask may have connected again by itself
    assert any("has left" in note for note in notes)
    assert joined >= 3 or any("connecting again" in note for note in notes), notes


def test_a_worker_of_another_model_only_builds_for_this_one(tmp_path: Path) -> None:
    """Each model has its own records in one database."""
    other = MACHINES["sse4"]
    with Processes(tmp_path) as processes:
        processes.worker("here")
        processes.worker("other", machine=other.name)
        tuned(processes.address, tmp_path / "f.db", 6)
        model = _as_worker_says(other.name)
        tuned(processes.address, tmp_path / "f.db", 6, machine=model)
    with Database(tmp_path / "f.db") as database:
        keys = database.keys()
    assert {summary.key.machine for summary in keys} == {host().name, model.name}


def test_the_groups_of_a_whole_program_are_in_flight_together(tmp_path: Path) -> None:
    x = te.placeholder((32, 48), name="X")
    first, second = te.placeholder((48, 64), name="V"), te.placeholder((64, 16), name="W")
    hidden = te.nn.softmax(te.nn.matmul(x, first))
    program = SearchTask(te.function("f", [x, first, second], te.nn.softmax(te.nn.matmul(hidden, second))), threads=1)
    assert len(program.groups) > 1
    with Processes(tmp_path) as processes:
        processes.worker("worker")
        options = TuningOptions(
            trials=4 * len(program.groups), database=tmp_path / "f.db", scheduler=processes.address, batch=2
        )
        best = program.tune(options)
    assert set(best) == {group.name for group in program.groups}
    with Database(tmp_path / "f.db") as database:
        records = database.records()
    assert len(records) >= 4 * len(program.groups) and all(record.outcome.ok for record in records)


def _as_worker_says(name: str) -> Machine:
    """A named machine as a worker here has it."""
    return replace(MACHINES[name], name=f"{host().name} as {name}", cores=host().cores)


@pytest.mark.parametrize("seconds", [3.0, 6.0])
def test_an_interruption_does_not_wait_for_a_scheduler(seconds: float) -> None:
    words = ["tune", "matmul:16x16x16", "--no-database", "--scheduler", "tcp://127.0.0.1:1", "--patience", "600"]
    tuner = subprocess.Popen([sys.executable, "-m", "compiler", *words], stderr=subprocess.PIPE, text=True, cwd=HERE)
    time.sleep(seconds)
    tuner.send_signal(signal.SIGINT)
    _, said = tuner.communicate(timeout=30)
    assert (tuner.returncode, said) == (130, "strata: interrupted\n")


@pytest.mark.parametrize(
    "address", ["nonsense", "tcp://127.0.0.1:1", "http://127.0.0.1:1", "tcp://127.0.0.1", "tcp://127.0.0.1:99999"]
)
def test_an_address_without_a_scheduler_is_a_sentence(address: str) -> None:
    with pytest.raises((InputError, TargetError), match="no scheduler"):
        task().tune(TuningOptions(trials=2, scheduler=address, patience=0.5))
