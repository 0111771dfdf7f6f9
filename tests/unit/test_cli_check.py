"""`strata check`: kernels of a file without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.__main__ import main
from tests.gpu_schedules import product, tiled


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "product.mlir"
    path.write_text(str(tiled(product(17, 23, 5)).module))
    return path


def test_a_right_program_is_said_to_be_right(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert said.endswith("no fault was found, the results are right\n")
    assert "product_C_local: A.shared, shared: " in said and "product_C_local: C, global: " in said


def test_what_is_wrong_is_said_with_status_1(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A result of another block: a race, whatever the order of the blocks."""
    text = file.read_text()
    wrong = text.replace('loop.for "n.0" %n.0 = 2 block_x', 'loop.for "n.0" %n.0 = 3 block_x')
    assert wrong != text
    file.write_text(wrong.replace("%n.0 * 16", "0 * 16"))
    assert main(["check", str(file)]) == 1
    assert "race" in capsys.readouterr().out


def test_a_workload_runs_unbound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "matmul:6x5x4"]) == 0
    assert "the results are right" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "func.func @f() { func.return }", "nonsense"])
def test_wrong_files_end_in_a_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(text)
    assert main(["check", str(path)]) == 1
    assert "Traceback" not in capsys.readouterr().err
