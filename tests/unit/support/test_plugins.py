"""Plugins: what they add is listed, suggested and works; what collides is refused; who crashes is named."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.__main__ import main as strata
from compiler.autotune.task import SearchTask
from compiler.filecheck.runner import check
from compiler.graph.grouping import RULES, group
from compiler.opt import main as strata_opt
from compiler.pipeline.parser import example_fault
from compiler.pipeline.source import parse
from compiler.recipes.rules import RULES as SEARCH_RULES
from compiler.schedule import Schedule
from compiler.schedule.declarations import declaration_fault
from compiler.schedule.primitives import PRIMITIVES
from compiler.support import plugins
from compiler.support.errors import InputError, ScheduleError, TargetError
from compiler.support.plugins import PluginError, Registry
from tests.said import refusal

EXAMPLE = Path(__file__).parents[3] / "examples" / "plugin"
PROGRAM = """func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {
  %C = te.compute "C" [m = 4] (%a = %A[m] : tensor<4xf32>) -> tensor<4xf32> {
    te.yield %a : f32
  }
  func.return %C : tensor<4xf32>
}
"""
Said = pytest.CaptureFixture[str]
Write = Callable[[str], str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLE))
    Path("in.mlir").write_text(PROGRAM)


@pytest.fixture
def example() -> Iterator[None]:
    """The example, as a file loads it."""
    Path("example.py").write_text("from strata_example import register as register\n")
    with plugins.loaded(["example.py"]):
        yield


PASS = """
from dataclasses import dataclass
from strata.errors import InputError
from xdsl.passes import ModulePass
@dataclass(frozen=True)
class Swap(ModulePass):
    name = "swap-loops"
    def apply(self, ctx, op):
        %s
def register(registry):
    registry.pass_(Swap)
