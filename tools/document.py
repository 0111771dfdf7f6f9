"""Executed documents: Markdown whose code blocks are run in order, each output written behind its block.

    ```python            run in the document's namespace; what it prints is in the ```text block behind it
    ```python refused    must raise ScheduleError, whose sentence is in the ```text block behind it
    ```sh                lines `strata-opt ... [| grep TEXT]`, run from the root of the repository
    ```sh refused        lines that must end with an error

A block that prints nothing has no block behind it. `run` gives the text as it should be.

What a document claims it asserts (`check_claims`): a Python block that builds, runs or proves a program has an
assertion, and no block prints `False`.
"""

from __future__ import annotations

import ast
import io
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.opt import main as strata_opt
from compiler.support.errors import ScheduleError

ROOT = Path(__file__).resolve().parent.parent
WALK = ROOT / "docs" / "walk.md"
TUNING = ROOT / "docs" / "tuning.md"
PAGES = (
    WALK,
    TUNING,
    ROOT / "docs" / "start.md",
    ROOT / "docs" / "c.md",
    *(path for folder in ("tutorials", "walks") for path in sorted((ROOT / "docs" / folder).glob("*.md"))),
)
"""The documents whose blocks share their names and show their outputs."""
COMPUTING = frozenset(("build", "apply_best", "verify", "run", "evaluate", "kernel"))
"""The functions and methods whose call builds, runs or proves a program."""
BLOCK = re.compile(r"^```(python|sh)( refused)?\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.DOTALL | re.MULTILINE)


@dataclass
class Step:
    """An executed section: its title, its text with the outputs of this run, the seconds of its Python, and its
    refusals."""

    title: str
    text: str = ""
    seconds: float = 0.0
    refusals: list[str] = field(default_factory=list)


def run(text: str, names: dict[str, Any]) -> Iterator[Step]:
    """Execute a document section by section, in the namespace `names`, and yield the sections. Raises AssertionError
    for a `refused` block that is not refused, a command with an unexpected exit status, and a block that `check_claims`
    rejects."""
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        step = Step(part.partition("\n")[0].lstrip("# "))

        def executed(block: re.Match[str], step: Step = step) -> str:
            language, refused, code = block.groups()
            printed = _shell(code, bool(refused)) if language == "sh" else _python(code, bool(refused), names, step)
            behind = f"\n```text\n{printed.rstrip()}\n```\n" if printed.strip() else ""
            return f"```{language}{refused or ''}\n{code}```\n{behind}"

        step.text = BLOCK.sub(executed, part)
        yield step


def _python(code: str, refused: bool, names: dict[str, Any], step: Step) -> str:
    printed = io.StringIO()
    start = time.perf_counter()
    try:
        with redirect_stdout(printed):
            exec(compile(code, step.title, "exec"), names)
    except ScheduleError as error:
        if not refused:
            raise
        step.refusals.append(str(error))
        return str(error)
    finally:
        step.seconds += time.perf_counter() - start
    if refused:
        raise AssertionError(f"not refused: {code}")
    check_claims(code, printed.getvalue())
    return printed.getvalue()


def check_claims(code: str, printed: str) -> None:
    """Raise AssertionError if a Python block prints `False`, or computes and asserts nothing."""
    calls = {_last_name(node.func) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)}
    asserts = any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(code)))
    asserts |= any(name.startswith("assert_") for name in calls)
    if re.search(r"\bFalse\b", printed):
        raise AssertionError(f"the block prints False:\n{code}")
    if calls & COMPUTING and not asserts:
        raise AssertionError(f"the block calls {', '.join(sorted(calls & COMPUTING))} and asserts nothing:\n{code}")


def _last_name(function: ast.expr) -> str:
    """The name in `name(...)` and in `of.name(...)`."""
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _shell(code: str, refused: bool) -> str:
    """The output of strata-opt's command lines, or their messages on stderr; a backslash continues a line."""
    shown = []
    for line in code.replace("\\\n", " ").splitlines():
        command, _, wanted = line.removeprefix("strata-opt ").partition(" | grep ")
        printed, said = io.StringIO(), io.StringIO()
        with chdir(ROOT), redirect_stdout(printed), redirect_stderr(said):
            status = strata_opt(shlex.split(command))
        if bool(status) != refused:
            raise AssertionError(f"'{line}' ended with {status}: {said.getvalue()}")
        lines = (said if refused else printed).getvalue().splitlines()
        shown += [output for output in lines if wanted.strip("'") in output]
    return "\n".join(shown)


def refreshed(
    text: str, after: Callable[[Step, dict[str, Any]], None] | None = None, names: dict[str, Any] | None = None
) -> str:
    """Return a document with the current outputs of its blocks, run in the namespace `names`; programs are built as by
    default. `after` is called with each section and the namespace."""
    names = {} if names is None else names
    parts = []
    with _own_environment():
        for step in run(text, names):
            parts.append(step.text)
            if after is not None:
                after(step, names)
    return "".join(parts)


@contextmanager
def _own_environment() -> Iterator[None]:
    """Remove the variable that states how programs are scheduled from the environment, and undo changes at the end of
    the context."""
    before = dict(os.environ)
    os.environ.pop("STRATA_SCHEDULE", None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
