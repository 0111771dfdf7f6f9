"""Locations as mlir-opt prints them: aliases in any order, ranges, metadata, call sites."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, NameLoc
from xdsl.dialects.func import FuncOp

from compiler import universe
from compiler.dialects.parser import Parser
from compiler.opt import main
from compiler.support import spans

MLIR_OPT = "mlir-opt-22"
TEXT = """func.func @f(%a: f32 loc("x"), %b: memref<4xf32>) -> f32 {
  %c = arith.addf %a, %a : f32 loc("m.py":3:4)
  %d = arith.mulf %c, %a : f32 loc(callsite("m.py":3:4 at "n.py":1:2))
  %e = arith.mulf %d, %a : f32 loc(fused<"meta">["m.py":3:4, "n.py":1:2])
  affine.for %i = 0 to 4 {
    affine.store %e, %b[%i] : memref<4xf32>
  } loc("n"("m.py":9:9))
  func.return %e : f32 loc("end")
}
"""
ALIASES = """#outer = loc("net.layer"(#inner))
func.func @f(%a: f32 loc(#inner)) -> f32 {
  %c = arith.addf %a, %a : f32 loc(#pair)
  func.return %c : f32 loc(#outer)
} loc(#outer)
#inner = loc("m.py":3:4 to :9)
#pair = loc(fused[#outer, #inner])
"""


def module(text: str) -> ModuleOp:
    return Parser(universe.context(), text, "f.mlir").parse_module()


def test_aliases_may_stand_behind_their_uses() -> None:
    (function,) = module(ALIASES).ops
    assert isinstance(function, FuncOp)
    add, end = function.body.block.ops
    assert isinstance(function.location, NameLoc) and function.location.desc.data == "net.layer"
    assert isinstance(function.args[0].location, FileLineColLoc)
    assert spans.of_location(add.location) == spans.Span("m.py", 3, 4)
    assert function.location == end.location


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (ALIASES.replace("#inner = ", "#inmost = "), "the location '#inner' is not defined"),
        (ALIASES.replace('loc("m.py":3:4 to :9)', "loc(#pair)"), "the location '#\\w+' is not defined"),  # a cycle
        (ALIASES + '#inner = loc("again":1:1)\n', "re-declaration of alias '#inner'"),
        ("#one = 1 : i32\nfunc.func @f() {\n  func.return loc(#one)\n}", "'#one' is no location"),
        ('func.func @f() {\n  func.return loc("m.py":3)\n}', "Expected ':'"),
        ("func.func @f() {\n  func.return loc(fused<1 : i32>)\n}", r"\["),
        ("func.func @f() {\n  func.return loc(\n}", "location"),
    ],
)
def test_a_wrong_location_is_refused(
    text: str, sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "in.mlir"
    file.write_text(text)
    assert main([str(file)]) == 1
    assert re.search(sentence, capsys.readouterr().err)


@pytest.mark.skipif(shutil.which(MLIR_OPT) is None, reason=f"{MLIR_OPT} is not installed")
def test_locations_of_mlir_opt_are_read_and_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    theirs = _mlir_opt(TEXT)
    file = tmp_path / "in.mlir"
    file.write_text(theirs)
    assert main([str(file), "--print-debuginfo"]) == 0
    ours = _mlir_opt(capsys.readouterr().out)
    assert _without_variables(theirs) == _without_variables(ours)


def _without_variables(text: str) -> str:
    """A text without the locations of loops' variables, which xDSL does not print."""
    return "\n".join(line for line in text.splitlines() if "affine.for" not in line and "-:" not in line)


def _mlir_opt(text: str) -> str:
    words = [MLIR_OPT, "-", "--mlir-print-debuginfo", "--mlir-print-local-scope"]
    return subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout


def test_resources_of_tools_are_skipped() -> None:
    trailer = '{-#\n  external_resources: {\n    tool: {\n      a: "b",\n      c: true,\n      d: 3\n    }\n  }\n#-}\n'
    assert str(module(TEXT + trailer)) == str(module(TEXT))
