"""`strata explain --target`: estimates of a GPU's kernels, by group."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import compiler
from compiler import te
from compiler.__main__ import main
from tests.gpu_schedules import product, tiled


def network() -> te.Function:
    x, w, v = (te.placeholder(shape, name=name) for shape, name in (((8, 16), "X"), ((16, 16), "W"), ((16, 4), "V")))
    hidden = te.nn.relu(te.nn.matmul(x, w, name="h"), name="hidden")
    return te.function("mlp", [x, w, v], te.nn.softmax(te.nn.matmul(hidden, v, name="y"), name="result"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.mlir"
    path.write_text(str(network().module))
    return path


def test_a_table_has_each_launch(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(file), "--target", "cuda", "--arch", "sm_90"]) == 0
    first, _, heading, *rows = capsys.readouterr().out.rstrip().splitlines()
    assert first.startswith("H100, estimated: ") and "bound by latency" in first
    assert heading.split()[:5] == ["group", "kernel", "calls", "blocks", "threads"]
    assert len(rows) == len(compiler.build(network(), "cuda", schedule="auto", arch="sm_90").launches)


def test_json_has_the_terms_of_a_program_of_loops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "product.mlir"
    path.write_text(str(tiled(product(32, 24, 16)).module))
    assert main(["explain", str(path), "--target", "cuda", "--json"]) == 0
    (launch,) = json.loads(capsys.readouterr().out)
    assert launch["group"] == "product" and launch["grid"] == [2, 2, 1]
    assert launch["bound"] == "latency" and launch["cycles"] >= launch["latency"] > launch["issue"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--arch", "sm_90"], "--arch is the architecture of a GPU: give its --target, too"),
        (["--target", "cuda", "--loop", "1"], "--loop is of machine code, and --target explains the kernels of a GPU"),
        (["--target", "cuda", "--try", "2"], "--try is of machine code"),
        (["--target", "cuda", "--arch", "sm_1"], "no GPU of the architecture 'sm_1' is described"),
        (["--target", "cpu"], "the target cpu has no kernels of a GPU"),
        (["--target", "gpu"], "gpu"),
        (["--target", "cuda", "--group", "none"], "none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_options_end_in_a_sentence(
    file: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(file), *options]) == 1
    assert message in capsys.readouterr().err
