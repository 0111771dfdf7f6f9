"""Versions of a library under records of their own: the names of machines that match, and the schedules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import strata
from compiler.autotune.task import SearchTask
from compiler.certificate.text import parse
from compiler.database.outcome import Outcome
from compiler.database.record import Record
from compiler.database.store import Database
from compiler.driver.choice import recorded_machine as choice
from compiler.pipeline.certified import check_certificate
from compiler.schedule import Schedule
from compiler.support.errors import InputError
from compiler.types.machines import MACHINES
from compiler.types.selection import compiling_for, machine_for
from strata import te
from tests.unit.targets.libraries import needs_compiler

HERE = replace(MACHINES["znver4"], name="here")


def program() -> te.Function:
    A = te.placeholder((8, 32), name="A")
    return te.function("program", [A], te.nn.relu(A, name="B"))


def recorded(path: Path, name: str, cpu: str, factor: int) -> None:
    """Add a record of a machine of a name, with a split by a factor."""
    with compiling_for(replace(machine_for(cpu), name=name)), Database(path) as database:
        task = SearchTask(program(), threads=1)
        schedule = Schedule(task.module)
        schedule.split(schedule.get_loops(schedule.get_block("map0"))[1], [None, factor])
        outcome = Outcome("measured", (1e-3,) * 3, (1.0,) * 3)
        database.add(Record(task.key, task.name, task.program, str(schedule.script), outcome))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["here as znver4", "here", "there as znver4"], "here as znver4"),
        (["here", "there as znver4", "there as znver4", "elsewhere as znver4"], "there as znver4"),
        (["here", "there", "there as znver4 -fma"], "here"),
        (["there", "there as haswell"], "here as znver4"),
    ],
)
def test_the_records_of_a_version(
    names: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "detect_machine", lambda: HERE)
    for number, name in enumerate(names):
        recorded(tmp_path / "a.db", name, "znver4", 2 + number)
    own = replace(HERE, name="here as znver4")
    assert choice.recorded_machine(own, "znver4", tmp_path / "a.db").name == expected
    if expected == "here as znver4":
        assert choice.recorded_machine(
            own, "znver4", tmp_path / "a.db", "there as znver4" if "here" in names else "there"
        )
    with pytest.raises(InputError, match=r"no records of the machine 'nobody' \(it has records of '"):
        choice.recorded_machine(own, "znver4", tmp_path / "a.db", "nobody")


@needs_compiler
def test_each_version_has_its_own_schedule(tmp_path: Path) -> None:
    recorded(tmp_path / "a.db", machine_for("haswell").name, "haswell", 4)
    recorded(tmp_path / "a.db", "a server", "znver4", 16)
    words = ("haswell", "znver4=a server")
    strata.export(program(), tmp_path / "libf.so", cpus=words, threads=1, schedule=tmp_path / "a.db")
    stated = parse((tmp_path / "f.certificate.json").read_text(), "it")
    factors = {
        v.cpu: [f for f in (4, 16) if f"[-1, {f}]" in group.script] for v in stated.versions for group in v.groups
    }
    assert factors == {"haswell": [4], "znver4": [16]}
    lines = [str(finding) for finding in check_certificate(tmp_path / "libf.so")]
    assert "znver4, group program: proved (under a record of a server)" in lines
    with pytest.raises(InputError, match="'znver4=a server' names records: state a database as schedule="):
        strata.export(program(), tmp_path / "libf.so", cpus=words, threads=1, schedule="written")
