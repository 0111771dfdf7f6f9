"""`strata-reduce FILE --test LINE`: the command."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import compiler
from compiler.opt.diagnostics import PROGRAM_ERRORS, diagnose
from compiler.support import command, plugins, spans
from compiler.support.errors import InputError, StrataError
from compiler.support.files import read, write
from compiler.support.spans import Span
from compiler.support.text import counted


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command on arguments (None: those of the process); return 0, 1 after an error, or 130 after an
    interruption, which leaves the shortest file so far."""
    words = sys.argv[1:] if argv is None else argv
    return command.run("strata-reduce", lambda: _run(words), words)


def _arguments() -> argparse.ArgumentParser:
    parser = command.Parser(
        prog="strata-reduce",
        description="Shrink a file of MLIR, with a program or a script, or an ONNX model, as long as a test holds.",
        epilog="The test is a line as of RUN: strata-opt and strata run in this process, other programs of the PATH as "
        "processes; pipes, not, &&, redirections. %%s is the file. It holds if every command succeeds.",
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="the file, .mlir or .onnx")
    add("--test", required=True, metavar="LINE", help="such as \"not strata-opt %%s -mine 2>&1 | grep 'bad index'\"")
    add("-o", "--output", metavar="FILE", help="where to write; by default FILE with .reduced before its suffix")
    add("--load", action="append", default=[], metavar="FILE", help="a plugin, whose ops the file has")
    add("--version", action="version", version=f"strata-reduce {compiler.__version__}")
    return parser


def _run(words: Sequence[str]) -> int:
    options = _arguments().parse_args(words)
    source = Path(options.file)
    output = Path(options.output or source.with_name(f"{source.stem}.reduced{source.suffix}"))
    start, test = perf_counter(), _Test(options.test, source.suffix)
    is_model = source.suffix == ".onnx"
    try:
        with plugins.loaded(options.load):
            before, after = _reduce_model(source, output, test) if is_model else _reduce_text(source, output, test)
    except PROGRAM_ERRORS as error:
        if isinstance(error, StrataError):
            raise
        print(diagnose(error, Span(str(source), 1, 1)).render(), file=sys.stderr)
        return 1
    unit = "node" if is_model else "line"
    seconds = perf_counter() - start
    print(f"{counted(before, unit)} to {after} by {counted(test.count, 'test')} in {seconds:.1f} s: {output}")
    return 0


def _reduce_text(source: Path, output: Path, test: _Test) -> tuple[int, int]:
    from compiler.reduce.modules import reduce_module

    text = read(source)
    spans.remember(str(source), text)

    def holds(candidate: str) -> bool:
        found = test(lambda path: path.write_text(candidate, encoding="utf-8"))
        if found:
            write(output, [candidate])  # an interruption leaves it
        return found

    return text.count("\n"), reduce_module(text, holds, str(source)).count("\n")


def _reduce_model(source: Path, output: Path, test: _Test) -> tuple[int, int]:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise InputError("an ONNX model is reduced with the package onnx, which is not installed") from error
    from compiler.reduce.models import reduce_model

    try:
        model = onnx.load(source)
    except (OSError, DecodeError) as error:
        raise InputError(f"{source} cannot be read: {error}") from error

    def holds(candidate: Any) -> bool:
        found = test(lambda path: onnx.save(candidate, path))
        if found:
            onnx.save(candidate, output)
        return found

    return len(model.graph.node), len(reduce_model(model, holds).graph.node)


class _Test:
    """A test of a file by a command line, in which %s is the file, with this suffix. count: the number of runs so far.
    Raises InputError for a malformed line, and for one without %s."""

    def __init__(self, line: str, suffix: str) -> None:
        from compiler.filecheck.payload import FileCheckError
        from compiler.filecheck.shell import pipes

        if "%s" not in line:
            raise InputError("argument --test: %s, the file, is missing")
        try:
            pipes(line)
        except FileCheckError as error:
            raise InputError(f"argument --test: {error}") from error
        self._line, self._suffix = line, suffix
        self.count = 0

    def __call__(self, save: Callable[[Path], object]) -> bool:
        """Save a candidate to a temporary file, and return whether every command of the line succeeds."""
        from compiler.filecheck.payload import FileCheckError
        from compiler.filecheck.shell import run_line

        self.count += 1
        with plugins.set_aside(), tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"case{self._suffix}")
            save(path)
            try:
                run_line(self._line.replace("%s", str(path)).replace("%t", f"{folder}/t"), path)
            except FileCheckError:
                return False
        return True