"""
PLUGIN = "def register(registry):\n    "
WRONG = {
    "syntax": ("def register(:\n", r"plugin mine cannot be loaded: SyntaxError: .* \(.*mine.py:1\)"),
    "import": ("import no_such_module\n", r"plugin mine cannot be loaded: ModuleNotFoundError: .*mine.py:1\)"),
    "register": (PLUGIN + "1 / 0\n", r"plugin mine cannot be loaded: ZeroDivisionError: .*mine.py:2\)"),
    "nothing": ("x = 1\n", "has no function register"),
    "exit": ("raise SystemExit(3)\n", "plugin mine cannot be loaded: SystemExit: 3"),
    "no pass": (PLUGIN + "registry.pass_(3)\n", "registers 3, which is no pass"),
    "taken": (PASS.replace("swap-loops", "te-to-loop") % "pass", "cannot add the pass 'te-to-loop': the compiler has"),
    "xDSL's": (PASS.replace("swap-loops", "cse") % "pass", "cannot add the pass 'cse': the compiler has"),
    "operator": (PLUGIN + "def relu(x): ...\n    registry.operator(relu)\n", "the operator 'relu': the compiler has"),
    "target": (
        PLUGIN + "class Mine: name = 'c'\n    registry.target(Mine())\n",
        "cannot add the target 'c': the compiler has",
    ),
    "instance": (PASS.replace("_(Swap)", "_(Swap())") % "pass", r"no pass: it is no class that extends ModulePass"),
    "no dataclass": (
        PASS.replace("@dataclass(frozen=True)\n", "") % "pass",
        r"mine registers <class .*, which is no pass: it is no frozen dataclass; put @dataclass\(frozen=True\)",
    ),
    "no name": (PASS.replace('name = "swap-loops"', "x = 1") % "pass", "no pass: its name is none; it has one such as"),
    "spaces": (
        PASS.replace("swap-loops", "swap loops") % "pass",
        "no pass: its name is 'swap loops'; it has one such as",
    ),
    "no dialect": (
        PLUGIN + "class Mine: name = 'c'\n    registry.dialect(Mine())\n",
        "which is no dialect: it is no Dial",
    ),
    "no target": (PLUGIN + "class Mine: name = 'mine'\n    registry.target(Mine())\n", "no target: it is no Target"),
    "refusal": ("from strata.errors import InputError\nraise InputError('no')\n", "plugin mine: no$"),
    "no name of ONNX": (
        PLUGIN + "registry.onnx_operator(len)\n",
        r"gives onnx_operator <.*>, which is no name: write @reg",
    ),
    "no name of torch": (
        PLUGIN + "registry.torch_operator(3)\n",
        "mine gives torch_operator 3, which is no name: write",
    ),
    "undeclared": (PLUGIN + "def skew(p): ...\n    registry.primitive(skew)\n", "'skew' .* is not declared"),
    "twice": (PASS % "pass" + "    registry.pass_(Swap)\n", "the pass 'swap-loops': mine has one"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_plugin_that_cannot_be_loaded(name: str, capsys: Said) -> None:
    text, sentence = WRONG[name]
    Path("mine.py").write_text(text)
    for command in ([strata_opt, "--load", "mine.py", "in.mlir"], [strata, "hash", "--load", "mine.py", "in.mlir"]):
        main, *arguments = command
        assert main(arguments) == 1  # type: ignore[operator]
        assert re.search(sentence, refusal(capsys.readouterr().err))
    assert strata_opt(["in.mlir"]) == 0


def test_a_file_with_postponed_annotations() -> None:
    text = "from __future__ import annotations" + PASS.replace("    def apply", "    most: int = 8\n    def apply")
    Path("mine.py").write_text(text % "pass")
    assert strata_opt(["--load", "mine.py", "in.mlir", "-p", "swap-loops{most=3}"]) == 0


def test_a_missing_file(capsys: Said) -> None:
    assert strata_opt(["--load", "no.py", "in.mlir"]) == 1
    assert "the plugin no.py cannot be read" in refusal(capsys.readouterr().err)


def test_a_pass_that_crashes_and_one_that_refuses(capsys: Said) -> None:
    Path("mine.py").write_text(PASS % "1 / 0")
    run = ["--load", "mine.py", "in.mlir", "-p", "te-to-loop,swap-loops"]
    assert strata_opt(run) == 1
    err = capsys.readouterr().err
    assert "plugin mine: pass swap-loops failed: ZeroDivisionError: division by zero (" in refusal(err)
    assert "mine.py:9)" in err and "Traceback" not in err
    assert strata_opt([*run, "--debug"]) == 1
    assert "Traceback" in (err := capsys.readouterr().err) and "\n    1 / 0\n" in err
    Path("mine.py").write_text(PASS % "raise InputError('not today')")
    assert strata_opt(run) == 1
    assert refusal(capsys.readouterr().err).endswith("error: not today")


def test_what_is_misspelt_is_suggested_and_what_is_gone_is_gone(capsys: Said) -> None:
    Path("mine.py").write_text(PASS % "pass")
    assert strata_opt(["--load", "mine.py", "in.mlir", "-p", "swap-lops"]) == 1
    assert "did you mean 'swap-loops'?" in capsys.readouterr().err
    assert strata_opt(["in.mlir", "-p", "swap-loops"]) == 1
    assert "there is no pass 'swap-loops'" in capsys.readouterr().err
    assert plugins.FILES not in os.environ


@pytest.mark.parametrize("name", sorted((EXAMPLE / "tests").glob("*.mlir")), ids=lambda path: path.stem)
def test_the_examples_files(name: Path, example: None) -> None:
    check(name)


def test_the_example_is_listed(example: None, capsys: Said) -> None:
    assert strata(["plugins"]) == 0
    listed = capsys.readouterr().out
    assert strata_opt(["--list-passes"]) == 0
    passes = capsys.readouterr().out
    for name in ("lower-example", "example", "halve", "squared_relu", "squares_alone", "halves_on_threads"):
        assert f" {name}\n" in listed and f"  {name} " in passes


def test_the_examples_operator_and_rules(example: None) -> None:
    x = te.placeholder((4, 6), name="X")
    f = te.function("f", [x], te.nn.tanh(te.nn.squared_relu(x)))  # type: ignore[attr-defined]
    assert [rule.__name__ for rule in RULES[:1]] == ["squares_alone"] and len(RULES) > 1
    assert [str(group(f.module, rules)).count("private") for rules in (RULES, RULES[1:])] == [3, 0]
    content = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_allclose(compiler.build(f)(content), np.tanh(np.maximum(content, 0) ** 2), rtol=1e-5)
    square = te.function("g", [x], te.nn.squared_relu(x))  # type: ignore[attr-defined]
    assert [rule.__name__ for rule in SEARCH_RULES[:1]] == ["halves_on_threads"]
    assert any("halves on threads" in sketch.name for sketch in SearchTask(square, threads=2).space.sketches)
    s = Schedule(compiler.lower(square))
    assert len(s.halve(s.get_loops(s.get_block("squared_relu"))[0])) == 2  # type: ignore[attr-defined]
    assert s.verify() and "sched.halve" in str(s.script)


def test_the_examples_are_unknown_without_it() -> None:
    with pytest.raises(AttributeError, match="there is no operator 'squared_relu'"):
        te.nn.squared_relu  # type: ignore[attr-defined] # noqa: B018
    assert "squares_alone" not in [rule.__name__ for rule in RULES]


def crash(*given: object) -> object:
    raise RuntimeError("it broke")


def crashing_rule(*given: object) -> Iterator[object]:
    yield crash()


USES: dict[str, Callable[[te.Tensor], object]] = {
    "operator": lambda x: te.nn.crash(x),  # type: ignore[attr-defined]
    "grouping rule": lambda x: group(te.function("f", [x], te.nn.relu(x)).module),
    "search rule": lambda x: SearchTask(te.function("f", [x], te.nn.relu(x)), threads=1).space,
}


@pytest.mark.parametrize("kind", USES)
def test_crashes_of_functions_are_blamed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part = plugins.Part("fragile", kind, "crash", crash if kind == "operator" else crashing_rule)
    monkeypatch.setitem(plugins._plugins, "fragile", Registry("fragile", [part]))
    said = rf"plugin fragile: {kind} crash failed: RuntimeError: it broke \(.*test_plugins.py:\d+\)"
    with pytest.raises(PluginError, match=said) as failure:
        USES[kind](te.placeholder((4,), name="X"))
    assert isinstance(failure.value.__cause__, RuntimeError)


DIALECT = """
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition
@irdl_op_definition
class Odd(IRDLOperation):
    name = "odd.op"
    assembly_format = "attr-dict"
    def verify_(self):
        raise RuntimeError("broken")
