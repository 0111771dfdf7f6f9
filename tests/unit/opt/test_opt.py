"""strata-opt: what it prints where, and that wrong input ends in one sentence with a place."""

from __future__ import annotations

import io
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.test import Test
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

import compiler
from compiler import universe
from compiler.opt import main
from compiler.pipeline.parser import nested_steps, parse_passes
from compiler.pipeline.passes import PIPELINES
from tests.said import refusal

ROOT = Path(__file__).parents[3]
TENSORS = (ROOT / "examples" / "mm_exp_mm.mlir").read_text()
GOOD = "func.func @f(%x: i32) -> i32 {\n  func.return %x : i32\n}\n"
LOOP = 'func.func @f(%A: memref<4xf32>) {\n  loop.for "i" %i = 4 {\n  }\n  func.return\n}\n'

Opt = Callable[..., tuple[int, str, str]]


@pytest.fixture
def opt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Opt:
    """Run strata-opt on a text in `in.mlir` of an own folder: status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(text: str | bytes, *arguments: str) -> tuple[int, str, str]:
        Path("in.mlir").write_bytes(text.encode() if isinstance(text, str) else text)
        status = main(["in.mlir", *arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


WRONG: dict[str, tuple[str | bytes, list[str], str]] = {
    # the text: syntax
    "empty": ("", [], "in.mlir:1:1: error: an op is expected, and the text ends"),
    "overfull": ("func.func @f() { func.return } }", [], "in.mlir:1:32: error: an op is expected"),
    "only a comment": ("// nothing\n", [], "in.mlir:1:11: error: an op is expected, and"),
    "prose": ("Once upon a time.\n", [], "in.mlir:1:1: error: Operation Once is not registered"),
    "first token": (".func @f() {}", [], "in.mlir:1:1: error: Expected three consecutive"),
    "unclosed region": (GOOD[:-2], [], "in.mlir:2:23: error: an op, the label of a block or .}. is expected"),
    "unclosed string": ('"' + "x" * 100_000, [], "in.mlir:1:1: error: .*closing string literal"),
    "unknown op": ("func.func @f() {\n  func.retrun\n}", [], "in.mlir:2:3: error: .*func.retrun is not registered"),
    "unknown dialect": ('\n"no.such"() : () -> ()', [], "in.mlir:2:1: error: .*no.such is not registered"),
    "unknown type": ("func.func @f(%x: !no.such) {}", [], "in.mlir:1:26: error: .*no.such"),
    "undefined value": (
        "func.func @f() -> i32 {\n  func.return %x : i32\n}",
        [],
        "in.mlir:2:15: error: %x is used but not defined",
    ),
    "value twice": (
        "func.func @f(%x: i32) {\n  %x = arith.constant 1 : i32\n  func.return\n}",
        [],
        "in.mlir:2:3: error: .*%x is already defined",
    ),
    "constant too wide": (
        "func.func @f() {\n  %0 = arith.constant 999 : i8\n  func.return\n}",
        [],
        "in.mlir:2:3: error: Integer value 999 is out of range",
    ),
    "deep types": ("func.func @f(%x: " + "tuple<" * 3000 + ") {}", [], "nested too deeply"),
    "deep ops": ("builtin.module {\n" * 3000, [], "nested too deeply"),
    # the text: verification
    "return type": (
        "func.func @f(%x: i32) -> i64 {\n\n  func.return %x : i32\n}",
        [],
        "in.mlir:3:3: error: Expected arguments to have the same types",
    ),
    "dominance": (
        "func.func @f(%x: i32) {\n  %a = arith.addi %b, %x : i32\n  %b = arith.addi %x, %x : i32\n  func.return\n}",
        [],
        "in.mlir:2:3: error: 'arith.addi' uses '%b' before it is defined",
    ),
    "in a second piece": (
        GOOD + "// -----\n" + "func.func @f() -> i32 {\n  func.return\n}\n",
        ["--split-input-file"],
        "in.mlir:6:3: error: Expected arguments",
    ),
    "an axis": (
        'func.func @f(%A: tensor<4xf32>) {\n  %B = te.compute "B" [i = 4] (%a = %A[j] : tensor<4xf32>) -> '
        "tensor<4xf32> {\n    te.yield %a : f32\n  }\n  func.return\n}",
        [],
        "in.mlir:2:40: error: unknown axis 'j'",
    ),
    # the file
    "no UTF-8": (b"\xff\xfe\x00", [], "strata-opt: error: in.mlir is not text .byte 0"),
    "zeros": (b"\x00\x01\x02", [], "strata-opt: error: in.mlir is not text .character 0"),
    "directory": (GOOD, ["-o", "."], "strata-opt: error: . cannot be written: Is a directory"),
    "folder of the output": (GOOD, ["-o", "no/such"], "strata-opt: error: no/such cannot be written"),
    # the passes
    "pass": (GOOD, ["-p", "te-to-lop"], "there is no pass 'te-to-lop'; did you mean 'te-to-loop'"),
    "upstream pass": (GOOD, ["-p", "cannonicalize"], "there is no pass 'cannonicalize'; did you mean 'canonicalize'"),
    "pipeline": (GOOD, ["-p", "te-to-lo"], "there is no pass 'te-to-lo'; did you mean"),
    "nothing like it": (GOOD, ["-p", "xyzzy"], "there is no pass 'xyzzy'\n"),
    "options of a pipeline": (GOOD, ["-p", "cpu{policy=fast}"], "'cpu' is a pipeline, which takes no options"),
    "empty element": (GOOD, ["-p", "cse,,cse"], "an empty name in the passes 'cse,,cse'"),
    "last comma": (GOOD, ["-p", "cse,"], "an empty name in the passes"),
    "option": (GOOD, ["-p", "loop-to-low{polcy=fast}"], "no option 'polcy'; did you mean 'policy'"),
    "option of a pass that has none": (GOOD, ["-p", "te-to-loop{x=1}"], "there is no option 'x'"),
    "type of an option": (GOOD, ["-p", "loop-to-low{policy=3}"], "'policy' is of type str, which .3. is not"),
    "list for one": (GOOD, ["-p", "loop-to-low{policy=a,b}"], "'policy' is of type str, which .a,b. is not"),
    "option without a value": (GOOD, ["-p", "loop-to-low{policy}"], "'policy' is of type str, and has no value"),
    "option twice": (GOOD, ["-p", "loop-to-low{policy=fast policy=fast}"], "'policy' .* is given twice"),
    "option syntax": (GOOD, ["-p", "loop-to-low{policy=}"], "the options 'policy=' .* cannot be read"),
    "required option": (GOOD, ["-p", "scf-parallel-loop-tiling"], "requires argument"),
    "after the options": (GOOD, ["-p", "loop-to-low{policy=fast}x"], "cannot be read"),
    "brace": (GOOD, ["-p", "loop-to-low{policy=fast"], "unbalanced braces"),
    "other brace": (GOOD, ["-p", "loop-to-low policy=fast}"], "unbalanced braces"),
    "crossed": (GOOD, ["--pass-pipeline", "any(func.func(loop-to-low{a=1)})"], "unbalanced braces"),
    "no anchor": (GOOD, ["--pass-pipeline", "cse"], "is written 'builtin.module"),
    "wrong anchor": (GOOD, ["--pass-pipeline", "builtin.module(gpu.module(cse))"], "passes nest in"),
    "both": (GOOD, ["-p", "cse", "--pass-pipeline", "any(cse)"], "give -p or --pass-pipeline, not both"),
    # the command line
    "flag": (GOOD, ["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
    "two files": (GOOD, ["other.mlir"], "unrecognized arguments: other.mlir"),
    "target": (GOOD, ["-t", "ptx"], "invalid choice: 'ptx'"),
    "no argument": (GOOD, ["-o"], "expected one argument"),
    # what passes and targets refuse
    "level": (
        "func.func @f() -> tensor<2xf32> {\n  %0 = tensor.empty() : tensor<2xf32>\n  func.return %0 : tensor<2xf32>\n}",
        ["-p", "te-to-loop"],
        "in.mlir:2:3: error: 'tensor.empty' is not an op of the te level, which te-to-loop takes",
    ),
    "policy": (LOOP, ["-p", "loop-to-low{policy=loose}"], "in.mlir:1:1: error: unknown policy 'loose'"),
    "llvm from loops": (LOOP, ["-t", "llvm"], "in.mlir:2:3: error: .*at the loop level: with -p cpu it is lowered"),
    "assembly from tensors": (TENSORS, ["-t", "asm"], "error: .*at the te level: with -p cpu .* -t asm prints"),
    "upstream pass that fails": (GOOD, ["-p", "mlir-opt{executable=no-such-tool}"], "xDSL's pass 'mlir-opt'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input(name: str, opt: Opt) -> None:
    text, arguments, sentence = WRONG[name]
    status, _, err = opt(text, *arguments)
    assert status == 1
    assert re.search(sentence, err), err
    refusal(err)


@pytest.mark.parametrize(
    ("name", "sentence"), [("nowhere.mlir", "No such file"), (".", "Is a directory"), ("a\0b", "not the name of")]
)
def test_unreadable_file(name: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 1
    err = capsys.readouterr().err
    assert err.startswith("strata-opt: error: ")
    assert sentence in err


def test_errors_of_all_pieces_are_said_and_the_others_printed(opt: Opt) -> None:
    status, out, err = opt(f"wrong\n// -----\n{GOOD}// -----\n\nwrong\n", "--split-input-file")
    assert status == 1
    assert out.count("func.func") == 1
    assert re.findall(r"in.mlir:(\d+):", err) == ["1", "8"]


def test_output_file_is_written_only_on_success(opt: Opt) -> None:
    assert opt("wrong", "-o", "out.mlir")[0] == 1
    assert not Path("out.mlir").exists()
    assert opt(GOOD, "-o", "out.mlir") == (0, "", "")
    assert "func.func @f" in Path("out.mlir").read_text()


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["-"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.replace("\n", "\r\n").encode())))
        assert main(arguments) == 0
        assert "func.func @f" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"wrong")))
    assert main([]) == 1
    assert capsys.readouterr().err.startswith("<stdin>:1:1: error: ")


def test_dumps_show_named_pipelines_pass_by_pass(opt: Opt) -> None:
    status, out, err = opt(LOOP, "-p", "loop-to-cpu", "--print-ir-after-all")
    assert status == 0
    assert out.startswith("builtin.module")
    dumped = re.findall(r"^// -----// IR Dump After (\S+) //----- //$", err, re.MULTILINE)
    assert dumped == PIPELINES["loop-to-cpu"].split(",")


@pytest.mark.parametrize("option", ["--print-ir-before-all", "--print-ir-after-all"])
@pytest.mark.parametrize("form", [[], ["--print-op-generic"]])
def test_what_is_dumped_parses(option: str, form: list[str], opt: Opt) -> None:
    _, _, err = opt(LOOP, "-p", "loop-to-cpu", option, *form)
    first, *dumps = re.split(r"^// -----// IR Dump .*\n", err, flags=re.MULTILINE)
    assert not first
    assert len(dumps) == len(PIPELINES["loop-to-cpu"].split(","))
    for dump in dumps:
        assert opt(dump, *form) == (0, dump, "")


class Crash(ModulePass):
    """A pass of a plugin that has a fault."""

    name = "crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise RuntimeError("no such thing")


def test_a_plugin_that_crashes_is_named(opt: Opt, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Universe(all_dialects={}, all_passes={"crash": lambda: Crash})
    monkeypatch.setattr(Universe, "get_multiverse", staticmethod(lambda: made))
    plugin = EntryPoint("fragile", "fragile.passes:UNIVERSE", "xdsl.universe")
    monkeypatch.setattr(EntryPoint, "load", lambda self: made)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [plugin])
    universe._universes.cache_clear()
    try:
        status, _, err = opt(GOOD, "-p", "crash")
        assert status == 1
        assert refusal(err).endswith(
            "error: the pass 'crash' of the plugin 'fragile' (fragile.passes:UNIVERSE) does not take this program "
            "(RuntimeError: no such thing; --debug prints the traceback)"
        )
        assert "Traceback" not in err
        assert 'raise RuntimeError("no such thing")' in opt(GOOD, "-p", "crash", "--debug")[2]
    finally:
        universe._universes.cache_clear()


BREAKING = '''
from dataclasses import dataclass
from xdsl.dialects.builtin import i64
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Break(ModulePass):
    """Give additions a wrong type."""
    name = "break-types"

    def apply(self, ctx, op):
        for inner in op.walk():
            if inner.name == "arith.addi":
                inner.results[0]._type = i64

def register(registry):
    registry.pass_(Break)
'''


def test_a_pass_that_leaves_an_invalid_program_is_named(opt: Opt, tmp_path: Path) -> None:
    (tmp_path / "breaking.py").write_text(BREAKING)
    text = "func.func @f(%x: i32) -> i32 {\n  %0 = arith.addi %x, %x : i32\n  func.return %0 : i32\n}\n"
    words = ["--load", str(tmp_path / "breaking.py"), "-cse", "-break-types"]
    err = opt(text, *words)[2]
    assert "in.mlir:2:3: error: the pass 'break-types' leaves an invalid program: attribute i32 expected" in err
    assert opt(text, *words, "-verify-each=false")[0] == 0


def test_our_own_pass_that_crashes_is_loud(opt: Opt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(universe.PASSES, "crash", f"{__name__}:Crash")
    with pytest.raises(RuntimeError, match="no such thing"):
        opt(GOOD, "-p", "crash")


def test_option_types(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Options(ModulePass):
        name = "options"
        anchor: ClassVar = "func.func"
        flag: bool = False
        sizes: tuple[int, ...] = ()
        text: str | None = None

        def apply(self, ctx: Context, op: ModuleOp) -> None: ...

    monkeypatch.setattr("compiler.universe.find_pass", lambda name: Options)
    assert parse_passes("options{flag}") == [Options(flag=True)]
    assert parse_passes("options{ flag=false  sizes=1,2 }") == [Options(sizes=(1, 2))]
    assert parse_passes('options{sizes=3 text="a b=c d=e, {("},options') == [
        Options(sizes=(3,), text="a b=c d=e, {("),
        Options(),
    ]
    nested = nested_steps("builtin.module(options{text=x},func.func(options,any()))")
    assert [step.module_pass for step in nested] == [Options(text="x"), Options()]
    assert parse_passes(" ") == nested_steps("builtin.module()") == []


def test_other_packages_take_part_when_a_name_is_unknown(opt: Opt, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = Dialect("plugin", list(Test.operations)[:0], [])
    asked: list[bool] = []

    def multiverse() -> Universe:
        asked.append(True)
        return Universe(all_dialects={"plugin": lambda: plugin}, all_passes={})

    monkeypatch.setattr(Universe, "get_multiverse", staticmethod(multiverse))
    universe._universes.cache_clear()
    try:
        assert opt(GOOD, "-p", "canonicalize")[0] == 0
        assert not asked
        context = universe.context()
        assert context.get_optional_op("plugin.op") is None
        assert asked
        assert "plugin" in context.registered_dialect_names
    finally:
        universe._universes.cache_clear()


def command(*arguments: str, text: str = GOOD) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(ROOT / "tools" / "opt.py"), *arguments]
    return subprocess.run(words, input=text, capture_output=True, text=True, cwd=ROOT, check=False)


def test_the_shell_command() -> None:
    assert command("--version").stdout == f"strata-opt {compiler.__version__}\n"
    assert command().stdout.startswith("builtin.module {\n  func.func @f")
    assert command(text="wrong").returncode == 1


def test_nobody_reads_the_output() -> None:
    constants = "".join(f"  %x{n} = arith.constant {n} : i32\n" for n in range(3000))
    text = f"func.func @f() {{\n{constants}  func.return\n}}\n"
    script = f"{sys.executable} tools/opt.py - | head -n 1"
    done = subprocess.run(["bash", "-c", script], input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout == "builtin.module {\n"
    assert done.stderr == ""


def test_the_start_is_quick() -> None:
    """Nothing heavy is imported, which is what keeps it so."""
    script = "import sys; from compiler.opt import main; main([]); print(*sys.modules, file=sys.stderr)"
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, input=GOOD, capture_output=True, text=True, cwd=ROOT, check=True)
    heavy = {"numpy", "llvmlite", "islpy", "sklearn", "rich", "xdsl.transforms", "xdsl.universe", "importlib.metadata"}
    assert not heavy & set(done.stderr.split())


def test_the_module_of_the_api_is_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["strata-opt", "--version"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("strata.opt", run_name="__main__")
    assert not end.value.code and capsys.readouterr().out.startswith("strata-opt ")
