"""Errors a user can cause, as sentences."""

from __future__ import annotations

from xdsl.utils.exceptions import ParseError, VerifyException

from compiler.dialects.dominance import last_sentence


def sentence(error: Exception) -> str:
    """What to tell a user about an error: the place, where it has one, and one sentence."""
    if isinstance(error, ParseError):
        return f"{_place(error)}: {last_sentence(error.msg)}"
    if isinstance(error, VerifyException):
        return last_sentence(str(error))
    if isinstance(error, RecursionError):
        return "the program is nested too deeply"
    if isinstance(error, OSError):
        subject = "a file" if error.filename is None else str(error.filename)
        return f"{subject} cannot be used: {error.strerror or type(error).__name__}"
    return str(error)


def _place(error: ParseError) -> str:
    source = error.span.input
    before = source.content[: error.span.start]
    return f"{source.name}:{before.count(chr(10)) + 1}:{error.span.start - before.rfind(chr(10))}"
