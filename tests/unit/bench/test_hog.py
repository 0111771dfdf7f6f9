"""The comparison of tuning in quiet and beside a hog: what it keeps, skips and says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import busy
from benchmarks.busy import Found, How, hog, holds, kept_to, main, rows
from compiler.bench.contenders import Contender, Settings
from compiler.bench.harness import Measurement, Run
from compiler.bench.workload import Workload
from compiler.targets.cpu.presence import Disturbance

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are kept to no processors")
NAMES = ["matmul:8x8x8", "swish:8x8"]


def found(name: str, ratio: float) -> Found:
    return Found(name, 2.0, 2.0 * ratio, 0.0, 0.5, 0.01)


def test_a_table_says_whether_the_bounds_hold() -> None:
    good = [found("a", 1.1), found("b", 0.9)]
    assert holds(good) and not holds([found("a", 1.13), found("b", 0.5)]) and not holds([found("a", 1.06)])
    head, _, first, second, last = rows(good)
    assert first == "| a | 2 | 2.2 | 1.100 | 0% | 50% | 1% |" and "| b | 2 | 1.8 | 0.900 |" in second
    assert len(head.split("|")) == len(first.split("|"))
    assert last == "geometric mean 0.995 (at most 1.05), worst 1.100 (at most 1.12)"


def test_what_is_finished_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def run(name: str, how: How, folder: Path) -> Found:
        if len(made) == 1:
            made.append("interrupted")
            raise KeyboardInterrupt
        made.append(name)
        return found(name, 1.2 if name == NAMES[0] else 1.0)

    monkeypatch.setattr(busy, "run", run)
    arguments = [*NAMES, "--folder", str(tmp_path / "new"), "--trials", "3"]
    with pytest.raises(KeyboardInterrupt):
        main(arguments)
    assert main(arguments) == 1 and made == [NAMES[0], "interrupted", NAMES[1]]
    assert main([NAMES[1], *arguments[2:]]) == 0 and len(made) == 3
    assert "geometric mean 1.000" in capsys.readouterr().out.splitlines()[-1]
    assert main([*arguments, "--pinned"]) == 1 and len(made) == 5, "it is another measurement"
    (kept,) = (tmp_path / "new").glob("3-0-1-5ms.json")
    assert set(json.loads(kept.read_text())) == set(NAMES)


def test_a_workload_is_tuned_without_and_with_a_hog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned: list[tuple[str, bool]] = []

    def tune(workload: Workload, how: How, path: Path, beside_hog: bool) -> Disturbance:
        tuned.append((path.name, beside_hog))
        return Disturbance(1.0, 0.5 if beside_hog else 0.0)

    def compare(workload: Workload, threads: int, paths: Sequence[Path]) -> Measurement:
        measurement = Measurement(workload, Settings(threads), busy.PLAN, 0)
        for path, seconds in zip(paths, (2e-3, 3e-3), strict=True):
            who = Contender(path.stem, "", str, lambda *given: lambda: None)  # type: ignore[arg-type, return-value]
            measurement.runs.append(Run(who, lambda: None, None, [seconds]))  # type: ignore[arg-type, return-value]
        return measurement

    monkeypatch.setattr(busy, "tune", tune)
    monkeypatch.setattr(busy, "compare", compare)
    comparison = busy.run(NAMES[0], How(trials=2), tmp_path)
    assert tuned == [("matmul_8x8x8-2-0-1-5ms-quiet.db", False), ("matmul_8x8x8-2-0-1-5ms-busy.db", True)]
    assert comparison == Found(NAMES[0], 2.0, 3.0, 0.0, 0.5, 0.0) and comparison.ratio == 1.5


def test_a_hog_keeps_to_its_processor_and_ends() -> None:
    place = busy.measuring()
    with hog(place, 1e-3) as process:
        assert os.sched_getaffinity(process.pid) == {place} and process.poll() is None
    assert process.poll() == -signal.SIGKILL


def test_a_hog_ends_with_its_parent() -> None:
    """A parent that is killed cannot end it; the hog closes what it writes to."""
    parent = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1], '1e-3']).wait()"
    with subprocess.Popen([sys.executable, "-c", parent, busy.HOG], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "spinning\n"
        process.kill()
        assert process.stdout.read() == ""


def test_a_process_is_kept_to_a_processor_for_a_while() -> None:
    before, place = os.sched_getaffinity(0), busy.measuring()
    with kept_to(place):
        assert os.sched_getaffinity(0) == {place}
    assert os.sched_getaffinity(0) == before
