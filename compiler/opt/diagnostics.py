"""Diagnostics of exceptions caused by invalid input: a source location and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

from xdsl.ir import Operation
from xdsl.printer import Printer
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
    `refused_by` is the pass that was running, None outside of passes. `op` is the text of the op at fault, if it is
    printed as a note."""

    span: Span
    sentence: str
    known: bool = True
    refused_by: PipelineStep | None = None
    op: str = ""

    def render(self, notes: bool = True) -> str:
        """Return the diagnostic as `file:line:column: error: sentence`, then the source line and a caret.

        Without a known location, the source line is replaced by a note at the text of the refusing pass, if any, and if
        `notes` are wanted.
        """
        op = f"\n{self.span.head('note', f'see current operation: {self.op}')}" if self.op and notes else ""
        if self.known:
            return self.span.render(self.sentence) + op
        head = self.span.head("error", self.sentence)
        if not notes or op:
            return head + op
        return f"{head}\n{self.refused_by.text.span.render('by this pass', 'note')}" if self.refused_by else head


def diagnose(
    error: BaseException, start: Span, running: PipelineStep | None = None, with_op: bool = False
) -> Diagnostic:
    """Return the diagnostic of an exception.

    running: the pass that raised it, None outside of passes. The diagnostic is located at the pass option that a
    ScheduleError names, else at the location of the error, else at `start`, as unknown. with_op: whether it has the
    text of the op at fault, in generic form, if the error has one.
    """
    option = error.option if isinstance(error, ScheduleError) else ""
    span = running.option(option) if running is not None and option else None
    span = span or spans.of_error(error)
    op = spans.op_of(error) if with_op else None
    return Diagnostic(span or start, _sentence(error), span is not None, running, "" if op is None else _generic(op))


def _generic(op: Operation) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(op)
    return stream.getvalue()


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
