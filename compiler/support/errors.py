"""The exceptions a user can cause, one for each boundary; each is built with one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from compiler.support.spans import Span


class StrataError(Exception):
    """Base of all errors that a user's input can cause; the message is a sentence for that user.

    `op` is the op that it is about, where there is one, and `span` its place in a text, where that is no op's.
    """

    op: object = None
    span: Span | None = None

    def at(self, op: Operation) -> Self:
        """The same error, about an op; a note says where that stands in a file, such as the caller's."""
        from compiler.support.spans import of_op

        self.op = op
        span = of_op(op)
        if span is not None and span.text:
            self.add_note(f"{span.source}:{span.line}: {span.text.strip()}")
        return self

    def within(self, span: Span) -> Self:
        """The same error, about some characters of a text."""
        self.span = span
        return self


class TeError(StrataError):
    """A tensor expression that cannot be built."""


class ScheduleError(StrataError):
    """A schedule primitive that was refused; the payload is untouched.

    `primitive` is its name, `place` the loop, block or buffer, `reason` a sentence or what prints as one: it is
    rendered only when a person reads it, since a search raises thousands.
    """

    def __init__(self, reason: object, primitive: str = "", place: str = "") -> None:
        super().__init__(reason, primitive, place)
        self.reason = reason
        self.primitive = primitive
        self.place = place

    def __str__(self) -> str:
        return ": ".join(str(part) for part in (self.primitive, self.place, self.reason) if part)


@contextmanager
def refused_by(primitive: str) -> Iterator[None]:
    """Say of each ScheduleError within which primitive is refused, where it does not say so."""
    try:
        yield
    except ScheduleError as error:
        error.primitive = error.primitive or primitive
        error.args = (error.reason, error.primitive, error.place)
        raise


class LoweringError(StrataError):
    """A program that verifies but that a lowering cannot express."""


class TargetError(StrataError):
    """A target that is missing, or arguments that a built kernel does not take."""


class InputError(StrataError):
    """A command line, a pipeline or a file that cannot be read."""
