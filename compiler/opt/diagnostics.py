"""From the exceptions that wrong input causes to diagnostics: a place and a sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from compiler.dialects.dominance import Refusal, last_sentence
from compiler.errors import StrataError
from compiler.opt.source import Places

SAID = (ParseError, DiagnosticException, StrataError, RecursionError)
"""What parsers, verifiers and passes raise to refuse a program."""

_UNREGISTERED = re.compile(r"Operation \S+ is not registered")


@dataclass(frozen=True)
class Diagnostic:
    """An error at a place of a file; not `known` if the error said no place and the whole piece is meant."""

    line: int
    column: int
    sentence: str
    known: bool = True

    def render(self, file: str) -> str:
        """The line that a person reads, and that editors know how to follow."""
        return f"{file}:{self.line}:{self.column}: error: {self.sentence}"


def diagnose(error: BaseException, places: Places) -> Diagnostic:
    """The diagnostic of an exception that a piece has caused."""
    place = _place(error, places)
    return Diagnostic(*(place or places.piece.start), _sentence(error), known=place is not None)


def _place(error: BaseException, places: Places) -> tuple[int, int] | None:
    if isinstance(error, ParseError) and not _UNREGISTERED.fullmatch(error.msg):  # xDSL puts those past the name
        return places.piece.place(error.span.start)
    if isinstance(error, StrataError) and isinstance(error.op, Operation):
        return places.of(error.op)
    return places.of(error.op) if isinstance(error, Refusal) else places.latest


def _sentence(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "the program is nested too deeply"
    if isinstance(error, ParseError):
        return last_sentence(error.msg)
    if isinstance(error, (StrataError, VerifyException)):
        return " ".join(str(error).split())
    said = str(error).strip()
    kind = "" if isinstance(error, DiagnosticException) else f" ({type(error).__name__})"
    return last_sentence(said) + kind if said else type(error).__name__