@irdl_op_definition
class Read(IRDLOperation):
    name = "odd.read"
    @classmethod
    def parse(cls, parser):
        raise RuntimeError("unreadable")
def register(registry):
    registry.dialect(Dialect("odd", [Odd, Read], []))
"""


@pytest.mark.parametrize(("op", "said"), [("odd.op", "broken"), ("odd.read", "unreadable")])
def test_a_dialect_that_crashes(op: str, said: str, capsys: Said) -> None:
    Path("mine.py").write_text(DIALECT)
    Path("odd.mlir").write_text(f"func.func @f() {{\n  {op}\n  func.return\n}}\n")
    assert strata_opt(["--load", "mine.py", "odd.mlir"]) == 1
    sentence = refusal(capsys.readouterr().err)
    assert sentence.startswith(f"odd.mlir:2:3: error: plugin mine: dialect odd failed: RuntimeError: {said} (")


def test_an_installed_plugin_that_is_broken_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    Path("broken_plugin.py").write_text(PLUGIN + "1 / 0\n")
    monkeypatch.syspath_prepend(".")
    point = EntryPoint("broken", "broken_plugin:register", plugins.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point] if group == plugins.GROUP else [])
    monkeypatch.setattr(plugins, "_scanned", [])
    assert strata_opt(["in.mlir", "-p", "no-such-pass"]) == 1
    err = capsys.readouterr().err
    assert "strata-opt: warning: plugin broken cannot be loaded: ZeroDivisionError: division by zero (" in err
    assert "there is no pass 'no-such-pass'" in err and "Traceback" not in err
    monkeypatch.setattr(plugins, "_scanned", [])
    assert strata_opt(["in.mlir", "-p", "no-such-pass", "--debug"]) == 1
    trace, _, said = capsys.readouterr().err.partition("strata-opt: warning: ")
    assert trace.startswith("Traceback") and "broken_plugin.py" in trace and "no pass 'no-such-pass'" in said
    assert strata_opt(["in.mlir"]) == 0
    assert capsys.readouterr().err == ""


def test_processes_that_a_command_starts_load_the_same(example: None) -> None:
    code = "from compiler import te; print(te.nn.squared_relu.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=_environment())
    assert done.stdout == "squared_relu\n", done.stderr


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(EXAMPLE.parents[1]), str(EXAMPLE)])}


PEEL = """
from strata.schedule import LOOP, PRIMITIVES, primitive

