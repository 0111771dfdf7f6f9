"""Wrong pipelines, options and files end in a sentence, and a caret under what is wrong."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler import te, universe
from compiler.__main__ import main as strata
from compiler.opt import main as strata_opt
from compiler.support import spans
from compiler.support.errors import LoweringError, StrataError
from strata.passes import parse, parse_passes, run
from tests.said import refusal

FILE = "in.mlir"
GOOD = "func.func @f() {\n  func.return\n}\n"
TE = """func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {
  %C = te.compute "C" [m = 4] (%a = %A[m] : tensor<4xf32>) -> tensor<4xf32> {
    te.yield %a : f32
  }
  func.return %C : tensor<4xf32>
}
"""
OUTSIDE = """func.func @f(%A: memref<4xf32>) {
  %c = arith.constant 9 : index
  %x = arith.constant 1.0 : f32
  memref.store %x, %A[%c] : memref<4xf32>
  func.return
}
"""
SCRIPT = TE + "\ntransform.named_sequence @s(%f: !transform.any_op {transform.readonly}) {\n"
SPLIT = """  %c = sched.get_block %f "C"
  %m = sched.get_loops %c : !sched.loop
  %o, %i = sched.split %m by [2, 1] : !sched.loop, !sched.loop
  transform.yield
}
"""
Case = tuple[list[str], str, str, str, str]
"""Arguments, the text of in.mlir, and of what is said: the place, the sentence, and what is underlined."""

PIPELINES: dict[str, Case] = {
    "pass": (["-p", "te-to-loop,tlie{x=1}"], GOOD, "<passes>:1:12", "there is no pass 'tlie'; did you mean", "tlie"),
    "empty pass": (["-p", "cse,,cse"], GOOD, "<passes>:1:5", "an empty name", ","),
    "last comma": (["-p", "cse,"], GOOD, "<passes>:1:5", "an empty name", ""),
    "option": (["-p", "tile{blok=C}"], GOOD, "<passes>:1:6", ".*no option 'blok'; did you mean 'block'", "blok"),
    "value": (["-p", "tile{block=C axes=m,l sizes=16,}"], GOOD, "<passes>:1:32", ".*expected a value of 'sizes'", "}"),
    "no value": (["-p", "tile{block= axes=m}"], GOOD, "<passes>:1:12", ".*expected a value of 'block'", " "),
    "type": (["-p", "tile{block=C axes=m sizes=x}"], GOOD, "<passes>:1:27", ".*which 'x' is not", "x"),
    "number": (["-p", "tile{block=C axes=m sizes=1.5}"], GOOD, "<passes>:1:27", ".*which '1.5' is not", "1.5"),
    "list for one": (["-p", "loop-to-low{policy=a,b}"], GOOD, "<passes>:1:20", ".*which 'a,b' is not", "a,b"),
    "flag": (["-p", "cse,loop-to-low{policy}"], GOOD, "<passes>:1:17", ".*and has no value", "policy"),
    "twice": (["-p", "loop-to-low{policy=fast policy=fast}"], GOOD, "<passes>:1:25", ".*given twice", "policy"),
    "missing": (["-p", "cse,unroll{block=C}"], GOOD, "<passes>:1:5", '.*requires argument "loop"', "unroll"),
    "brace": (["-p", "cse,tile{block=C"], GOOD, "<passes>:1:9", "unbalanced braces", "{"),
    "other brace": (["-p", "cse}"], GOOD, "<passes>:1:4", "unbalanced braces", "}"),
    "behind": (["-p", "tile{block=C}x"], GOOD, "<passes>:1:14", ".*there is more after the '}'", "x"),
    "punctuation": (["-p", "tile{block=C =}"], GOOD, "<passes>:1:13", ".*expected an option", " "),
    "pipeline's": (["-p", "cpu{policy=fast}"], GOOD, "<passes>:1:1", "'cpu' is a pipeline", "cpu{policy=fast}"),
    "no anchor": (["--pass-pipeline", " cse"], GOOD, "<passes>:1:2", "a pass pipeline is written", "cse"),
    "anchor": (["--pass-pipeline", "any(cse,x.y(cse))"], GOOD, "<passes>:1:9", "'x.y.*is not a pass", "x.y"),
    "nested": (["--pass-pipeline", "any(func.func(csee))"], GOOD, "<passes>:1:15", "there is no pass 'csee'", "csee"),
    "second line": (["-p", "cse,\n  csee"], GOOD, "<passes>:2:3", "there is no pass 'csee'", "csee"),
    "level": (["-p", "te-to-loop,unroll{block=C loop=m}"], GOOD, "in.mlir:1:1", "unroll: no function", "unroll{.*}"),
}
FILES: dict[str, Case] = {
    "op": ([], "func.func @f() {\n  func.retrun\n}", "in.mlir:2:3", "Operation func.retrun is not", "func.retrun"),
    "op with a result": ([], "func.func @f() {\n  %0 = arith.ad\n}", "in.mlir:2:8", ".*arith.ad is not", "arith.ad"),
    "dialect": ([], '"no.such"() : () -> ()', "in.mlir:1:1", ".*no.such is not registered", '"no.such"'),
    "type": ([], "func.func @f(%x: !no.such) {}", "in.mlir:1:26", ".*no.such", "\\)"),
    "value": ([], "func.func @f() -> i32 {\n  func.return %x : i32\n}", "in.mlir:2:15", "%x is used but not", "%x"),
    "axis": ([], TE.replace("%A[m]", "%A[j]"), "in.mlir:2:40", "unknown axis 'j'", "j"),
    "extent": ([], TE.replace("m = 4", "m = 5"), "in.mlir:2:3", ".*", "%C"),
    "dominance": (
        [],
        "func.func @f() {\n  %a = arith.addi %b, %b : i32\n  %b = arith.constant 1 : i32\n  func.return\n}",
        "in.mlir:2:3",
        ".*uses '%b' before",
        "%a",
    ),
    "result": ([], GOOD.replace("()", "() -> i32"), "in.mlir:2:3", "Expected arguments", "func.return"),
    "constant": ([], GOOD.replace("  ", "  %0 = arith.constant 999 : i8\n  "), "in.mlir:2:3", "Integer value 999", "%"),
    "second piece": (["--split-input-file"], GOOD + "// -----\n\n  wrong\n", "in.mlir:6:3", ".*wrong is not", "wrong"),
    "tabs": ([], "func.func @f() {\n\t\tfunc.retrun\n}", "in.mlir:2:3", ".*func.retrun", "func.retrun"),
    "level of an op": (
        ["-p", "te-to-loop"],
        TE.replace("func.return", "%D = tensor.cast %C : tensor<4xf32> to tensor<4xf32>\n  func.return"),
        "in.mlir:5:3",
        "'tensor.cast' is not an op of the te level",
        "%D",
    ),
    "after a pass": (["-p", "te-to-loop,unroll{block=C loop=k}"], TE, "<passes>:1:27", ".*no loop 'k'", "loop=k"),
    "after passes": (
        ["-p", "te-to-loop,split{block=C loop=m factors=2,2},split{block=C loop=m factors=2}"],
        TE,
        "<passes>:1:60",
        ".*no loop 'm'",
        "loop=m",
    ),
    "lowered": (
        ["-p", "te-to-loop", "-t", "llvm"],
        TE,
        "in.mlir:2:3",
        "at the loop level: with -p cpu it is lowered",
        "%C",
    ),
    "bounds": (["-p", "check-bounds"], OUTSIDE, "in.mlir:4:3", ".*'memref.store' leaves %A", "memref.store"),
    "loop kind": (
        ["-p", "te-to-loop,bind-threads{block=C thread-x=m},loop-to-low"],
        TE,
        "in.mlir:2:3",
        "loop 'm' is bound to thread_x",
        "%C",
    ),
    "step": (["-p", "te-to-loop,apply-schedule"], SCRIPT + SPLIT, "in.mlir:11:3", "split: loop 'm': the factors", "%o"),
    "step of a file": (
        ["-p", 'te-to-loop,apply-schedule{script="steps.mlir"}'],
        TE,
        "steps.mlir:11:3",
        ".*split: loop 'm': the factors",
        "%o",
    ),
    "stated place": (
        [],
        'func.func @f() -> i32 {\n  func.return loc("model.py":7:5)\n}',
        "model.py:7:5",
        "Expected",
        "scale",
    ),
}
OPTIONS: dict[str, Case] = {
    "flag": (["--no-such-flag"], GOOD, "strata", "unrecognized arguments: --no-such-flag", "--no-such-flag"),
    "words": (["more", "files"], GOOD, "strata", "unrecognized arguments: more files", "more"),
    "choice": (["-t", "ptx"], GOOD, "strata", "invalid choice: 'ptx'", "ptx"),
    "no argument": (["-o"], GOOD, "strata", "expected one argument", "-o"),
    "no file": (["-o", "no/such"], GOOD, "strata", "no/such cannot be written", "no/such"),
    "strata: command": (["fly"], "", "strata", "invalid choice: 'fly'", "fly"),
    "strata: count": (["tune", "matmul_512", "--trials", "x"], "", "strata", "'x' is not an integer", "x"),
    "strata: value": (["tune", "matmul_512", "--trials=-1"], "", "strata", "'-1' is not an integer", "-1"),
    "strata: scale": (["space", "matmul_512", "--scale", "1/0"], "", "strata", "--scale: ", "1/0"),
    "strata: missing": (["run"], "", "strata", "are required: file", ""),
    "strata: no such file": (["run", "nowhere.mlir"], "", "strata", "nowhere.mlir cannot be read", "nowhere.mlir"),
    "strata: level": (["build", FILE, "--emit", "cobol"], GOOD, "strata", "invalid choice: 'cobol'", "cobol"),
    "strata: target": (["tune", FILE, "--target", "tpu"], TE, "strata", "'tpu'", "tpu"),
    "strata: shape": (["run", FILE, "--shape", "N"], GOOD, "strata", "'N' is neither", "N"),
}
STRATA: dict[str, Case] = {
    "text": (["run", FILE], "wrong", "in.mlir:1:1", "Operation wrong is not registered", "wrong"),
    "verifier": (["build", FILE, "--emit", "low"], TE.replace("m = 4", "m = 5"), "in.mlir:2:3", "", "%C"),
    "bounds": (["run", FILE], OUTSIDE, "in.mlir:4:3", ".*'memref.store' leaves %A", "memref.store"),
    "standard input": (["hash", "-"], "wrong", "<stdin>:1:1", "Operation wrong", "wrong"),
}


def underlined(err: str) -> str:
    """What the caret stands under."""
    line, marks = err.splitlines()[-2:]
    start = marks.index("^")
    assert re.sub(r"[^\t]", " ", line[:start]) == marks[:start], "tabs stay tabs"
    return line[start : len(marks)]


def refused(command: Callable[[list[str]], int], case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, text, place, sentence, word = case
    Path(FILE).write_text(text)
    assert command(arguments) == 1
    err = capsys.readouterr().err
    assert re.match(f"{re.escape(place)}(-opt)?: error: .*{sentence}", refusal(err)), err
    assert re.fullmatch(word, underlined(err)), err


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("steps.mlir").write_text(SCRIPT + SPLIT)
    Path("model.py").write_text("\n" * 6 + "x = scale(y)\n")


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(lambda arguments: strata_opt([FILE, *arguments]), PIPELINES[name], capsys)


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(lambda arguments: strata_opt([FILE, *arguments]), FILES[name], capsys)


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    ours = name.startswith("strata: ")
    refused(strata if ours else lambda arguments: strata_opt([FILE, *arguments]), OPTIONS[name], capsys)


@pytest.mark.parametrize("name", STRATA)
def test_strata(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("wrong"))
    refused(strata, STRATA[name], capsys)


def test_there_are_enough() -> None:
    assert len(PIPELINES) + len(FILES) + len(OPTIONS) + len(STRATA) >= 60


def test_the_place_of_a_compute_is_the_callers() -> None:
    A = te.placeholder((4,), name="A")
    C = te.nn.exp(te.compute((4,), lambda m: A[m] + 1.0, name="C"), name="D")
    f = te.function("f", [A], C)
    line = test_the_place_of_a_compute_is_the_callers.__code__.co_firstlineno + 2
    places = [spans.of_location(op.location) for op in f.module.walk() if op.name == "te.compute"]
    assert [(p.source, p.line) for p in places if p] == [(__file__, line)] * 2
    run(universe.context(), f.module, parse_passes("te-canonicalize,te-to-loop,reorder-contiguous,loop-to-low"))
    with pytest.raises(LoweringError) as refused:
        run(universe.context(), f.module, parse_passes("loop-to-low"))
    assert refused.value.__notes__[0].startswith(f"{__file__}:")
    loops = [op for op in f.module.walk() if op.name == "scf.for"]
    assert loops and {spans.of_op(op) for op in loops} <= set(places)


def test_long_lines_are_shown_around_the_caret() -> None:
    line, marks = spans.underlined("x" * 500 + " wrong " + "y" * 500, 502)
    assert len(line) <= spans.WIDTH and line[marks.index("^") :].startswith("wrong ") and marks.endswith("^~~~~")


def test_what_is_no_text_is_not_shown() -> None:
    span = spans.Span("/nowhere.mlir", 1, 1)
    assert span.text == "" and span.render("no") == "/nowhere.mlir:1:1: error: no"


def test_a_text_of_python_has_places_too() -> None:
    with pytest.raises(StrataError) as refused:
        run(universe.context(), parse(OUTSIDE), parse_passes("check-bounds"))
    span = spans.of_error(refused.value)
    assert span is not None and (span.source, span.line, span.column) == ("<text>", 4, 3)
