"""Run the RUN lines of an .mlir file in this process: strata-opt, strata, filecheck, pipes, `not`, `2>&1`
and `env NAME=VALUE`.

`%s` is the file, `%t` a path for a temporary file. A file must check something, and each directive must be one
that filecheck obeys: a CHECK without a colon, a misspelt suffix or a prefix of no RUN line is a failure. Where a file
has shared payloads (payload.py), `%s` is the file with them.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from unittest.mock import patch

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options, parse_argv_options
from filecheck.parser import Parser

from compiler.__main__ import main as strata
from compiler.filecheck.payload import FileCheckError, expanded
from compiler.opt import main as strata_opt

_RUN = re.compile(r"//\s*RUN:\s*(.*?)\s*$", re.MULTILINE)
_WORD = re.compile(r"^\s*//\s*([A-Z][A-Z0-9_-]*)(\{LITERAL\})?(:?)")
_SUFFIX = re.compile(r"-(DAG|NOT|EMPTY|NEXT|SAME|LABEL|COUNT-[1-9]\d*)")
_PREFIXES = re.compile(r"--?check-prefix(?:es)?[= ](\S+)")


@dataclass(frozen=True)
class _Done:
    status: int
    output: str
    said: str


def check(path: Path) -> None:
    """Run every RUN line of a file. Raises FileCheckError for the first that fails; also, before any is run, for a file
    or a line that would pass with any output."""
    text = expanded(path)
    commands = _commands(text)
    for complaint in _vacuity_faults(text, commands):
        raise FileCheckError(f"{path}: {complaint}")
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / path.name
        whole.write_text(text, encoding="utf-8")
        for command in commands:
            words = shlex.split(command)
            _run([word.replace("%s", str(whole)).replace("%t", f"{folder}/t") for word in words], path)


def _commands(text: str) -> list[str]:
    commands = [""]
    for line in _RUN.findall(text):
        commands[-1] += line.removesuffix("\\")
        if not line.endswith("\\"):
            commands.append("")
    return [command for command in commands if command]


def _vacuity_faults(text: str, commands: list[str]) -> Iterator[str]:
    """Yield the faults of a file that would let it, or one of its lines, pass with any output."""
    if not commands:
        yield "there is no RUN line"
    checking = [c for c in commands if "filecheck " in c]
    if not checking and not any("--verify-diagnostics" in c for c in commands):
        yield "no RUN line ends in filecheck or says --verify-diagnostics"
    prefixes = {p for c in checking for p in _prefixes(c)}
    used_prefixes = set()
    for number, line in enumerate(text.splitlines(), 1):
        word = _WORD.match(line)
        if word is None or word[1] in ("RUN", "COM"):
            continue
        prefix = next((p for p in prefixes if word[1] == p or _SUFFIX.fullmatch(word[1].removeprefix(p))), None)
        if prefix is not None and word[3]:
            used_prefixes.add(prefix)
        elif word[3] or any(_alike(word[1], p) for p in prefixes):
            yield f"line {number} looks like a directive, and filecheck ignores it: {line.strip()}"
    for prefix in sorted(prefixes - used_prefixes):
        yield f"there is no {prefix} line"


def _prefixes(command: str) -> list[str]:
    options = _PREFIXES.findall(command)
    return [p for names in options for p in names.strip("'\"").split(",")] or ["CHECK"]


def _alike(word: str, prefix: str) -> bool:
    return word.startswith(prefix) or SequenceMatcher(None, word.split("-")[0], prefix).ratio() > 0.8


def _run(words: list[str], path: Path) -> None:
    piped, said = "", ""
    for step in _steps(words):
        inverted = step[0] == "not"
        done = _step(step[1:] if inverted else step, piped)
        piped, said = done.output, said + done.said
        if (done.status == 0) == inverted:
            raise FileCheckError(f"{path}: `{shlex.join(step)}` ended with {done.status}\n{said}{piped}")


def _steps(words: list[str]) -> Iterator[list[str]]:
    while "|" in words:
        yield words[: words.index("|")]
        words = words[words.index("|") + 1 :]
    yield words


def _step(words: list[str], piped: str) -> _Done:
    """Run a command in this process with `piped` as its standard input; return its status, output and errors, which
    with `2>&1` are part of the output. Raises FileCheckError for a tool that is unknown."""
    if len(words) > 2 and words[0] == "env":
        with patch.dict(os.environ, [words[1].split("=", 1)]):
            return _step(words[2:], piped)
    tools = {"strata-opt": strata_opt, "strata": strata, "filecheck": lambda words: _filecheck(words, piped)}
    if not words or words[0] not in tools:
        raise FileCheckError(f"a RUN line can run {' and '.join(tools)}, not '{' '.join(words)}'")
    merge = "2>&1" in words
    words = [word for word in words if word != "2>&1"]
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO(piped)
    try:
        with redirect_stdout(out), redirect_stderr(out if merge else err):
            status = tools[words[0]](words[1:])
    finally:
        sys.stdin = stdin
    return _Done(status, out.getvalue(), err.getvalue())


def _filecheck(words: list[str], piped: str) -> int:
    try:
        options: Options = parse_argv_options(["filecheck", *words])
    except (RuntimeError, TypeError) as error:
        raise FileCheckError(f"filecheck does not take {words}: {error}") from error
    source = FInput("-", piped) if options.input_file == "-" else FInput.from_opts(options)
    return Matcher(options, source, Parser.from_opts(options)).run()
