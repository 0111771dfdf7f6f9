"""The commands of RUN lines: strata-opt, strata and filecheck in this process, other programs as processes.

A line has pipes, `&&`, `not`, `env NAME=VALUE ...`, and the redirections `<`, `>`, `>>`, `2>`, `2>&1`. Other programs,
such as mlir-opt or diff, are those of absolute folders of the PATH.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from compiler.filecheck.payload import FileCheckError

TOKEN = re.compile(r"""2>&1|&&|2>>?|>>?|[|<;&]|(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"|&;<>\\])+""")
OPERATORS = ("|", "&&", "<", ">", ">>", "2>", "2>>", "2>&1")
TIMEOUT_SECONDS = 300
CRASHED = -1
"""The status of a command of the package that raises, as of a process that a signal ends."""
"""The time limit of a program, in seconds."""


@dataclass(frozen=True)
class Done:
    """A command that has ended: its exit status, its standard output, and its standard error."""

    status: int
    output: str
    errors: str


def is_filecheck(command: str) -> bool:
    """Whether a command compares its input with the checks of a file."""
    return command in ("filecheck", "FileCheck")


def tokens(line: str) -> list[tuple[str, bool]]:
    """Split a line into words, without their quotes, and operators, each with True for an operator. Raises
    FileCheckError for an unknown operator, and for an open quote."""
    found: list[tuple[str, bool]] = []
    position = 0
    while position < len(line):
        match = TOKEN.match(line, position)
        if match is None and not line[position].isspace():
            raise FileCheckError(f"a quote is not closed in the RUN line `{line}`")
        if match is not None:
            is_operator = match[0] in OPERATORS or match[0] in (";", "&")
            if is_operator and match[0] not in OPERATORS:
                raise FileCheckError(f"a RUN line has no '{match[0]}': `{line}`")
            found.append((match[0] if is_operator else "".join(shlex.split(match[0])), is_operator))
        position = position + 1 if match is None else match.end()
    return found


@dataclass
class _Command:
    """A command of a pipe, with its redirections, which map an operator to a file; `2>&1` to ""."""

    words: list[str]
    redirections: dict[str, str]


def pipes(line: str) -> list[list[_Command]]:
    """Parse a line to the pipes between its `&&`. Raises FileCheckError for another syntax."""
    parsed: list[list[_Command]] = [[_Command([], {})]]
    rest = iter(tokens(line))
    for token, is_operator in rest:
        if not is_operator:
            parsed[-1][-1].words.append(token)
        elif token == "&&":
            parsed.append([_Command([], {})])
        elif token == "|":
            parsed[-1].append(_Command([], {}))
        elif token == "2>&1":
            parsed[-1][-1].redirections[token] = ""
        else:
            file, is_other = next(rest, ("", True))
            if is_other:
                raise FileCheckError(f"there is no file behind '{token}' in the RUN line `{line}`")
            parsed[-1][-1].redirections[token] = file
    if not all(command.words for commands in parsed for command in commands):
        raise FileCheckError(f"a command is missing in the RUN line `{line}`")
    return parsed


def run_line(line: str, place: Path) -> None:
    """Run the pipes of a line in order. Raises FileCheckError for a malformed line, and for the first command that
    fails, with all that its pipe printed before; the message begins with the file `place`."""
    for commands in pipes(line):
        run_pipe(commands, place)


def run_pipe(commands: Sequence[_Command], place: Path) -> str:
    """Run the commands of a pipe; return the output of the last one. Raises FileCheckError for the first command that
    fails; that, after `not`, succeeds or crashes; or that, after `not --crash`, does not crash: with all that was
    printed before, and the file `place` first."""
    piped, errors = "", ""
    for command in commands:
        inverted = command.words[0] == "not"
        words = command.words[1:] if inverted else command.words
        crashes = inverted and words[:1] == ["--crash"]
        done = _redirected(words[1:] if crashes else words, command.redirections, piped)
        piped, errors = done.output, errors + done.errors
        if (done.status == 0) == inverted or (inverted and (done.status < 0) != crashes):
            raise FileCheckError(f"{place}: `{shlex.join(command.words)}` ended with {done.status}\n{errors}{piped}")
    return piped


