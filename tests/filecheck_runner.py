"""Run the RUN lines of an .mlir file in this process: `strata-opt %s ... | filecheck %s`, pipes and `not` included."""

from __future__ import annotations

import io
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from filecheck.main import main as filecheck

from compiler.opt import main as strata_opt


class FileCheckError(AssertionError):
    """A RUN line that did not end as it should, with what it printed."""


def check(path: Path) -> None:
    """Run every RUN line of a file. Raises FileCheckError for one that fails, or for CHECK lines that check nothing."""
    text = path.read_text()
    commands = re.findall(r"//\s*RUN:\s*(.*)", text)
    if not commands:
        raise FileCheckError(f"{path} has no RUN line")
    loose = re.findall(r"^.*//\s*CHECK(?:-[A-Z]+)*(?!-?[A-Z]*[:{]).*$", text, re.MULTILINE)
    if loose:
        raise FileCheckError(f"{path} has a CHECK without a colon, which checks nothing: {loose[0]}")
    if any("filecheck" in c for c in commands) and "CHECK" not in text:
        raise FileCheckError(f"{path} has no CHECK line")
    for command in commands:
        _run(command.replace("%s", str(path)), path)


def _run(command: str, path: Path) -> None:
    data = ""
    for step in command.split("|"):
        words = shlex.split(step)
        inverted = words[0] == "not"
        words = words[1:] if inverted else words
        status, data = _step(words, data)
        if (status == 0) == inverted:
            raise FileCheckError(f"{path}: `{step.strip()}` ended with {status}\n{data}")


def _step(words: list[str], data: str) -> tuple[int, str]:
    merge = "2>&1" in words
    words = [word for word in words if word != "2>&1"]
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO(data)
    try:
        with redirect_stdout(out), redirect_stderr(out if merge else err):
            status = _filecheck(words) if words[0] == "filecheck" else strata_opt(words[1:])
    finally:
        sys.stdin = stdin
    return status, out.getvalue() + (err.getvalue() if status else "")


def _filecheck(words: list[str]) -> int:
    try:
        filecheck(words)
    except SystemExit as exit:
        return int(exit.code or 0)
    return 0
