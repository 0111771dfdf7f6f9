"""strata-opt's options beside mlir-opt's: each is accepted by both, and means the same."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.opt import main
from compiler.opt.command_line import ALIASES, WITHOUT_EFFECT, arguments
from compiler.opt.spelling import normalized
from tests.said import refusal

MLIR_OPT = "mlir-opt-22"
needs_mlir_opt = pytest.mark.skipif(shutil.which(MLIR_OPT) is None, reason=f"{MLIR_OPT} is not installed")
TEXT = """func.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  %1 = arith.addi %x, %x : i32
  %dead = arith.subi %x, %x : i32
  %2 = arith.muli %0, %1 : i32
  func.return %2 : i32
}
"""
TWO = f"{TEXT}// -----\n{TEXT}"
TENSORS = Path(__file__).parents[3] / "examples" / "mm_exp_mm.mlir"
Opt = Callable[..., tuple[int, str, str]]


@pytest.fixture
def opt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Opt:
    """Run strata-opt on a text in `in.mlir` of an own folder: status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *words: str) -> tuple[int, str, str]:
        Path("in.mlir").write_text(text)
        status = main(["in.mlir", *words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def mlir_opt(text: str, *words: str) -> tuple[int, str, str]:
    done = subprocess.run([MLIR_OPT, "-", *words], input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


BOTH: dict[str, tuple[str, list[str], str]] = {
    # name: the text, the words, and a pattern of what both print to stderr
    "a pass": (TEXT, ["-cse"], ""),
    "passes in their order": (TEXT, ["--canonicalize", "-cse"], ""),
    "a pipeline": (TEXT, ["-pass-pipeline=builtin.module(canonicalize,func.func(cse))"], ""),
    "a pipeline in its own word": (TEXT, ["--pass-pipeline", "builtin.module(any(cse))"], ""),
    "an output file": (TEXT, ["-cse", "-o", "-"], ""),
    "split": (TWO, ["-split-input-file", "-cse"], ""),
    "split at a marker": (TWO.replace("-----", "cut"), ["--split-input-file=// cut"], ""),
    "between pieces": (TWO, ["-split-input-file", "--output-split-marker=// cut"], ""),
    "unregistered": ('"a.b"() : () -> ()', ["-allow-unregistered-dialect"], ""),
    "verify each": (TEXT, ["-cse", "-verify-each=false"], ""),
    "verify the round trip": (TEXT, ["--verify-roundtrip"], ""),
    "not verified": (TEXT, ["--mlir-very-unsafe-disable-verifier-on-parsing"], ""),
    "one module": (f"module {{\n{TEXT}}}\n", ["--no-implicit-module"], ""),
    "generic": (TEXT, ["-mlir-print-op-generic"], ""),
    "without threads": (TEXT, ["--mlir-disable-threading", "-cse"], ""),
    "local scope": (TEXT, ["-mlir-print-local-scope"], ""),
    "unique names": (TEXT, ["--mlir-print-unique-ssa-ids"], ""),
    "before all": (TEXT, ["-cse", "-mlir-print-ir-before-all"], r"IR Dump Before .*cse"),
    "after all": (TEXT, ["-cse", "--mlir-print-ir-after-all"], r"IR Dump After .*cse"),
    "before one": (TEXT, ["-canonicalize", "-cse", "-mlir-print-ir-before=cse"], r"\A// -+// IR Dump Before .*cse"),
    "after one": (TEXT, ["-canonicalize", "-cse", "-mlir-print-ir-after=cse"], r"\A// -+// IR Dump After .*cse"),
    "after a change": (
        TEXT,
        ["-cse", "-cse", "-mlir-print-ir-after-all", "-mlir-print-ir-after-change"],
        r"\A(?!.*Dump.*Dump).*IR Dump After",
    ),
    "of the module": (
        TEXT,
        ["-cse", "-mlir-print-ir-after-all", "-mlir-print-ir-module-scope", "-mlir-disable-threading"],
        "module {",
    ),
    "timing": (TEXT, ["-cse", "-mlir-timing"], r"(?i)total"),
    "timing as a list": (TEXT, ["-cse", "-mlir-timing", "-mlir-timing-display=list"], r"(?i)total"),
    "timing as JSON": (TEXT, ["-cse", "-mlir-timing", "-mlir-output-format=json"], r'"duration"'),
    "statistics": (TEXT, ["-cse", "-mlir-pass-statistics"], r"(?i)statistics|\(S\)"),
    "statistics as a list": (
        TEXT,
        ["-cse", "-mlir-pass-statistics", "-mlir-pass-statistics-display=list"],
        r"(?i)statistics|\(S\)",
    ),
    "the pipeline": (TEXT, ["-cse", "--dump-pass-pipeline"], r"builtin\.module\(.*cse"),
    "a location": (TEXT, ["-mlir-print-debuginfo", "-mlir-print-local-scope"], ""),
    "constants": (
        "func.func @f() -> tensor<3xi32> {\n  %c = arith.constant dense<[1, 2, 3]> : tensor<3xi32>\n"
        "  func.return %c : tensor<3xi32>\n}",
        ["--mlir-elide-elementsattrs-if-larger=2"],
        "",
    ),
    "names": (
        'func.func @f(%x: i32) -> i32 {\n  %0 = arith.addi %x, %x : i32 loc("sum")\n  func.return %0 : i32\n}',
        ["--mlir-use-nameloc-as-prefix"],
        "",
    ),
}


@needs_mlir_opt
@pytest.mark.parametrize("name", BOTH)
def test_both_accept_an_option_and_print_the_same(name: str, opt: Opt) -> None:
    text, words, pattern = BOTH[name]
    status, out, err = opt(text, *words)
    their_status, their_out, their_err = mlir_opt(text, *words)
    assert (status, their_status) == (0, 0), err + their_err
    assert re.search(pattern, err, re.DOTALL), err
    assert re.search(pattern, their_err, re.DOTALL), their_err
    assert _plain(out) == _plain(their_out)


def _plain(text: str) -> list[str]:
    """The pieces of a text as mlir-opt prints them, without the names of files."""
    pieces = re.split(r"^// (?:-----|cut)\n", text, flags=re.MULTILINE)
    printed = [mlir_opt(piece, "--allow-unregistered-dialect", *_FORM)[1] for piece in pieces]
    return [re.sub(r"<stdin>|in\.mlir|-:\d+", "", piece) for piece in printed]


_FORM = ("--mlir-use-nameloc-as-prefix",)

REFUSED: dict[str, tuple[list[str], str]] = {
    "an unknown pass": (["-cce"], "unrecognized arguments: -cce; did you mean '--cse'"),
    "no attached passes": (["-pass-pipelines=x"], "unrecognized arguments: -pass-pipelines=x; did you mean '--pass-"),
    "not p and a name": (["-pcse"], "unrecognized arguments: -pcse"),
    "no name": (["-=x"], "unrecognized arguments: -=x"),
    "three dashes and no option": (["---"], "unrecognized arguments: ---"),
    "a switch with a value": (["--mlir-timing=often"], "argument --timing: 'often' is neither true nor false"),
    "a display": (["--mlir-timing-display=graph"], "invalid choice: 'graph'"),
    "a kind of diagnostics": (["--verify-diagnostics=some"], "invalid choice: 'some'"),
    "a limit": (["--mlir-elide-elementsattrs-if-larger=many"], "invalid int value: 'many'"),
    "a module pass": (
        ["--pass-pipeline=builtin.module(func.func(te-group))"],
        "<passes>:1:26: error: the pass 'te-group' runs on a module, and stands under func.func here",
    ),
    "a nested module pass": (
        ["--pass-pipeline=builtin.module(func.func(any(split-constants{names=W})))"],
        "the pass 'split-constants' runs on a module",
    ),
    "a module under a function": (
        ["--pass-pipeline=builtin.module(func.func(builtin.module(cse)))"],
        "a function has no modules",
    ),
    "an option of a pass": (["--loop-to-low=polcy=fast"], "there is no option 'polcy'; did you mean 'policy'"),
    "a value of a pass": (["--te-to-loop=3"], "there is no option '3'"),
    "a pipeline with options": (["--cpu=policy=fast"], "'cpu' is a pipeline, which takes no options"),
    "a pass and a pipeline": (["--cse", "--pass-pipeline=any(cse)"], "give -p or --pass-pipeline, not both"),
    "a counter": (["--mlir-debug-counter=cse"], "argument --debug-counter: 'cse' is not NAME-skip=N"),
    "an expression": (["--remarks-filter=("], "argument --remarks-filter-passed: '.': missing \\)"),
    "no reproducer": (["--run-reproducer"], "in.mlir states no pipeline"),
    "an unknown pass's help": (["--help", "cce"], "there is no pass 'cce'"),
    "a plugin": (["--load-pass-plugin=none.py"], "none.py"),
    "no folder": (["-cse", "-mlir-print-ir-after-all", "-mlir-print-ir-tree-dir=in.mlir"], "in.mlir"),
    "not one module": (["--no-implicit-module"], "builtin.module operation expected"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_option_is_refused_in_a_sentence(name: str, opt: Opt) -> None:
    words, sentence = REFUSED[name]
    status, _, err = opt(TEXT, *words)
    assert status == 1
    assert re.search(sentence, err), err
    refusal(err)
    assert err.splitlines()[-1].lstrip().startswith("^"), err


def spelled(*words: str) -> list[str]:
    return normalized(words, arguments())


def test_the_spellings() -> None:
    assert spelled("-mlir-timing", "--timing", "-timing=true") == ["--timing"] * 3
    assert spelled("-verify-each=0", "--timing=false", "f.mlir") == ["--no-verify-each", "f.mlir"]
    assert spelled("-p", "cse", "-o", "-", "-") == ["-p", "cse", "-o", "-", "-"]
    assert spelled("--tile=block=C axes=m", "-cse={}") == ["--passes", "tile{block=C axes=m}", "--passes", "cse"]
    assert spelled("-split-input-file", "f.mlir") == ["--split-input-file=// -----", "f.mlir"]
    assert spelled("-h") == spelled("--help") == ["--help="]
    assert spelled("--help", "cse") == ["--help", "cse"]
    assert spelled("-mlir-print-ir-after", "-cse") == ["--print-ir-after", "-cse"]  # a value of its own word stays
    assert spelled("--", "-cse") == ["--", "-cse"]
    assert spelled("-mlir-print-stacktrace-on-diagnostic") == ["--debug"]


def test_an_option_that_is_also_a_pass_is_the_option() -> None:
    names = {name[2:] for name in arguments()._option_string_actions if name.startswith("--")}
    from compiler import universe

    assert not names & set(universe.pass_names())


@needs_mlir_opt
def test_every_option_of_mlir_opt_is_here_or_has_a_reason_in_the_docs() -> None:
    theirs = set(re.findall(r"^  --(mlir-[\w-]+)", mlir_opt("", "--help")[1], re.MULTILINE))
    ours = {name[2:] for name in arguments()._option_string_actions} | set(ALIASES) | set(WITHOUT_EFFECT)
    page = (Path(__file__).parents[3] / "docs" / "opt.md").read_text()
    missing = [name for name in sorted(theirs) if name.removeprefix("mlir-") not in ours and f"`--{name}`" not in page]
    assert theirs and not missing


def test_the_lines_that_a_pass_changes(opt: Opt) -> None:
    _, _, err = opt(TEXT, "-cse", "-cse", "--mlir-print-ir-after-change")
    assert err.count("IR Dump") == 1
    assert "-    %1 = arith.addi %x, %x : i32\n" in err
    assert "+    %1 = arith.muli %0, %0 : i32\n" in err


def test_the_module_that_a_failing_pass_leaves(opt: Opt) -> None:
    status, _, err = opt(TENSORS.read_text(), "-te-canonicalize", "-loop-to-low", "--mlir-print-ir-after-failure")
    assert status == 1
    assert err.count("IR Dump") == 1 and "IR Dump After loop-to-low Failed" in err


def test_a_file_for_each_pass(opt: Opt) -> None:
    words = ["-canonicalize", "-cse", "--mlir-print-ir-after-all", "--mlir-print-ir-tree-dir=tree"]
    assert opt(TEXT, *words)[2] == ""
    files = sorted(str(path) for path in Path("tree").rglob("*.mlir"))
    assert [Path(file).name for file in files] == ["0_canonicalize.mlir", "1_cse.mlir"]
    assert "IR Dump After cse" in Path(files[1]).read_text()


@pytest.mark.parametrize("local", [[], ["--mlir-pass-pipeline-local-reproducer"]])
def test_a_crash_leaves_a_reproducer(local: list[str], opt: Opt) -> None:
    words = ["-te-canonicalize", "--loop-to-low=policy=fast", "--mlir-pass-pipeline-crash-reproducer=crash.mlir"]
    status, _, err = opt(TENSORS.read_text(), *words, *local)
    assert status == 1 and "a reproducer was written to crash.mlir" in err
    text = Path("crash.mlir").read_text()
    expected = 'loop-to-low{policy=\\"fast\\"}' if local else 'te-canonicalize,loop-to-low{policy=\\"fast\\"}'
    assert f'pipeline: "builtin.module({expected})"' in text
    again, _, error = opt(text, "--run-reproducer")
    assert again == 1 and error.splitlines()[0].endswith(err.splitlines()[1].split("error: ")[-1])


@needs_mlir_opt
def test_mlir_opt_runs_our_reproducer(opt: Opt) -> None:
    assert opt(TEXT, "-cse", "--mlir-generate-reproducer=r.mlir", "-o", "out.mlir")[0] == 0
    text = Path("r.mlir").read_text()
    status, out, _ = mlir_opt(text, "--run-reproducer")
    assert status == 0 and out.count("arith.addi") == 1
    theirs = re.sub(r"(?s)\{-#.*", "", out)
    assert _plain(Path("out.mlir").read_text()) == _plain(theirs)


@needs_mlir_opt
def test_bytecode_is_written_and_read(opt: Opt) -> None:
    assert opt(TEXT, "--emit-bytecode", "-o", "out.mlirbc")[0] == 0
    content = Path("out.mlirbc").read_bytes()
    assert content.startswith(b"ML\xefR")
    theirs = subprocess.run([MLIR_OPT, "-"], input=content, capture_output=True, check=True).stdout.decode()
    assert _plain(theirs) == _plain(TEXT)
    assert main(["out.mlirbc", "-o", "again.mlir"]) == 0
    assert _plain(Path("again.mlir").read_text()) == _plain(TEXT)
    Path("out.mlirbc").write_bytes(content[:20])
    assert main(["out.mlirbc"]) == 1


@needs_mlir_opt
def test_te_programs_are_bytecode_too(opt: Opt) -> None:
    assert opt(TENSORS.read_text(), "--emit-bytecode", "-o", "out.mlirbc")[0] == 0
    assert main(["out.mlirbc", "--te-canonicalize", "-o", "again.mlir"]) == 0
    assert main([str(TENSORS), "--te-canonicalize", "-o", "plain.mlir"]) == 0
    assert Path("again.mlir").read_text() == Path("plain.mlir").read_text()


def test_bytecode_without_mlir_opt_is_refused(opt: Opt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("STRATA_MLIR_OPT", raising=False)
    status, _, err = opt(TEXT, "--emit-bytecode")
    assert status == 1 and "needs mlir-opt, which is not in PATH" in refusal(err)


EQUAL = """func.func @f(%A: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %B = te.compute "B" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = math.exp %a : f32
    te.yield %0 : f32
  }
  %C = te.compute "C" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = math.exp %a : f32
    te.yield %0 : f32
  }
  func.return %B, %C : tensor<4xf32>, tensor<4xf32>
}
"""


def test_counters_omit_passes_and_laws(opt: Opt) -> None:
    _, out, err = opt(TEXT, "-cse", "-cse", "--mlir-debug-counter=cse-skip=2", "--mlir-print-debug-counter")
    assert out.count("arith.addi") == 2
    assert re.search(r"^cse +: \{2,2,-1\}$", err, re.MULTILINE)
    assert opt(TEXT, "-cse", "-cse", "--mlir-debug-counter=cse-count=1")[1].count("arith.addi") == 1
    assert "the counter 'dce' met no action" in opt(TEXT, "-cse", "--mlir-debug-counter=dce-skip=1")[2]
    assert opt(EQUAL, "--te-canonicalize")[1].count("math.exp") == 1
    assert opt(EQUAL, "--te-canonicalize", "--mlir-debug-counter=merge-equal-skip=9")[1].count("math.exp") == 2


def test_actions_are_logged_and_traced(opt: Opt) -> None:
    words = ["--te-to-loop", "--tile=block=C axes=m sizes=8", "-debug-only=step,legality", "-log-actions-to=log"]
    _, _, err = opt(TENSORS.read_text(), *words, "--profile-actions-to=trace.json", "-o", "out.mlir")
    assert re.search(r"^step split: m .*\nlegality judged: legal$", err, re.MULTILINE)
    assert "pass te-to-loop" in Path("log").read_text()
    assert {event["cat"] for event in json.loads(Path("trace.json").read_text())} == {"pass", "step", "legality"}


def test_remarks(opt: Opt) -> None:
    words = ["-te-to-loop", "--vectorize=block=X loop=m", "--loop-to-low", "-o", "out.mlir"]
    _, _, err = opt(TENSORS.read_text(), *words, "--remarks-filter-missed=loop")
    assert err == (
        "in.mlir:18:3: remark: [Missed] loop-to-low | the 64 lanes of block 'X' load '%T' by a gather: their stride is "
        "not 1\n"
    )
    assert opt(TENSORS.read_text(), *words, "--remarks-filter-missed=te")[2] == ""
    assert opt(TENSORS.read_text(), *words, "--remarks-filter=.", "--remark-format=yaml")[2] == ""
    assert "--- !Missed\nPass: loop-to-low\nDebugLoc: " in Path("mlir-remarks.yaml").read_text()
    passed = opt(TENSORS.read_text(), "--te-group", "--remarks-filter-passed=te-group")[2]
    assert "[Passed] te-group | 'T' joins 'X'" in passed or "joins" in passed
    missed = opt(TENSORS.read_text(), "--te-alternatives", "--remarks-filter-missed=alternatives")[2]
    assert "winograd" in missed or "chain: nothing in the program has its form" in missed


def test_help_of_a_pass_and_lists(opt: Opt) -> None:
    assert "policy=str  (default: contract)" in opt(TEXT, "--help", "loop-to-low")[1]
    assert opt(TEXT, "--help", "cpu")[1].startswith("cpu = check-combiners,")
    listed = opt(TEXT, "--list-passes")[1]
    assert "      sizes=tuple[int, ...]\n" in listed and "--list-foreign-passes lists" in listed
    assert "  dce\n" in opt(TEXT, "--list-foreign-passes")[1]
    assert re.match(r"Available Dialects: .*\bloop\b.*\bte\b", opt(TEXT, "--show-dialects")[1])
    assert "--te-to-loop" in opt(TEXT, "--completion=bash")[1]
    assert "complete -c strata-opt -l te-to-loop\n" in opt(TEXT, "--completion=fish")[1]
    assert opt(TEXT, "--help")[1].startswith("usage: strata-opt")


def test_printing_less_and_more(opt: Opt) -> None:
    assert "func.func @f(%x: i32) -> i32 {...}" in opt(TEXT, "--mlir-print-skip-regions")[1]
    users = opt(TEXT, "--mlir-print-value-users")[1]
    assert "%0 = arith.addi %x, %x : i32  // users: arith.muli\n" in users and "// unused" in users
    assert opt(users, "--mlir-print-value-users")[1] == users


def test_notes_of_diagnostics(opt: Opt) -> None:
    text = (
        "func.func @f() -> tensor<2xf32> {\n  %0 = tensor.empty() : tensor<2xf32>\n  func.return %0 : tensor<2xf32>\n}"
    )
    assert "tensor.empty" in opt(text, "-te-to-loop", "--mlir-disable-diagnostic-notes")[2]
    note = opt(text, "-te-to-loop", "--mlir-print-op-on-diagnostic")[2]
    assert 'in.mlir:2:3: note: see current operation: %0 = "tensor.empty"() : () -> tensor<2xf32>' in note
    kept = "// expected-error@+1 {{no such text}}\n" + TEXT
    assert opt(kept, "--verify-diagnostics")[0] == 1
    wrong = "wrong\n"
    assert opt(wrong, "--verify-diagnostics=only-expected")[0] == 0
    assert opt(wrong, "--verify-diagnostics")[0] == 1