def _redirected(words: Sequence[str], redirections: dict[str, str], piped: str) -> Done:
    """Run a command with its standard streams redirected, its input `piped` unless redirected; a stream redirected to a
    file is empty in the result."""
    if "<" in redirections:
        piped = Path(redirections["<"]).read_text(encoding="utf-8")
    done = _run(words, piped, merged="2>&1" in redirections)
    for operator, text in ((">", done.output), (">>", done.output), ("2>", done.errors), ("2>>", done.errors)):
        if operator in redirections:
            with open(redirections[operator], "a" if operator.endswith(">>") else "w", encoding="utf-8") as file:
                file.write(text)
    kept_output = "" if {">", ">>"} & redirections.keys() else done.output
    kept_errors = "" if {"2>", "2>>"} & redirections.keys() else done.errors
    return Done(done.status, kept_output, kept_errors)


def _run(words: Sequence[str], piped: str, merged: bool) -> Done:
    """Run a command with `piped` as its standard input, in this process if it is a tool of the package. A command `env
    NAME=value ... words` runs `words` with these variables set. `merged` sends its errors to its output. Raises
    FileCheckError without a command and for a program that is not found or does not end in time."""
    if words and words[0] == "env":
        settings = list(_leading_settings(words[1:]))
        with patch.dict(os.environ, [setting.split("=", 1) for setting in settings]):
            return _run(words[1 + len(settings) :], piped, merged)
    tool = _tools(piped).get(words[0]) if words else None
    if tool is None:
        return _process(words, piped, merged)
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO(piped)
    try:
        with redirect_stdout(out), redirect_stderr(out if merged else err):
            status = tool(list(words[1:]))
    except FileCheckError:
        raise
    except Exception:  # a crash of the command, as of a process
        status = CRASHED
        (out if merged else err).write(traceback.format_exc())
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdin = stdin
    return Done(status, out.getvalue(), err.getvalue())


def _leading_settings(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if not re.match(r"\w+=", word):
            return
        yield word


def _tools(piped: str) -> dict[str, Callable[[list[str]], int]]:
    """Map the commands of this process, filecheck's on the text `piped`, to their functions of arguments, which return
    the exit status."""
    from compiler.__main__ import main as strata
    from compiler.opt import main as strata_opt

    def filecheck(words: list[str]) -> int:
        return _filecheck(words, piped)

    return {"strata-opt": strata_opt, "strata": strata, "filecheck": filecheck, "FileCheck": filecheck}


def _process(words: Sequence[str], piped: str, merged: bool) -> Done:
    """Run a program of an absolute folder of the PATH on the input `piped`; its errors go to the output if `merged`.
    Raises FileCheckError without one, and after the time limit."""
    path = program(words[0]) if words else None
    if path is None:
        raise FileCheckError(f"a RUN line can run strata-opt, strata, filecheck and programs, not '{' '.join(words)}'")
    errors = subprocess.STDOUT if merged else subprocess.PIPE
    command = [path, *words[1:]]
    try:
        done = subprocess.run(
            command, input=piped, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise FileCheckError(f"{path} cannot be run: {error}") from error
    return Done(done.returncode, done.stdout, done.stderr or "")


def program(name: str) -> str | None:
    """Find a program in the absolute folders of the PATH; None if there is none."""
    path = shutil.which(name)
    return path if path is not None and Path(path).is_absolute() else None


def _filecheck(words: list[str], piped: str) -> int:
    """Run filecheck on command-line arguments, with `piped` as its standard input; return its exit status. Raises
    FileCheckError for wrong options, and without the package."""
    try:
        from filecheck.finput import FInput
        from filecheck.matcher import Matcher
        from filecheck.options import parse_argv_options
        from filecheck.parser import Parser
    except ImportError as error:
        raise FileCheckError("filecheck is the package filecheck, which is not installed") from error
    try:
        options = parse_argv_options(["filecheck", *words])
    except (RuntimeError, TypeError) as error:
        raise FileCheckError(f"filecheck does not take {words}: {error}") from error
    source = FInput("-", piped) if options.input_file == "-" else FInput.from_opts(options)
    return Matcher(options, source, Parser.from_opts(options)).run()
