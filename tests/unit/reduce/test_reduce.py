"""strata-reduce: what is left is small, verifies, and the test holds for it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.filecheck.shell import run_line
from compiler.fuzz.programs import program
from compiler.pipeline.source import parse
from compiler.reduce import main, reduce_module
from compiler.reduce.delta import shortened
from compiler.support.errors import InputError

ROOT = Path(__file__).parents[3]
TENSORS = (ROOT / "examples" / "mm_exp_mm.mlir").read_text()
FAULTY = '''
from dataclasses import dataclass
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class DropExp(ModulePass):
    """Replace exponentials by their operands, which is wrong."""
    name = "drop-exp"

    def apply(self, ctx, op):
        for inner in list(op.walk()):
            if inner.name == "math.exp":
                inner.results[0].replace_all_uses_with(inner.operands[0])
                inner.parent.erase_op(inner)

def register(registry):
    registry.pass_(DropExp)
'''


@pytest.mark.parametrize("needed", [set(), {0}, {99}, {3, 4, 70}, set(range(0, 100, 7)), set(range(100))])
def test_delta_debugging_finds_what_is_needed(needed: set[int]) -> None:
    asked = 0

    def holds(subset: list[int]) -> bool:
        nonlocal asked
        asked += 1
        return needed <= set(subset)

    assert shortened(range(100), holds) == sorted(needed)
    assert asked <= 20 + 12 * len(needed)


def test_no_part_of_a_dependent_set_remains_that_could_go() -> None:
    subset = shortened(range(16), lambda subset: 3 in subset and (5 in subset) == (9 in subset))
    assert subset == [3] or subset == [3, 5, 9]


TESTS: dict[str, tuple[str, Callable[[str], bool], int]] = {
    # name: the text, the test, and the most lines that are shrunk
    "a compute": (TENSORS, lambda text: "math.exp" in text, 10),
    "two computes": (TENSORS, lambda text: "math.exp" in text and "arith.mulf" in text, 16),
    "a function": (TENSORS, lambda text: "@mm_exp_mm" in text, 5),
    "a body": (TENSORS, lambda text: "combine [add]" in text, 10),
    "arithmetic": (
        "func.func @f(%x: i32) -> i32 {\n  %0 = arith.addi %x, %x : i32\n  %1 = arith.muli %0, %x : i32\n"
        "  %2 = arith.subi %1, %0 : i32\n  func.return %2 : i32\n}\nfunc.func @g() {\n  func.return\n}",
        lambda text: "arith.muli" in text,
        6,
    ),
}


@pytest.mark.parametrize("name", TESTS)
def test_what_is_left(name: str) -> None:
    text, holds, most = TESTS[name]
    shrunk = reduce_module(text, holds)
    assert holds(shrunk)
    parse(shrunk)
    assert shrunk.count("\n") <= most, shrunk


@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed: int) -> None:
    text = str(program(random.Random(seed), 4).module)
    op = sorted(set(re.findall(r"(?:arith|math)\.\w+", text)))[-1]
    shrunk = reduce_module(text, lambda candidate: op in candidate)
    parse(shrunk)
    assert op in shrunk and len(shrunk) <= len(text)
    assert shrunk.count("te.compute") <= 1


def test_loops_and_scripts() -> None:
    script = (ROOT / "examples" / "walk_schedule.mlir").read_text()
    shrunk = reduce_module(script, lambda text: "sched.vectorize" in text)
    assert "sched.get_block" in shrunk and shrunk.count("sched.") <= 6


@pytest.mark.parametrize(
    ("text", "error"),
    [("wrong", "Operation wrong is not registered"), (TENSORS.replace("%X[m, l]", "%X[m, q]"), "q")],
)
def test_a_text_that_is_no_program(text: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(text)
    assert main([str(path), "--test", "strata-opt %s"]) == 1
    err = capsys.readouterr().err
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+: error: .*{error}", err), err


def test_a_test_that_does_not_hold() -> None:
    with pytest.raises(InputError, match="the test does not hold for the file"):
        reduce_module(TENSORS, lambda text: False)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no.mlir", "--test", "strata-opt %s"], "no.mlir cannot be read"),
        (["in.mlir", "--test", "strata-opt"], "argument --test: %s, the file, is missing"),
        (["in.mlir", "--test", "strata-opt %s |"], "a command is missing"),
        (["in.mlir", "--test", "no-such-program %s"], "the test does not hold"),
        (["in.mlir"], "arguments are required: --test"),
        (["in.onnx", "--test", "cat %s"], "onnx"),
    ],
)
def test_wrong_arguments(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text(TENSORS)
    assert main(words) == 1
    err = capsys.readouterr().err
    assert sentence in err and "Traceback" not in err, err


def test_a_miscompile_of_a_plugin_s_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pass is run, and what it makes is compared with what it was given, by the canonical hash."""
    (tmp_path / "faulty.py").write_text(FAULTY)
    (tmp_path / "in.mlir").write_text(TENSORS)
    opt = f"strata-opt --load {tmp_path}/faulty.py"
    line = f"{opt} %s -te-canonicalize > %ta && {opt} %s -drop-exp -te-canonicalize > %tb && not diff %ta %tb"
    output = tmp_path / "out.mlir"
    assert main([str(tmp_path / "in.mlir"), "--test", line, "-o", str(output)]) == 0
    assert re.match(r"29 lines to 8 by \d+ tests in .* s: ", capsys.readouterr().out)
    run_line(line.replace("%s", str(output)).replace("%t", f"{tmp_path}/t"), output)


@pytest.mark.doors
def test_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx = pytest.importorskip("onnx")
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("Exp", ["b"], ["c"]),
        helper.make_node("Add", ["c", "a"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(name, f32, [4, 4]) for name in ("x", "y")]
    weight = helper.make_tensor("w", f32, [4, 4], [1.0] * 16)
    model = helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], [weight]))
    onnx.save(model, tmp_path / "in.onnx")
    assert main([str(tmp_path / "in.onnx"), "--test", "strata build %s --emit te | grep math.exp"]) == 0
    assert capsys.readouterr().out.startswith("4 nodes to 1 by ")
    (shrunk,) = onnx.load(tmp_path / "in.reduced.onnx").graph.node
    assert shrunk.op_type == "Exp"