@primitive("$loop", "%a, %b = sched.peel %m", "", gives={"a": "loop", "b": "loop"}, consumes=["loop"], loop=LOOP)
def peel(program, loop):
    \"""Run the last iteration by itself.\"""
    return PRIMITIVES["partition"].plan(program, loop, program.loops[loop].extent - 1)

def register(registry):
    registry.primitive(peel)
"""


def test_a_file_with_a_primitive_is_loaded_again_also_from_elsewhere() -> None:
    for file in ("peel.py", "peel.py", "again.py"):
        Path(file).write_text(PEEL)
        with plugins.loaded([file]):
            schedule = Schedule(compiler.lower(parse(PROGRAM)))
            schedule.peel(schedule.get_loops(schedule.get_block("C"))[0])
    Path("other.py").write_text(PEEL)
    with plugins.loaded(["again.py"]), pytest.raises(PluginError, match="a primitive 'peel' already"):
        plugins.load_file("other.py")


INTERCHANGE = """
from strata.schedule import INT, LOOP, PRIMITIVES, primitive

@primitive(SYNTAX, EXAMPLE, SHELL, outer=LOOP, inner=LOOP)
def interchange(program, outer, inner):
    \"""Swap two loops.\"""
    return PRIMITIVES["reorder"].plan(program, (inner, outer))

def register(registry):
    registry.primitive(interchange)
"""
PARTS = {
    "SYNTAX": '"$outer `,` $inner"',
    "EXAMPLE": '"sched.interchange %m, %l"',
    "SHELL": '"interchange{block=C outer=m inner=l}"',
}
DECLARATIONS = {
    "comma": (
        "`,`",
        ",",
        r"syntax '\$outer , \$inner' is refused: .*; punctuation stands in backticks: \$outer `,` \$inner",
    ),
    "syntax": ("$inner", "$iner", r"the parameters are outer, inner; the syntax has \$iner"),
    "lacks": (" `,` $inner", "", r"the syntax '\$outer' is refused: operand 'inner' not found"),
    "keyword": ("inner=LOOP", "iner=LOOP", "the parameters are outer, inner; the declaration has iner"),
    "fewer": (", inner=LOOP", "", "the parameters are outer, inner; the declaration lacks inner"),
    "kind": ("inner=LOOP", "inner=3", "its parameter inner is 3, expected a kind such as LOOP"),
    "docstring": ('\n    """Swap two loops."""', "", "it has no docstring"),
    "result": (
        "outer=LOOP",
        'gives={"a": "lop"}, outer=LOOP',
        "its result a is of the kind 'lop'; there are block, loop, p",
    ),
    "consumes": ("outer=LOOP", 'consumes=["o"], outer=LOOP', "it consumes 'o', and its handles are outer, inner"),
    "other op": ("sched.interchange %m, %l", "sched.reverse %m", "'sched.reverse %m' has no sched.interchange"),
    "handle": ("%m, %l", "%m, %x", "its example 'sched.interchange %m, %x' is refused: values used but not defined"),
    "example": ("%m, %l", "%m %l", "its example 'sched.interchange %m %l' is refused:"),
    "spaces": ("interchange{block", "inter change{block", "its pass is named 'inter change'; its example is such as"),
    "option": ("inner=l}", "iner=l}", "its example 'interchange.*' is refused: .* there is no option 'iner'"),
    "taken": ('"interchange{', '"reverse{', "cannot add the pass 'reverse': the compiler has one"),
}


@pytest.mark.parametrize("case", DECLARATIONS)
def test_a_wrong_declaration_is_refused_in_one_sentence(case: str, capsys: Said) -> None:
    old, new, sentence = DECLARATIONS[case]
    text = INTERCHANGE
    for name, part in PARTS.items():
        text = text.replace(name, part)
    assert text.count(old) == 1
    Path("mine.py").write_text(text.replace(old, new))
    assert strata_opt(["--load", "mine.py", "in.mlir"]) == 1
    said = refusal(capsys.readouterr().err)
    assert re.search(sentence, said) and re.search("plugin mine(: primitive interchange: | cannot add)", said)
    Path("mine.py").write_text(text)
    assert strata_opt(["--load", "mine.py", "in.mlir"]) == 0


