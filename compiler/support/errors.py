"""The exceptions a user can cause, one for each boundary; each has a sentence as its message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from compiler.support.spans import Span


class StrataError(Exception):
    """Base of all errors that a user's input can cause; the message is a sentence.

    `op` is the op at fault, or None. `span` is the fault's location in a text; None if it is that of `op`, or unknown.

    >>> issubclass(strata.errors.ScheduleError, strata.errors.StrataError)
    True
    """

    op: object = None
    span: Span | None = None

    def at(self, op: Operation) -> Self:
        """Set the op at fault, add a note with its source line if there is one, and return the error."""
        from compiler.support.spans import of_op

        self.op = op
        span = of_op(op)
        if span is not None and span.text:
            self.add_note(f"{span.source}:{span.line}: {span.text.strip()}")
        return self

    def within(self, span: Span) -> Self:
        """Set the location of the fault in a text, and return the error."""
        self.span = span
        return self


class TeError(StrataError):
    """An invalid tensor expression.

    >>> te.nn.matmul(te.placeholder((4, 8), name="A"), te.placeholder((4, 8), name="B"))
    Traceback (most recent call last):
        ...
    compiler.support.errors.TeError: matmul: the extents of k in 'A' and 'B' differ: 8 and 4
    """


class ScheduleError(StrataError):
    """The refusal of a schedule primitive; the program is unchanged.

    `primitive` is its name, `place` the loop, block or buffer, `reason` a sentence or an object that prints as one: it
    is rendered only when it is shown, since a search raises thousands. `option` is the option of a pass that names a
    missing block or loop, else empty.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> s.split(s.get_loops("B")[0], [4, 8])
    Traceback (most recent call last):
        ...
    compiler.support.errors.ScheduleError: split: loop 'i0': the factors 4 x 8 do not cover its extent 64
    """

    option = ""

    def __init__(self, reason: object, primitive: str = "", place: str = "") -> None:
        super().__init__(reason, primitive, place)
        self.reason = reason
        self.primitive = primitive
        self.place = place

    def __str__(self) -> str:
        return ": ".join(str(part) for part in (self.primitive, self.place, self.reason) if part)


@contextmanager
def refused_by(primitive: str) -> Iterator[None]:
    """Set the primitive's name in a ScheduleError that leaves the context without one."""
    try:
        yield
    except ScheduleError as error:
        error.primitive = error.primitive or primitive
        error.args = (error.reason, error.primitive, error.place)
        raise


class LoweringError(StrataError):
    """A valid program that a lowering cannot express.

    >>> from xdsl.context import Context
    >>> module = te.function("f", [], te.constant([1.0])).module
    >>> try:
    ...     strata.passes.run(Context(), module, strata.passes.parse_passes("loop-to-low"))
    ... except strata.errors.LoweringError as error:
    ...     print(str(error).partition(":")[0])
    loop-to-low takes the loop level
    """


class TargetError(StrataError):
    """A missing target, machine or compiler, code that a compiler refuses, or invalid arguments of a kernel.

    >>> strata.targets.target_named("fpga")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    compiler.support.errors.TargetError: unknown target 'fpga' (there are cpu...
    """


class InputError(StrataError):
    """An invalid command line, pipeline or file. Most functions raise it for invalid arguments, too.

    >>> strata.passes.parse_passes("no-such-pass")
    Traceback (most recent call last):
        ...
    compiler.support.errors.InputError: there is no pass 'no-such-pass'
    """
