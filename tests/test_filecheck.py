"""All FileCheck files, and that the runner itself can fail."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from compiler.filecheck.payload import FOLDER, FileCheckError, expanded
from compiler.filecheck.runner import check

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parent / "filecheck"
FILES = sorted(path for path in ROOT.rglob("*.mlir") if path.parent.name != FOLDER)
FUNCTION = "func.func @f() {\n  func.return\n}\n"
RUN = "// RUN: strata-opt %s | filecheck %s"
DIAGNOSTICS = "// RUN: strata-opt %s --verify-diagnostics"


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(ROOT)) for p in FILES])
def test_file(path: Path) -> None:
    check(path)


def checked(folder: Path, *lines: str) -> None:
    path = folder / "case.mlir"
    path.write_text("\n".join(lines) + "\n" + FUNCTION)
    check(path)


@pytest.mark.parametrize(
    "lines",
    [
        [RUN, "// CHECK: func.func @f"],
        [RUN, "// CHECK-LABEL: func.func @f", "// CHECK-NEXT: func.return", "// CHECK-NOT: func.return"],
        [RUN, "// CHECK{LITERAL}: func.func @f"],
        ["// RUN: strata-opt %s | strata-opt - | filecheck %s", "// CHECK: func"],
        ["// RUN: strata-opt %s \\", "// RUN:   | filecheck %s", "// CHECK: func"],
        ["// RUN: strata-opt %s -o %t", "// RUN: filecheck %s --input-file=%t", "// CHECK: func"],
        ["// RUN: not strata-opt %s -p nowhere 2>&1 | filecheck %s", "// CHECK: no pass 'nowhere'"],
        ["// RUN: strata-opt %s | filecheck %s --check-prefixes=A,B", "// A: module", "// B: func.func"],
        ["// RUN: env STRATA_MACHINE=avx2 strata-opt %s | filecheck %s", "// CHECK: func"],
        ["// RUN: not env STRATA_MACHINE=avx3 strata-opt %s -t llvm 2>&1 | filecheck %s", "// CHECK: is 'avx3'"],
        ["// RUN: strata-opt %s | not filecheck %s", "// CHECK: nowhere"],
        [RUN, "// A sentence that begins with a capital, and COM: below.", "// COM: CHECK", "// CHECK: func"],
        [DIAGNOSTICS],
        ["// RUN: cat %s | strata-opt | FileCheck %s", "// CHECK: func"],
        ["// RUN: strata-opt < %S/%{basename_t}.mlir > %t && filecheck %s < %t", "// CHECK: func"],
        ["// RUN: not strata-opt %s -p no 2> %t && not diff %t %s && not cat no"],
        ["// RUN: strata-opt %s > %t && strata-opt %s >> %t && filecheck %s < %t", "// CHECK-COUNT-2: func.func @f"],
        ["// RUN: env A=1 STRATA_MACHINE=avx2 strata-opt '%s' | filecheck %s", "// CHECK: func", "// 100%"],
        ["// RUN: not strata-opt %s -p '|' 2>&1 | filecheck %s", "// CHECK: no pass '|'"],
        [RUN, "// XFAIL: *", "// CHECK: nowhere"],
        [RUN, "// REQUIRES: cat", "// UNSUPPORTED: no-such-program", "// CHECK: func"],
    ],
)
def test_runner_passes(tmp_path: Path, lines: list[str]) -> None:
    checked(tmp_path, *lines)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "no RUN line"),
        (["// RUN: strata-opt %s"], "no RUN line ends in filecheck"),
        (["// RUN: not strata-opt %s -p nowhere"], "no RUN line ends in filecheck"),
        ([RUN], "there is no CHECK line"),
        ([RUN, "// CHECK: nowhere"], "Couldn't match"),
        ([RUN, "// CHECK: func", "// CHECK-NOT: return"], "ended with 1"),
        ([RUN, "// CHECK:"], "found empty check string"),
        ([RUN, "// CHECK: func", "// CHECK func"], "line 3 looks like a directive"),
        ([RUN, "// CHECK: func", "// CHECK-NEXT func"], "line 3 looks like a directive"),
        ([RUN, "// CHECK: func", "// CHECK-NXT: func"], "line 3 looks like a directive"),
        ([RUN, "// CHECK: func", "// CHEKC: func"], "line 3 looks like a directive"),
        ([RUN, "// CHECK: func", "// CHCK func"], "line 3 looks like a directive"),
        ([RUN, "// CHECK: func", "// OTHER: func"], "line 3 looks like a directive"),
        ([RUN + " --check-prefix=A", "// CHECK: func"], "line 2 looks like a directive"),
        ([RUN + " --check-prefixes=A,B", "// A: func"], "there is no B line"),
        ([RUN + " --no-such-option", "// CHECK: func"], "filecheck does not take"),
        (["// RUN: not strata-opt %s | filecheck %s", "// CHECK: func"], "ended with 0"),
        (["// RUN: strata-opt %s -p nowhere | filecheck %s", "// CHECK: func"], "no pass 'nowhere'"),
        (["// RUN: no-such-program %s | filecheck %s", "// CHECK: func"], "not 'no-such-program"),
        (["// RUN: strata-opt %s ; filecheck %s", "// CHECK: func"], "a RUN line has no ';'"),
        (["// RUN: strata-opt %s > | filecheck %s", "// CHECK: func"], "there is no file behind '>'"),
        (["// RUN: | filecheck %s", "// CHECK: func"], "a command is missing"),
        (["// RUN: strata-opt '%s | filecheck %s", "// CHECK: func"], "a quote is not closed"),
        (["// RUN: strata-opt %{input} | filecheck %s", "// CHECK: func"], "there is no substitution '%{input}'"),
        ([RUN, "// XFAIL: *", "// CHECK: func"], "it states XFAIL, and passes"),
        ([RUN, "// REQUIRES: no-such-program", "// CHECK: func"], "it requires no-such-program"),
        ([RUN, "// UNSUPPORTED: *", "// CHECK: func"], "it does not run with *"),
        ([DIAGNOSTICS, "// expected-error@+1 {{never}}"], "was not produced"),
    ],
)
def test_runner_fails(tmp_path: Path, lines: list[str], reason: str) -> None:
    with pytest.raises(FileCheckError) as failure:
        checked(tmp_path, *lines)
    assert reason in str(failure.value)


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    """A test beside a payload, `one`."""
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "one.mlir").write_text("func.func @f() { a a }\n")
    return tmp_path / "case.mlir"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("one", "@f() { a a }"),
        ("one @g", "@g() { a a }"),
        ("one @g s/a a/b/ s/b/c d/", "@g() { c d }"),
        ("one s/a/b/", "@f() { b a }"),
        ("one s/a/b/g", "@f() { b b }"),
        ("one @g \\\n//   s/a a/b/", "@g() { b }"),
    ],
)
def test_a_payload_stands_in_the_place_of_its_line(payload: Path, words: str, text: str) -> None:
    payload.write_text(f"// CHECK\n// PAYLOAD: {words}\n\nscript")
    assert expanded(payload) == f"// CHECK\nfunc.func {text}\n\nscript"


def test_steps_stand_in_a_payload(payload: Path) -> None:
    (payload.parent / FOLDER / "script.mlir").write_text("{\n  // STEPS\n}\n")
    line = "// PAYLOAD: script\n"
    payload.write_text(f"{line}  a\n  b\n\nc\n{line}  d\n// -----\n{line}  e\n")
    assert expanded(payload) == "{\n  a\n  b\n}\n\nc\n{\n  d\n}\n// -----\n{\n  e\n}\n"


@pytest.mark.parametrize("words", ["one T(i, j) U() s/a/b/g", "script T(i, j) U()"])
def test_handles_stand_before_the_steps(payload: Path, words: str) -> None:
    (payload.parent / FOLDER / "script.mlir").write_text("{\n  // STEPS\n}\n")
    payload.write_text(f"// PAYLOAD: {words}\n  c\n")
    handles = """  %t = sched.get_block %f "T"
  %i, %j = sched.get_loops %t : !sched.loop, !sched.loop
  %u = sched.get_block %f "U"