def test_the_compilers_own_declarations_have_no_fault() -> None:
    assert {name: fault for name, p in PRIMITIVES.items() if (fault := declaration_fault(p) or example_fault(p))} == {}


def test_a_plan_that_is_none_is_blamed() -> None:
    Path("mine.py").write_text(PEEL.replace("return PRIM", "PRIM"))
    with plugins.loaded(["mine.py"]):
        schedule = Schedule(compiler.lower(parse(PROGRAM)))
        with pytest.raises(PluginError, match=r"plugin mine: primitive peel: it gave None; it gives a Plan, such as"):
            schedule.peel(schedule.get_loops(schedule.get_block("C"))[0])
    Path("mine.py").write_text(PEEL.replace('"a": "loop", ', "").replace("%a, %b", "%b"))
    with plugins.loaded(["mine.py"]), pytest.raises(ScheduleError, match="peel: it has 2 b, not 1"):
        schedule = Schedule(compiler.lower(parse(PROGRAM)))
        schedule.peel(schedule.get_loops(schedule.get_block("C"))[0])


RULE = """
from strata.recipes import Alternative

def mine(draft, label):
    def apply(draft):
        s = draft.schedule
        s.unroll(s.split(s.get_loops(label)[0], [None, draft.choose([1, 2, 4], 2, "rows")])[1])
        return [label]
    yield Alternative("mine", apply)

def register(registry):
    registry.search_rule(mine)
"""


def test_what_a_plugin_adds_is_found_by_dir_and_help() -> None:
    Path("peel.py").write_text(PEEL)
    Path("cube.py").write_text("def register(registry):\n    @registry.operator\n    def cube(x): return x\n")
    assert "peel" not in dir(Schedule) and not hasattr(Schedule, "peel") and "cube" not in dir(te.nn)
    with plugins.loaded(["peel.py", "cube.py"]):
        schedule = Schedule(compiler.lower(parse(PROGRAM)))
        assert "peel" in dir(schedule) and "cube" in dir(te.nn)
        assert inspect.getdoc(Schedule.peel) == "Run the last iteration by itself."
        assert str(inspect.signature(Schedule.peel)) == "(self, loop: 'Handle | str') -> 'list[Handle]'"
    with pytest.raises(AttributeError, match="there is no primitive 'peel'"):
        assert Schedule.peel


def test_a_wrong_name_in_a_pass_is_at_its_option(capsys: Said) -> None:
    text = INTERCHANGE
    for name, part in PARTS.items():
        text = text.replace(name, part)
    Path("mine.py").write_text(text)
    assert strata_opt(["--load", "mine.py", "in.mlir", "-p", "te-to-loop,interchange{block=C inner=zz outer=m}"]) == 1
    head, _, caret = capsys.readouterr().err.splitlines()
    assert head == "<passes>:1:32: error: interchange: block 'C': it has no loop 'zz' (it has m)"
    assert caret == " " * 31 + "^~~~~~~~"


def test_the_passes_of_a_plugin_are_listed_with_their_docstrings(capsys: Said) -> None:
    Path("mine.py").write_text(
        PASS.replace('    name = "', '    """Swap loops. They must be two."""\n    name = "') % "pass"
    )
    assert strata_opt(["--load", "mine.py", "--list-passes"]) == 0
    assert re.search(r"plugin mine:\n  swap-loops +Swap loops\n", capsys.readouterr().out)


