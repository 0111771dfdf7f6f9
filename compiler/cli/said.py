"""What is printed: errors as sentences, and text as terminals may have it."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from compiler.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from xdsl.utils.exceptions import ParseError

UNBOUNDED = 1000
"""Columns that no table needs."""


def show(text: str) -> None:
    """Print what may come from a file or a record."""
    print(printable(text))


def show_table(table: RenderableType) -> None:
    """Print a table as plain text, lines as long as they are, without spaces at their ends."""
    from rich.console import Console

    plain = StringIO()
    Console(file=plain, width=UNBOUNDED, highlight=False, markup=False).print(table)
    show("\n".join(line.rstrip() for line in plain.getvalue().splitlines()))


def sentence(error: Exception) -> str:
    """What to tell a user about an error: the place, where it has one, and one sentence."""
    from xdsl.utils.exceptions import ParseError, VerifyException

    from compiler.dialects.dominance import last_sentence

    if isinstance(error, ParseError):
        return f"{_place(error)}: {last_sentence(error.msg)}"
    if isinstance(error, VerifyException):
        return last_sentence(str(error))
    if isinstance(error, RecursionError):
        return "the program is nested too deeply"
    return str(error)


def _place(error: ParseError) -> str:
    source = error.span.input
    before = source.content[: error.span.start]
    return f"{source.name}:{before.count(chr(10)) + 1}:{error.span.start - before.rfind(chr(10))}"
