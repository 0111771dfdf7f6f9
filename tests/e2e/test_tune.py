"""`strata tune` with real processes on a tiny program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.database import Database
from tests.said import Strata

SCALED = """
func.func @scaled(%X: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %Y = te.compute "Y" [i = 64, j = 64] (%x = %X[i, j] : tensor<64x64xf32>) -> tensor<64x64xf32> {
    %0 = arith.addf %x, %x : f32
    te.yield %0 : f32
  }
  func.return %Y : tensor<64x64xf32>
}
"""

TUNE = ["tune", "matmul:64x64x64", "--trials", "60", "--threads", "1"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("scaled.mlir").write_text(SCALED)
    return "scaled.mlir"


def test_a_tiny_program_is_tuned(file: str, strata: Strata) -> None:
    document = json.loads(strata("tune", file, "--trials", "4", "--threads", "1", "--json", "--log", "log"))
    assert document["name"] == "scaled" and 1 <= document["trials"] <= 4 and not document["failures"]
    assert document["best_seconds"] > 0
    assert document["baseline_seconds"] == pytest.approx(document["gain"] * document["best_seconds"])
    assert strata("db", "best", "strata.db", "--record", str(document["record"])) == document["script"] + "\n"
    said, script = strata("replay", file, "log", "--threads", "1").split("\n", 1)
    named = strata("db", "best", "strata.db", "--record", str(document["record"]), "--names", file)
    assert "// scaled: the search repeats; " in said and script == named != document["script"] + "\n"
    Path("log").write_text(Path("log").read_text().replace("default", "random", 1))
    assert "log: line 2 of the log is not what the search answers now" in strata(
        "replay", file, "log", "--threads", "1", status=1
    )


def test_a_signal_keeps_what_was_measured(file: str) -> None:
    """What a person sees on a pipe, until the first trial is done; then Ctrl-C."""
    command = [sys.executable, "-u", "-m", "compiler", *TUNE]
    path = str(Path(__file__).parents[2])
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "] trial " in line:
                process.send_signal(signal.SIGINT)
                break
        remaining = process.stdout.read()
    assert process.returncode == 130, remaining
    assert (
        "(interrupted): " in remaining
        and "the script: strata db best strata.db" in remaining
        and "Traceback" not in remaining
    )
    with Database("strata.db", create=False) as database:
        assert any(record.outcome.ok for record in database.records())


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=lambda end: end.name)
def test_a_run_leaves_no_file_in_the_temporary_folder(file: str, end: signal.Signals, tmp_path: Path) -> None:
    """One of its processes is killed, then it is ended itself."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-u", "-m", "compiler", *TUNE]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as run:
        assert run.stdout is not None
        next(line for line in run.stdout if "] trial " in line)
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        next(run.stdout)
        run.send_signal(end)
        run.stdout.read()
    assert run.returncode != 0 and list(temporary.iterdir()) == []


def test_a_command_that_is_interrupted_while_it_ends_leaves_no_worker() -> None:
    """A second Ctrl-C cuts short what would end them one by one."""
    code = """
from compiler.support import command, processes
started = processes.start(None)
def ending():
    raise KeyboardInterrupt
assert command.run("strata", ending) == 130
assert started.process.wait(60) == -9
"""
    path = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert (done.returncode, done.stderr) == (0, "strata: interrupted\n")
