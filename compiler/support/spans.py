"""Source locations of ops, and error messages with the source line and a caret.

Every op has its location as xDSL's `location`. The parser and `te.compute` set it; clones, rewrites and lowerings
preserve it.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, cast

from compiler.support.origins import components, location_of
from compiler.support.text import printable

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr
    from xdsl.ir import Operation
    from xdsl.utils.exceptions import ParseError

OURS = ("compiler", "strata")
"""The packages whose frames are not the caller's."""
WIDTH = 120
"""The most columns of a source line in a message, around the caret."""
_WORD = re.compile(r"[\w.%@$!#-]+")
_texts: dict[str, str] = {}


def remember(source: str, text: str) -> None:
    """Store the text of a source in angle brackets, such as <stdin>, for `Span.text`; ignore other sources (files)."""
    if source.startswith("<"):
        _texts[source] = text


@dataclass(frozen=True)
class Span:
    """A range of characters in one line of a source; line and column count from 1.

    source: the path of a file, or a name in angle brackets. length: 0 for the word at the column.

    >>> strata.errors.Span("matmul.mlir", 3, 7).head("error", "there is no loop 'm'")
    "matmul.mlir:3:7: error: there is no loop 'm'"
    """

    source: str
    line: int
    column: int
    length: int = 0

    def head(self, kind: str, sentence: str) -> str:
        """Return `file:line:column: kind: sentence`, a form that editors link."""
        return f"{self.source}:{self.line}:{self.column}: {kind}: {sentence}"

    def render(self, sentence: str, kind: str = "error") -> str:
        """Return `file:line:column: kind: sentence`, then the source line and a caret, if the line is available."""
        return "\n".join([self.head(kind, sentence), *underlined(self.text, self.column, self.length)])

    @property
    def text(self) -> str:
        """The source line; empty if it is not available."""
        if self.source in _texts:
            lines = _texts[self.source].split("\n")
            return lines[self.line - 1] if self.line <= len(lines) else ""
        linecache.checkcache(self.source)
        return linecache.getline(self.source, self.line).rstrip("\n")


def underlined(text: str, column: int, length: int = 0) -> list[str]:
    """Return the line `text`, cut to WIDTH columns, and a line with `^~~~` below `length` characters from `column`
    (counted from 1); length 0 is the word there. An empty list for a blank line or a column outside the line."""
    if not text.strip() or not 1 <= column <= len(text) + 1:
        return []
    word = _WORD.match(text, column - 1)
    length = length or (word.end() - word.start() if word else 1)
    start = max(0, min(column - 1 - WIDTH // 2, len(text) - WIDTH))
    prefix, marked = text[start : column - 1], text[column - 1 : column - 1 + length]
    blank = re.sub(r"[^\t]", " ", printable(prefix))
    marks = min(len(printable(marked)), max(1, WIDTH - len(prefix)))
    return [printable(text[start : start + WIDTH]), blank + "^" + "~" * (marks - 1)]


def inside(source: str, text: str, start: int, end: int) -> Span:
    """The span of the characters `start` to `end` (counted from 0, `end` excluded) of the text of `source`, cut at the
    end of the line of `start`; of length 1 at least."""
    line_end = text.find("\n", start)
    length = min(end, line_end if line_end >= 0 else len(text)) - start
    return Span(source, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start), max(1, length))


def op_of(error: BaseException) -> Operation | None:
    """Return the op at fault of an error or of its causes; None if none has one."""
    from xdsl.ir import Operation

    cause: BaseException | None = error
    while cause is not None:
        op = getattr(cause, "op", None)
        if isinstance(op, Operation):
            return op
        cause = cause.__cause__
    return None


def of_op(op: Operation) -> Span | None:
    """The location of an op: its own, else of the first op inside it, else of the closest enclosing op; or None."""
    scope: Operation | None = op
    while scope is not None:
        for inner in scope.walk() if scope is op else [scope]:
            span = of_location(inner.location)
            if span is not None:
                return span
        scope = scope.parent_op()
    return None


def of_location(location: LocationAttr) -> Span | None:
    """The first location in a file among the components of a location; None if there is none."""
    from xdsl.dialects.builtin import FileLineColLoc

    for part in components(location):
        if isinstance(part, FileLineColLoc):
            return Span(part.filename.data, part.line.data, part.column.data)
    return None


def of_parse_error(error: ParseError) -> Span:
    """The location of an xDSL parse error, cut at the end of its first line."""
    return inside(error.span.input.name, error.span.input.content, error.span.start, error.span.end)


NO_CALLER = object()
"""The value of `_caller` in a command: no line of Python that called Strata is the user's."""
_caller: ContextVar[LocationAttr | object | None] = ContextVar("stated", default=None)


@contextmanager
def called_at(span: Span | None, name: str = "", operator: str = "") -> Iterator[None]:
    """Set the location that `of_caller` returns in the context: a line of a model, under the name of a module or node
    and an ONNX operator (see `compiler.support.origins`). None without names changes nothing."""
    from xdsl.dialects.builtin import UNKNOWN_LOC, UnknownLoc

    location = location_of(name, operator, UNKNOWN_LOC if span is None else _position(span))
    token = _caller.set(_caller.get() if isinstance(location, UnknownLoc) else location)
    try:
        yield
    finally:
        _caller.reset(token)


@contextmanager
def without_caller() -> Iterator[None]:
    """Let `of_caller` return an unknown location in the context unless one is set, as for commands of the shell."""
    token = _caller.set(NO_CALLER)
    try:
        yield
    finally:
        _caller.reset(token)


def _position(span: Span) -> LocationAttr:
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

    return FileLineColLoc(StringAttr(span.source), IntAttr(span.line), IntAttr(span.column))


def of_caller() -> LocationAttr:
    """The location set by `called_at`, else the line of Python that called Strata; unknown if there is
    none."""
    from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, StringAttr

    stated = _caller.get()
    if stated is not None:
        return UNKNOWN_LOC if stated is NO_CALLER else cast("LocationAttr", stated)
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        if frame.f_back is None:
            return UNKNOWN_LOC
        frame = frame.f_back
    instruction = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None, None, None, None))
    position = IntAttr(frame.f_lineno), IntAttr((instruction[2] or 0) + 1)
    return FileLineColLoc(StringAttr(frame.f_code.co_filename), *position)


def of_error(error: BaseException) -> Span | None:
    """The location of an error: its own span, that of its op, or that of its cause; None if none has one.

    >>> try:
    ...     strata.passes.parse("func.func @f(")
    ... except Exception as error:
    ...     strata.errors.of_error(error)
    Span(source='<text>', line=1, column=14, length=1)
    """
    from xdsl.ir import Operation
    from xdsl.utils.exceptions import ParseError

    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:
        seen.append(cause)
        if isinstance(getattr(cause, "span", None), Span):
            return cause.span  # type: ignore[attr-defined, no-any-return]
        if isinstance(cause, ParseError):
            return of_parse_error(cause)
        op = getattr(cause, "op", None)
        span = of_op(op) if isinstance(op, Operation) else None
        if span is not None:
            return span
        cause = cause.__cause__
    return None