def test_operators_of_front_ends_are_listed(capsys: Said) -> None:
    Path("mine.py").write_text(
        PLUGIN
        + "registry.onnx_operator('Scale', domain='com.mine')(len)\n    registry.torch_operator('mine.scale')(len)\n"
    )
    assert strata(["plugins", "--load", "mine.py"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"^mine:\n +ONNX operator +com.mine.Scale\n +torch operator +mine.scale.default$", said, re.MULTILINE
    )


def test_where_load_stands(capsys: Said) -> None:
    Path("mine.py").write_text(PASS % "pass")
    assert strata(["--load", "mine.py", "plugins"]) == 1
    said = refusal(capsys.readouterr().err)
    assert said.endswith("--load stands behind the command: strata plugins --load FILE")
    for words in (["db", "--load", "mine.py", "list", "s.db"], ["db", "list", "s.db", "--load", "mine.py"]):
        assert strata(words) == 1
        assert "s.db" in (said := capsys.readouterr().err) and "unrecognized" not in said
    assert strata(["db", "list", "s.db", "--load", "none.py"]) == 1
    assert "the plugin none.py cannot be read" in capsys.readouterr().err


MALFORMED = {
    "nothing": (
        "return [label]",
        "pass",
        "apply gave None; it gives the labels of the blocks that it scheduled, such as",
    ),
    "a word": ("return [label]", "return label", "apply gave '.*'; it gives the labels"),
    "a function": (
        'Alternative("mine", apply)',
        "apply",
        "it yielded <function .*; it yields alternatives, such as Alter",
    ),
    "swapped": ('"mine", apply)', 'apply, "mine")', "it yielded Alternative.*; an alternative has a name, then"),
    "no generator": ('yield Alternative("mine", apply)', "return None", "it gave None; it is a generator function"),
    "crash": ("return [label]", "1 / 0", "ZeroDivisionError"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_rule_is_blamed(case: str) -> None:
    old, new, sentence = MALFORMED[case]
    assert old in RULE
    Path("mine.py").write_text(RULE.replace(old, new))
    function = te.function("f", [A := te.placeholder((8,), name="A")], te.compute((8,), lambda i: A[i] + 1.0, name="C"))
    with plugins.loaded(["mine.py"]), pytest.raises(PluginError, match=f"plugin mine: search rule mine.*{sentence}"):
        assert SearchTask(function, threads=1).space
    if case not in ("no generator", "crash"):  # a rule that no plugin registers
        names: dict[str, object] = {}
        exec(RULE.replace(old, new), names)
        with pytest.raises(InputError, match=f"^search rule mine: {sentence}"):
            assert SearchTask(function, threads=1, rules=[names["mine"]]).space  # type: ignore[list-item]


def test_a_choice_of_a_rule_that_no_step_uses_is_refused() -> None:
    unused = RULE.replace("        return", '        draft.choose([3, 5], 3, "depth")\n        return')
    Path("mine.py").write_text(unused)
    function = te.function("f", [A := te.placeholder((8,), name="A")], te.compute((8,), lambda i: A[i] + 1.0, name="C"))
    with plugins.loaded(["mine.py"]):
        derived = SearchTask(function, threads=1).derived
    sentence = "the choice 'depth' is used by no step; its candidates would be equal"
    assert derived.dropped == (f"mine: {sentence}",)
    assert derived.unused == (f"the rule mine adds nothing: {sentence}",)


TARGET = """
from strata.targets import Device, Target, host

class Lowered(Target):
    name, family, texts, is_tuned = "lowered", "cpu", ("low",), False
    passes = {"te": "loop-to-low", "loop": "loop-to-low"}
    refusal = "which is lowered already"
    def machine(self, arch): return host()
    def local_device(self): return Device(host().name, "")
    def make_kernel(self, module, host, arguments, policy, arch):
        return type("Text", (), {"text": str(module)})()

def register(registry):
    registry.target(Lowered())
"""


def test_a_target(capsys: Said) -> None:
    Path("mine.py").write_text(TARGET)
    with plugins.loaded(["mine.py"]):
        kernel = compiler.build(PROGRAM, "lowered")
        assert "scf.for" in kernel.text
        with pytest.raises(InputError, match="the program is at the low level, which is lowered already"):
            compiler.build(kernel.text, "lowered")
        with pytest.raises(TargetError, match="threads are the CPU's, not lowered's"):
            compiler.build(PROGRAM, "lowered", threads=2)
        with pytest.raises(TargetError, match="programs for lowered are not tuned"):
            SearchTask(te.function("f", [X := te.placeholder((4,), name="X")], te.nn.relu(X)), target="lowered")
        with pytest.raises(TargetError, match="did you mean 'lowered'"):
            compiler.build(PROGRAM, "lowerd")
    assert strata(["build", "in.mlir", "--target", "lowered", "--load", "mine.py"]) == 0
    assert "scf.for" in capsys.readouterr().out
    assert strata(["build", "in.mlir", "--target", "lowered"]) == 1
    assert "unknown target 'lowered'" in refusal(capsys.readouterr().err)
