"""`strata check`: kernels of a file without a GPU."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from compiler import te
from compiler.__main__ import main
from compiler.autotune.measure.builder import Built
from compiler.autotune.measure.gpu_builder import GpuBuilder
from compiler.cli import check
from compiler.driver.reference.subject import Subject
from compiler.support.errors import TargetError
from compiler.targets import simt
from compiler.targets.cuda import nvrtc
from tests.gpu_schedules import product, spread_all, tiled
from tests.unit.targets.ptx.kept import kept


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "product.mlir"
    path.write_text(str(tiled(product(17, 23, 5)).module))
    return path


def test_a_right_program_is_said_to_be_right(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert said.endswith("no fault was found, the results are right\n")
    assert "\nestimate for A100: product_C_local: " in said and ", bound by latency; " in said
    assert "product_C_local: A.shared, shared: " in said and "product_C_local: C, global: " in said


def test_what_is_wrong_is_said_with_status_1(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A result of another block: a race, whatever the order of the blocks."""
    text = file.read_text()
    wrong = text.replace('loop.for "n.0" %n.0 = 2 block_x', 'loop.for "n.0" %n.0 = 3 block_x')
    assert wrong != text
    file.write_text(wrong.replace("%n.0 * 16", "0 * 16"))
    assert main(["check", str(file)]) == 1
    assert "race" in capsys.readouterr().out


def test_the_text_of_kernels_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By PTX that NVRTC made of the same kernel, without it and without a barrier."""
    path = tmp_path / "product.mlir"
    path.write_text(str(tiled(product(32, 24, 16)).module))
    text = kept("product").text
    for given, status in ((text, 0), (text.replace("bar.sync", "// bar.sync", 1), 1)):
        monkeypatch.setattr(nvrtc, "ptx", lambda *_, given=given: given)
        assert main(["check", str(path), "--oracle", "ptx"]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "no fault was found, the results are right"
    assert lines[4].startswith(
        "race of a write with a read at A_shared+0: product_C_local, block 0, thread 0, PTX line "
    )


def test_the_text_of_kernels_needs_nvrtc(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvrtc, "_library", lambda: (_ for _ in ()).throw(TargetError(nvrtc.MISSING)))
    assert main(["check", str(file), "--oracle", "ptx"]) == 1
    assert capsys.readouterr().err.endswith(f"strata: error: {nvrtc.MISSING}\n")
    assert main(["check", str(file), "--oracle", "ptx", "--target", "cpu"]) == 1
    assert "the target cpu has no kernels of a GPU" in capsys.readouterr().err


def test_a_workload_runs_unbound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "matmul:6x5x4"]) == 0
    assert "the results are right" in capsys.readouterr().out


def test_a_long_check_says_its_steps_and_ends(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that binds no loop runs on one thread of the simulation, and takes long."""
    now = [0.0]

    def endless(*stated: object, **more: object) -> None:
        now[0] = 100.0
        time.sleep(60)

    monkeypatch.setattr(check, "perf_counter", lambda: now[0])
    monkeypatch.setattr(simt, "run", endless)
    assert main(["check", "matmul:6x5x4", "--seconds", "100"]) == 1
    out, err = capsys.readouterr()
    step = "running the kernels on numpy, where no loop is bound to threads: one thread does all, op by op"
    assert err == f"[ 100.0 s] {step}\n"
    assert out == f"undecided within 100 s, while {step}: --seconds allows more\n"


@pytest.mark.parametrize("text", ["", "func.func @f() { func.return }", "nonsense"])
def test_wrong_files_end_in_a_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(text)
    assert main(["check", str(path)]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_integers_without_a_sign(tmp_path: Path) -> None:
    """Results beyond the greatest of an integer with a sign are right, here and for the tuner."""
    x = te.placeholder((40,), "u8", name="X")
    s = spread_all(te.function("f", [x], te.compute((40,), lambda i: x[i] + 120, name="Y")))
    path = tmp_path / "bytes.mlir"
    path.write_text(str(s.module))
    assert main(["check", str(path)]) == 0
    subject = Subject(str(s.original), None, "contract", 1, 0, "cuda", "sm_80")
    assert isinstance(GpuBuilder(subject)(str(s.script)), Built)


def test_elements_that_nobody_writes_are_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where zero is right."""
    text = "func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) attributes {outputs = 1 : i64} {\n"
    text += '  loop.for "i" %i = 63 thread_x {\n    loop.block "B" [i = 64 at %i] (%a = %A[i] : memref<64xf32>) -> '
    text += "(%B[i] : memref<64xf32>) {\n      %z = arith.subf %a, %a : f32\n      loop.yield %z : f32\n    }\n  }\n"
    file.write_text(f"{text}  func.return\n}}\n")
    assert main(["check", str(file)]) == 1
    assert "unwritten element at B[63]: no block writes it" in capsys.readouterr().out
