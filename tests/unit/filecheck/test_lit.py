"""strata-lit, and CHECK lines that are generated."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from compiler.filecheck.generate import updated
from compiler.filecheck.lit import main
from compiler.filecheck.payload import FileCheckError
from compiler.filecheck.runner import check

FUNCTION = """func.func @f(%x: i32, %y: i32) -> i32 {
  %0 = arith.addi %x, %y : i32
  %1 = arith.muli %0, %x : i32
  func.return %1 : i32
}
"""
RUN = "// RUN: strata-opt %s -cse | filecheck %s\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "case.mlir"
    path.write_text(f"{RUN}\n{FUNCTION}")
    return path


def test_generated_checks_pass_and_stay(file: Path) -> None:
    text = updated(file)
    assert text.index("// CHECK-LABEL: func.func @f(") < text.index("func.func @f(%x")
    file.write_text(text)
    check(file)
    assert updated(file) == text


def test_generated_checks_take_other_names_of_values_but_no_other_value(file: Path) -> None:
    checks = updated(file)
    file.write_text(checks.replace("%x", "%left").replace("%0", "%sum"))
    check(file)
    for before, after in (
        ("muli %0, %x", "muli %x, %0"),
        ("addi %x, %y", "addi %x, %x"),
        ("= arith.muli", "= arith.subi"),
    ):
        head, _, program = checks.partition("func.func @f(%x")
        assert before in program
        file.write_text(f"{head}func.func @f(%x{program.replace(before, after)}")
        with pytest.raises(FileCheckError):
            check(file)


def test_checks_of_several_prefixes_functions_and_diagnostics(tmp_path: Path) -> None:
    path = tmp_path / "two.mlir"
    second = FUNCTION.replace("@f", "@g").replace("muli", "subi")
    runs = RUN + "// RUN: strata-opt %s -canonicalize | FileCheck %s --check-prefix=PLAIN\n"
    path.write_text(f"{runs}// RUN: not strata-opt %s -p no 2>&1 | filecheck %s --check-prefix=ERR\n{FUNCTION}{second}")
    path.write_text(updated(path))
    check(path)
    text = path.read_text()
    labels = re.findall(r"// (\w+)-LABEL: func.func @(\w)", text)
    assert labels == [("CHECK", "f"), ("PLAIN", "f"), ("CHECK", "g"), ("PLAIN", "g")]
    assert "// ERR: <passes>:1:1: error: there is no pass 'no'" in text.splitlines()[-2]


def test_special_characters_are_literal(tmp_path: Path) -> None:
    path = tmp_path / "special.mlir"
    path.write_text("// RUN: cat %S/data | filecheck %s\nfunc.func @f() {\n  func.return\n}\n")
    (tmp_path / "data").write_text("dense<[[1, 2], [3, 4]]> {{0}} a.b*c\n")
    path.write_text(updated(path))
    check(path)
    (tmp_path / "data").write_text("dense<[[1, 2], [3, 4]]> {{0}} axb*c\n")
    with pytest.raises(FileCheckError):
        check(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"// RUN: strata-opt %s --verify-diagnostics\n{FUNCTION}", "no RUN line ends in filecheck"),
        (f"{RUN}// RUN: strata-opt %s -dce --print-op-generic | filecheck %s\n{FUNCTION}", "print different texts"),
        (f"// RUN: strata-opt %s -p no | filecheck %s\n{FUNCTION}", "no pass 'no'"),
    ],
)
def test_checks_that_cannot_be_generated(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "case.mlir"
    path.write_text(text)
    with pytest.raises(FileCheckError, match=sentence):
        updated(path)


def test_the_command(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = file.with_name("wrong.mlir")
    wrong.write_text(f"{RUN}// CHECK: nowhere\n{FUNCTION}")
    skipped = file.with_name("skipped.mlir")
    skipped.write_text(f"{RUN}// REQUIRES: no-such-program\n// CHECK: func\n{FUNCTION}")
    assert main(["-u", str(file)]) == 0
    assert main([str(file.parent)]) == 1
    out = capsys.readouterr().out
    assert f"FAIL: {wrong} (3 of 3)" in out
    assert re.search(r"3 tests in .* s: 1 fail, 1 pass, 1 unsupported", out)
    assert main([str(file.parent), "--filter", "case", "-v"]) == 0
    assert f"PASS: {file}" in capsys.readouterr().out
    named = file.with_name("named.mlir")
    named.write_text(f"// RUN: strata-opt %s %{{passes}} | filecheck %s\n// CHECK: func\n{FUNCTION}")
    assert main([str(named), "-D", "passes=-cse"]) == 0
    assert main([str(named)]) == 1
    assert main([str(file.parent), "--max-failures", "1"]) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no/such"], "no/such does not exist"),
        (["."], "there is no file with RUN lines"),
        ([], "arguments are required: PATH"),
        ([".", "--filter", "("], "argument --filter: '.'"),
        ([".", "-D", "x"], "argument -D: 'x' is not NAME=TEXT"),
        ([".", "--max-failures", "x"], "invalid int value"),
    ],
)
def test_wrong_arguments(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if sentence.startswith("argument -D"):
        Path("case.mlir").write_text(RUN)
    assert main(words) == 1
    err = capsys.readouterr().err
    assert re.search(sentence, err), err
    assert err.startswith("strata-lit: error: ")


def test_without_the_package_filecheck_other_commands_run(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "filecheck.finput", None)
    with pytest.raises(FileCheckError, match=r"\Afilecheck is the package filecheck, which is not installed\Z"):
        file.write_text(f"{RUN}// CHECK: func\n{FUNCTION}")
        check(file)
    file.write_text(f"// RUN: strata-opt %s -cse > %t && not diff %s %t\n{FUNCTION}")
    check(file)