"""
    function = "" if words.startswith("script") else "func.func @f() { b b }\n"
    assert expanded(payload) == f"{function}{{\n{handles}  c\n}}\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [("two", "there is no payload 'two'"), ("one s/b/c/", "'one' does not have 'b'"), ("one g", "is not a name, '@'")],
)
def test_a_payload_that_is_wrong(payload: Path, words: str, reason: str) -> None:
    payload.write_text(f"// PAYLOAD: {words}\n")
    with pytest.raises(FileCheckError, match=reason):
        check(payload)


def test_pytest_collects_files(pytester: pytest.Pytester) -> None:
    pytester.makefile(".ini", pytest="[pytest]\nstrata_filecheck = checked\n")
    for name, line in {
        "checked/right": "// CHECK: func",
        "checked/wrong": "// CHECK: nowhere",
        "checked/payloads/no_test": "// CHECK: nowhere",
        "apart/wrong": "",
    }.items():
        path = pytester.path / f"{name}.mlir"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([RUN, line, FUNCTION]))
    # A process of its own, since the plugin may be installed in this one.
    plugin = [] if "compiler.filecheck.plugin" in installed() else ["-p", "compiler.filecheck.plugin"]
    done = pytester.runpytest_subprocess(*plugin, "-q")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*Couldn't match*", "FAILED checked/wrong.mlir::wrong*"])


def installed() -> set[str]:
    return {point.name for point in entry_points(group="pytest11")}


def test_a_crash_is_no_refusal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Behind `not` a command must end; behind `not --crash` it must crash, and 2>&1 takes its traceback."""
    from compiler.filecheck import shell

    def crash(words: list[str]) -> int:
        raise AssertionError(words)

    monkeypatch.setattr(shell, "_tools", lambda piped: {"strata-opt": crash})
    with pytest.raises(FileCheckError, match="ended with -1"):
        shell.run_line("not strata-opt x", tmp_path)
    shell.run_line("not --crash strata-opt x 2>&1 | grep AssertionError", tmp_path)
    with pytest.raises(FileCheckError, match="ended with 1"):
        shell.run_line("not --crash false", tmp_path)
