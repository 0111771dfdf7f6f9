"""Machines: the one at hand, those that STRATA_MACHINE names, and code for one that is not here."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.__main__ import main
from compiler.autotune import SearchTask
from compiler.driver import build_unit
from compiler.support.errors import TargetError
from compiler.support.processes import Worker
from compiler.support.worker import Ready
from compiler.types import machines as machines
from compiler.types.machines import MACHINES, VARIABLE, Machine, detect_machine, host, missing_features
from tests.programs import applied

ROOT = Path(__file__).parents[3]
x86 = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="named machines are of x86-64")
Believe = Callable[[str], Machine]


@pytest.fixture
def believe(monkeypatch: pytest.MonkeyPatch) -> Believe:
    """Set STRATA_MACHINE."""

    def believed(name: str) -> Machine:
        monkeypatch.setenv(VARIABLE, name)
        return host()

    return believed


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine at hand that has nothing but what all of x86-64 have."""
    real = detect_machine()
    actual = replace(real, features="+sse2")
    machines._named.cache_clear()
    monkeypatch.setattr(machines, "detect_machine", lambda: actual)
    yield actual
    machines._named.cache_clear()


softmax = partial(applied, te.nn.softmax, (16, 40), name="softmax")


X = np.random.default_rng(0).standard_normal((16, 40)).astype(np.float32)


def test_the_machine_at_hand(believe: Believe) -> None:
    assert believe("") is believe("host") is detect_machine()
    assert missing_features(detect_machine()) == ()


@x86
@pytest.mark.parametrize("name", MACHINES)
def test_a_named_machine_has_its_row_and_the_cores_of_this_one(name: str, believe: Believe) -> None:
    actual = believe(name)
    assert actual.name == f"{detect_machine().name} as {name}"
    assert actual == replace(MACHINES[name], name=actual.name, cores=detect_machine().cores)


def test_an_unknown_machine_is_refused_with_the_list(believe: Believe, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"STRATA_MACHINE is 'avx3', but there are only host, {', '.join(MACHINES)}"
    with pytest.raises(TargetError, match=re.escape(words)):
        believe("avx3")
    assert main(["run", str(ROOT / "examples/mm_exp_mm.mlir")]) == 1
    assert capsys.readouterr() == ("", f"strata: error: {words}\n")


def test_code_for_another_architecture_is_built_and_not_run(believe: Believe) -> None:
    other = "neoverse-n1" if machines.architecture() == "x86_64" else "haswell"
    assert missing_features(believe(other)) == (believe(other).architecture,)
    x = te.placeholder((8,), name="x")
    kernel = compiler.build(te.function("f", [x], te.nn.add(x, x)), threads=1)
    assert kernel.text("asm")
    with pytest.raises(TargetError, match="cannot run here: this processor lacks"):
        kernel(np.ones(8, np.float32))


@x86
@pytest.mark.parametrize(
    ("name", "widest", "lacks"),
    [("sse4", "xmm", ("ymm", "zmm", "vfmadd")), ("avx2", "ymm", ("zmm",)), ("avx512-amx", "zmm", ())],
)
def test_code_has_the_machine_s_registers_only(
    name: str, widest: str, lacks: tuple[str, ...], believe: Believe
) -> None:
    believe(name)
    text = compiler.build(softmax()).text("asm")
    assert f"%{widest}" in text
    assert not [register for register in lacks if register in text]


@x86
@pytest.mark.parametrize("name", ["sse4", "avx2"])
def test_every_x86_64_of_these_years_runs_it(name: str, believe: Believe) -> None:
    machine = believe(name)
    if missing_features(machine):
        pytest.skip(f"this processor lacks {missing_features(machine)}")
    expected = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    np.testing.assert_allclose(compiler.build(softmax())(X), expected, rtol=1e-5)


@x86
def test_code_for_what_is_not_here_is_built_and_not_run(
    believe: Believe, bare: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    believe("avx2")
    kernel = compiler.build(softmax())
    assert "%ymm" in kernel.text("asm")
    words = re.escape(f"code for '{bare.name} as avx2' cannot run here: this processor lacks avx, avx2, bmi, bmi2,")
    for run in (lambda: kernel(X), kernel.bound(X), lambda: kernel.time(X)):
        with pytest.raises(TargetError, match=words):
            run()
    with pytest.raises(TargetError, match=words):
        build_unit(softmax()).call.load()(X)
    path = str(ROOT / "examples/mm_exp_mm.mlir")
    assert main(["run", path]) == 1
    assert re.search(words, capsys.readouterr().err)
    assert main(["build", path, "--emit", "asm"]) == 0
    assert "%ymm" in capsys.readouterr().out


@x86
def test_commands_say_the_machine(believe: Believe, capsys: pytest.CaptureFixture[str]) -> None:
    machine = believe("sse4")
    assert main(["build", str(ROOT / "examples/mm_exp_mm.mlir"), "--emit", "loop"]) == 0
    assert capsys.readouterr().err == f"strata: code for {machine.name}, vectors of 128 bits\n"
    believe("")
    assert main(["build", str(ROOT / "examples/mm_exp_mm.mlir"), "--emit", "loop"]) == 0
    assert capsys.readouterr().err == ""


@x86
def test_records_of_a_named_machine_are_its_own(believe: Believe) -> None:
    keys = []
    for name in ("", *MACHINES):
        believe(name)
        keys.append(SearchTask(softmax(), threads=1).key)
    assert len({key.machine for key in keys}) == len(keys) and len({key.program for key in keys}) == 1


class Named:
    """A worker that replies with the name of its machine."""

    memory_bytes = 1 << 34

    def start(self) -> Callable[[object], str]:
        return lambda job: host().name


@x86
def test_workers_work_for_the_same_machine(believe: Believe) -> None:
    machine = believe("avx2")
    worker = Worker(Named(), {})
    try:
        assert isinstance(worker.receive(), Ready)
        worker.send("which machine?")
        assert worker.receive() == machine.name
    finally:
        worker.kill()


def kilobytes(text: str) -> int:
    number, unit = text.split()
    return int(number) << {"KiB": 0, "MiB": 10}[unit]


def test_the_document_has_the_machines() -> None:
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]]
        for line in (ROOT / "docs/machines.md").read_text().splitlines()
        if line.startswith("| `") and line.count("|") == 9
    ]
    stated = {
        name: (cpu, int(bits), int(registers), *(kilobytes(size) << 10 for size in caches))
        for name, cpu, bits, registers, *caches, _ in rows[2:]
    }
    assert stated == {
        name: (m.cpu, m.vector_bits, m.registers, m.l1_bytes, m.l2_bytes, m.l3_bytes) for name, m in MACHINES.items()
    }
