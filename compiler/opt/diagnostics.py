"""Diagnostics of exceptions caused by invalid input: a source location and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from compiler.dialects.dominance import last_sentence
from compiler.pipeline.parser import PipelineStep
from compiler.support import spans
from compiler.support.errors import ScheduleError, StrataError
from compiler.support.spans import Span

PROGRAM_ERRORS = (ParseError, DiagnosticException, StrataError, RecursionError)
"""The exceptions by which parsers, verifiers and passes refuse a program."""


@dataclass(frozen=True)
class Diagnostic:
    """An error at a source location. `known` is False if the error has none: `span` is then the start of the piece.
    `refused_by` is the pass that was running, None outside of passes."""

    span: Span
    sentence: str
    known: bool = True
    refused_by: PipelineStep | None = None

    def render(self, notes: bool = True) -> str:
        """Return the diagnostic as `file:line:column: error: sentence`, then the source line and a caret.

        Without a known location, the source line is replaced by a note at the text of the refusing pass, if any, and if
        `notes` are wanted.
        """
        if self.known:
            return self.span.render(self.sentence)
        head = self.span.head("error", self.sentence)
        if not notes:
            return head
        return f"{head}\n{self.refused_by.text.span.render('by this pass', 'note')}" if self.refused_by else head


def diagnose(error: BaseException, start: Span, running: PipelineStep | None = None) -> Diagnostic:
    """Return the diagnostic of an exception; `running` is the pass that raised it, None outside of passes.

    It is located at the pass option that a ScheduleError names, else at the location of the error, else at `start`, as
    unknown.
    """
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
