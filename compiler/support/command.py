"""The frame of a shell command: its streams, its error messages, its exit status."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, NoReturn, TextIO, cast

from compiler.support import spans
from compiler.support.cli_errors import underlined_argument
from compiler.support.errors import InputError, StrataError
from compiler.support.text import printable, suggestion


class Parser(argparse.ArgumentParser):
    """An argument parser that refuses arguments by an InputError."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse `args` (None: those of the process). Raises InputError for invalid arguments; for unknown ones it names
        the --help of their subcommand."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._command(sys.argv[1:] if args is None else args).error(f"unrecognized arguments: {' '.join(unknown)}")
        return options

    def _command(self, words: Sequence[str]) -> Parser:
        """The parser of the innermost subcommand among the arguments; this parser if they have none."""
        for commands in (action for action in self._actions if isinstance(action, argparse._SubParsersAction)):
            for position, word in enumerate(words):
                if word in commands.choices:
                    return cast(Parser, commands.choices[word])._command(words[position + 1 :])
        return self

    def error(self, message: str) -> NoReturn:
        """Raise InputError with a message of argparse, and a suggestion for a misspelt option or choice."""
        raise InputError(f"{message}{self._suggestion(message)} ({self.prog} --help says more)")

    def _suggestion(self, message: str) -> str:
        """Suggest the choice or option most similar to the wrong one in an argparse message; empty if there is none."""
        choice = _CHOICE.search(message)
        if choice is not None:
            return suggestion(choice[1], re.findall(r"[^\s,']+", choice[2]))
        option = _UNRECOGNIZED.search(message)
        return suggestion(option[1], self._options()) if option is not None else ""

    def _options(self) -> list[str]:
        """The long options."""
        return [name for name in self._option_string_actions if name.startswith("--")]


def plugins_behind(parser: argparse.ArgumentParser) -> None:
    """Add the option `--load FILE` (a plugin; a list in `load_behind`) to a subcommand's parser, so that the option may
    also follow the subcommand."""
    parser.add_argument("--load", action="append", default=[], dest="load_behind", metavar="FILE", help="a plugin")


_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_UNRECOGNIZED = re.compile(r"^unrecognized arguments: (--[^\s=]+)")


class Version(argparse.Action):
    """The option `--version`: prints the version of the package and exits with status 0."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="print the version, and end")

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        import compiler

        print(f"{parser.prog} {compiler.__version__}")
        parser.exit()


_STARTS = [perf_counter()]
"""The start of the running command in seconds of `perf_counter`: the import of this module for the first command of the
process, the call of `run` for later ones; empty while no command runs after the first."""
INTERRUPTED = 130
"""The exit status after an interruption."""


def run(name: str, work: Callable[[], int], arguments: Sequence[str] = ()) -> int:
    """Run `work` as the command `name`; return its exit status, 1 after an error, or INTERRUPTED after an interruption,
    which also kills the worker processes.

    A StrataError, OSError or MemoryError is printed, with a caret under the one of `arguments` that it names; other
    exceptions pass through. A closed output pipe is status 1, without a message.
    """
    if not _STARTS:
        _STARTS.append(perf_counter())
    try:
        with _warnings(name, arguments):
            return _status(name, work, arguments)
    except KeyboardInterrupt:
        if (processes := sys.modules.get("compiler.support.processes")) is not None:
            processes.end_all()
        _report(name, "interrupted")
        return INTERRUPTED
    finally:
        _STARTS.clear()


def start_time() -> float:
    """The start of the running command, in seconds of `perf_counter`; the present if no command runs."""
    return _STARTS[0] if _STARTS else perf_counter()


def _status(name: str, work: Callable[[], int], arguments: Sequence[str]) -> int:
    try:
        _check_streams()
        status = work()
        sys.stdout.flush()
    except SystemExit:
        if _flush_output(name):
            raise
        return 1
    except StrataError as error:
        return _refuse(name, arguments, error)
    except MemoryError:
        return _fail(name, "there is not enough memory for this")
    except BrokenPipeError:
        _drop_output()
        return 1
    except OSError as error:
        if not _flush_output(name):
            return 1
        subject = "the output or a file" if error.filename is None else str(error.filename)
        sentence = f"{subject} cannot be used: {error.strerror or type(error).__name__}"
        return _fail(name, "\n".join([sentence, *underlined_argument(name, arguments, sentence)]))
    return status


def _check_streams() -> None:
    """Open closed standard streams on /dev/null, so that no file gets their descriptors; set the open ones to escape
    characters that they cannot encode. Raises InputError for a closed standard output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor
    if sys.stderr is None:
        sys.stderr = _null_stream()
    if sys.stdout is None:
        sys.stdout = _null_stream()
        raise InputError("standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # for terminals that lack a character


def _null_stream() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def _flush_output(name: str) -> bool:
    """Flush standard output and return True; if that fails, discard the output, print a message unless the reader has
    closed the pipe, and return False."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        if error.errno != errno.EPIPE:
            _report(name, f"error: standard output cannot be written: {error.strerror}")
        return False
    return True


def _drop_output() -> None:
    """Redirect standard output to /dev/null, so that the interpreter's final flush succeeds."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(name: str, arguments: Sequence[str], error: StrataError) -> int:
    """Print a refusal, with its source line if it has a location, else with the argument that it names, and with
    --debug after the traceback of its cause; return 1."""
    span = spans.of_error(error)
    if "--debug" in arguments and error.__cause__ is not None:
        traceback.print_exception(error.__cause__)
    if span is None:
        return _fail(name, "\n".join([str(error), *underlined_argument(name, arguments, str(error))]))
    _flush_output(name)
    _print(span.render(str(error)))
    return 1


def _fail(name: str, sentence: str) -> int:
    _flush_output(name)
    _report(name, f"error: {sentence}")
    return 1


def _report(name: str, text: str) -> None:
    _print(f"{name}: {text}")


def _print(text: str) -> None:
    with suppress(OSError):
        print(printable(text), file=sys.stderr, flush=True)


@contextmanager
def _warnings(name: str, arguments: Sequence[str]) -> Iterator[None]:
    """Print warnings in the context as messages of the command; with --debug after the traceback of their cause."""

    def show(message: Warning | str, *place: Any, **options: Any) -> None:
        if "--debug" in arguments and isinstance(message, Warning) and message.__cause__ is not None:
            traceback.print_exception(message.__cause__)
        _report(name, f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
