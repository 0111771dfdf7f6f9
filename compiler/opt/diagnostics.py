"""From the exceptions that wrong input causes to diagnostics: a place and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from compiler.dialects.dominance import last_sentence
from compiler.pipeline import PipelineStep
from compiler.support import spans
from compiler.support.errors import ScheduleError, StrataError
from compiler.support.spans import Span

SAID = (ParseError, DiagnosticException, StrataError, RecursionError)
"""What parsers, verifiers and passes raise to refuse a program."""


@dataclass(frozen=True)
class Diagnostic:
    """An error at a place; not `known` if the error said no place and the whole piece is meant, as `refused_by`."""

    span: Span
    sentence: str
    known: bool = True
    refused_by: PipelineStep | None = None

    def render(self) -> str:
        """The line that a person reads, and that editors know how to follow; then the line of the file and a caret.

        Where the place is not known, the pass is shown that refuses the program.
        """
        if self.known:
            return self.span.render(self.sentence)
        head = self.span.head("error", self.sentence)
        return f"{head}\n{self.refused_by.stated.span.render('by this pass', 'note')}" if self.refused_by else head


def diagnose(error: BaseException, start: Span, running: PipelineStep | None = None) -> Diagnostic:
    """The diagnostic of an exception that a program has caused, which begins at a place, while a pass was running."""
    option = error.option if isinstance(error, ScheduleError) else ""
    span = running.option(option) if running is not None and option else None
    span = span or spans.of_error(error)
    return Diagnostic(span or start, _sentence(error), span is not None, running)


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
