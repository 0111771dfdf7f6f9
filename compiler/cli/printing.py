"""Printing: errors as sentences, and text without characters that a terminal would obey."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from compiler.support import spans
from compiler.support.errors import InputError
from compiler.support.text import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

UNBOUNDED = 1000
"""Columns that no table needs."""


def show(text: str) -> None:
    """Print text that may come from a file or a record."""
    print(printable(text))


def show_table(table: RenderableType) -> None:
    """Print a table as plain text, lines as long as they are, without spaces at their ends."""
    from rich.console import Console

    plain = StringIO()
    Console(file=plain, width=UNBOUNDED, highlight=False, markup=False).print(table)
    show("\n".join(line.rstrip() for line in plain.getvalue().splitlines()))


def sentence(error: Exception) -> str:
    """What to tell a user about an error, in one sentence; its place is said with it, see `compiler.support.spans`."""
    from xdsl.utils.exceptions import ParseError, VerifyException

    from compiler.dialects.dominance import last_sentence

    if isinstance(error, ParseError):
        return last_sentence(error.msg)
    if isinstance(error, VerifyException):
        return last_sentence(str(error))
    if isinstance(error, RecursionError):
        return "the program is nested too deeply"
    return str(error)


def refused(error: Exception, source: str) -> InputError:
    """An error of a program with the name of its source file."""
    said = sentence(error)
    return InputError(said if spans.of_error(error) is not None else f"{source}: {said}")
