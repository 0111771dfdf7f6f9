"""Printing: error messages, and untrusted text with control characters escaped."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from compiler.support import spans
from compiler.support.errors import InputError
from compiler.support.text import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

UNBOUNDED = 1000
"""A width in columns that exceeds all tables."""


def show(text: str) -> None:
    """Print text that may be from a file or a record, with control characters escaped."""
    print(printable(text))


def show_table(table: RenderableType) -> None:
    """Print a table as plain text, without wrapping or trailing spaces."""
    from rich.console import Console

    plain = StringIO()
    Console(file=plain, width=UNBOUNDED, highlight=False, markup=False).print(table)
    show("\n".join(line.rstrip() for line in plain.getvalue().splitlines()))


def sentence(error: Exception) -> str:
    """The message of an error in one sentence, without the op and the location that xDSL prints around it."""
    from xdsl.utils.exceptions import ParseError, VerifyException

    from compiler.dialects.dominance import last_sentence

    if isinstance(error, ParseError):
        return last_sentence(error.msg)
    if isinstance(error, VerifyException):
        return last_sentence(str(error))
    if isinstance(error, RecursionError):
        return "the program is nested too deeply"
    return str(error)


def input_error(error: Exception, source: str) -> InputError:
    """Return an InputError with the message of a program's error, after `source: ` if the error has no location."""
    message = sentence(error)
    return InputError(message if spans.of_error(error) is not None else f"{source}: {message}")
