"""A whole program tuned with real processes: its groups, the kernel of them all, and runs that end early."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.database import Database
from compiler.database.outcome import NETWORK
from compiler.driver.building import STAYS
from tests.sample import some
from tests.whole import CONSTANTS, M, N, whole

NAMES = ["net.group_0", "net.group_1", "net.group_2"]
TUNE = ["tune", "net.mlir", "--threads", "1", "--constants", ",".join(CONSTANTS), "--trials", "7"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the program, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.mlir").write_text(whole())
    return tmp_path


def test_a_program_of_three_groups_is_tuned(here: Path) -> None:
    task = SearchTask(here / "net.mlir", threads=1, constants=CONSTANTS)
    records = task.tune(TuningOptions(trials=6, database=here / "net.db", builders=1))
    assert list(records) == NAMES and all(r.outcome.ok and r.key.timing == NETWORK for r in records.values())
    random = np.random.default_rng(0)
    x, w, b, g = (random.uniform(-1, 1, s).astype(np.float32) for s in ((M, N), (N, N), (N,), (N,)))
    kernel = task.apply_best(here / "net.db", {"W": w, "b": b, "g": g})
    right = np.maximum(x + (x @ w + np.exp(g)) @ w + b, 0)
    np.testing.assert_allclose(kernel(x), right, rtol=1e-4, atol=1e-5)
    groups = {f"net.{group.name}": group for group in kernel.groups}
    assert all((groups[name].source == "record") != (STAYS in groups[name].verdict) for name in NAMES)
    actual = task.breakdown(records)
    assert actual.total is not None and actual.total > 0 and actual.whole > 0
    assert [group.occurrences for group in actual.groups] == [2, 1, 1]


def until(text: str) -> subprocess.Popen[str]:
    """A run that has printed some text."""
    path = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "compiler", *TUNE],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return process
    raise AssertionError(f"it ended with {process.wait()} before it printed {text!r}")


@pytest.mark.parametrize("number", some([signal.SIGINT, signal.SIGKILL], 2))
def test_a_signal_keeps_what_was_measured_of_each_group(here: Path, number: signal.Signals) -> None:
    """Once a group has had its first turn; then the same command goes on."""
    with until(f"s] {NAMES[0]}, 2 calls: ") as process:
        process.send_signal(number)
        assert process.stdout is not None
        out = process.stdout.read()
    if number == signal.SIGINT:
        assert process.returncode == 130 and "the scripts: strata db best strata.db --task net" in out
        assert "Traceback" not in out
    with Database("strata.db", create=False) as database:
        before = [record.uuid for record in database.records() if record.name == NAMES[0]]
        assert before and len(database.records()) < 7
    task = SearchTask(here / "net.mlir", threads=1, constants=CONSTANTS)
    records = task.tune(TuningOptions(trials=7, database="strata.db", builders=1))
    assert list(records) == NAMES
    with Database("strata.db", create=False) as database:
        assert [record.uuid for record in database.records() if record.name == NAMES[0]][: len(before)] == before
