"""Places in source texts: where an op stands, and an error as a sentence with the line and a caret under the place.

Every op carries its place as xDSL's `location`. The parser and `te.compute` state it, clones keep it, and what rewrites
loops or lowers them hands it on.
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
from typing import TYPE_CHECKING

from compiler.support.text import printable

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr
    from xdsl.ir import Operation
    from xdsl.utils.exceptions import ParseError

OURS = ("compiler", "strata")
"""The packages whose frames are not the caller's."""
WIDTH = 120
"""The columns of a source line that are shown; of a longer one, those around the caret."""
_WORD = re.compile(r"[\w.%@$!#-]+")
_texts: dict[str, str] = {}


def remember(source: str, text: str) -> None:
    """Keep the text of a source, if it is no file but such as <stdin>, until another one has its name."""
    if source.startswith("<"):
        _texts[source] = text


@dataclass(frozen=True)
class Span:
    """Some characters in one line of a source; line and column count from one.

    `source` is the path of a file, or a name in angle brackets. A `length` of 0 is the word that begins there.

    >>> strata.errors.Span("matmul.mlir", 3, 7).head("error", "there is no loop 'm'")
    "matmul.mlir:3:7: error: there is no loop 'm'"
    """

    source: str
    line: int
    column: int
    length: int = 0

    def head(self, kind: str, sentence: str) -> str:
        """`file:line:column: kind: sentence`, which editors know how to follow."""
        return f"{self.source}:{self.line}:{self.column}: {kind}: {sentence}"

    def render(self, sentence: str, kind: str = "error") -> str:
        """`file:line:column: error: sentence`, then the line of the source and a caret, if that line is there."""
        return "\n".join([self.head(kind, sentence), *underlined(self.text, self.column, self.length)])

    @property
    def text(self) -> str:
        """The line of the source; empty if the source is gone, or is no text."""
        if self.source in _texts:
            lines = _texts[self.source].split("\n")
            return lines[self.line - 1] if self.line <= len(lines) else ""
        linecache.checkcache(self.source)
        return linecache.getline(self.source, self.line).rstrip("\n")


def underlined(text: str, column: int, length: int = 0) -> list[str]:
    """A line and the line below it, which has `^~~~` under some characters; nothing for a place outside the line."""
    if not text.strip() or not 1 <= column <= len(text) + 1:
        return []
    word = _WORD.match(text, column - 1)
    length = length or (word.end() - word.start() if word else 1)
    start = max(0, min(column - 1 - WIDTH // 2, len(text) - WIDTH))
    before, under = text[start : column - 1], text[column - 1 : column - 1 + length]
    blank = re.sub(r"[^\t]", " ", printable(before))
    marks = min(len(printable(under)), max(1, WIDTH - len(before)))
    return [printable(text[start : start + WIDTH]), blank + "^" + "~" * (marks - 1)]


def inside(source: str, text: str, start: int, end: int) -> Span:
    """The characters of a source's text from one to another, as far as they are in one line."""
    line_end = text.find("\n", start)
    length = min(end, line_end if line_end >= 0 else len(text)) - start
    return Span(source, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start), max(1, length))


def of_op(op: Operation) -> Span | None:
    """Where an op stands: its own place, else that of the first op in it, else that of the closest op around it."""
    around: Operation | None = op
    while around is not None:
        for inner in around.walk() if around is op else [around]:
            span = of_location(inner.location)
            if span is not None:
                return span
        around = around.parent_op()
    return None


def of_location(location: LocationAttr) -> Span | None:
    """The first place of a file that a location names."""
    from xdsl.dialects.builtin import FileLineColLoc

    for part in _parts(location):
        if isinstance(part, FileLineColLoc):
            return Span(part.filename.data, part.line.data, part.column.data)
    return None


def _parts(location: object) -> Iterator[object]:
    """A location and those that it is made of."""
    from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FusedLoc, NameLoc

    yield location
    match location:
        case CallSiteLoc():
            inner: list[object] = [location.callee, location.caller]
        case NameLoc():
            inner = [location.location]
        case FusedLoc(locations=ArrayAttr() as locations):
            inner = [*locations]
        case _:
            return
    for part in inner:
        yield from _parts(part)


def of_parse_error(error: ParseError) -> Span:
    """Where a text cannot be parsed."""
    return inside(error.span.input.name, error.span.input.content, error.span.start, error.span.end)


_stated: ContextVar[Span | None] = ContextVar("stated", default=None)


@contextmanager
def called_at(span: Span | None) -> Iterator[None]:
    """Take a place for that of the caller meanwhile, as of a model that a front end reads; None changes nothing."""
    token = _stated.set(span or _stated.get())
    try:
        yield
    finally:
        _stated.reset(token)


def of_caller() -> LocationAttr:
    """The line of the program in Python that called Strata, or the place that a front end states."""
    from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, StringAttr

    stated = _stated.get()
    if stated is not None:
        return FileLineColLoc(StringAttr(stated.source), IntAttr(stated.line), IntAttr(stated.column))
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        if frame.f_back is None:
            return UNKNOWN_LOC
        frame = frame.f_back
    instruction = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None, None, None, None))
    place = IntAttr(frame.f_lineno), IntAttr((instruction[2] or 0) + 1)
    return FileLineColLoc(StringAttr(frame.f_code.co_filename), *place)


def of_error(error: BaseException) -> Span | None:
    """Where the program is wrong that an error refuses: its own place, that of its op, or that of its cause.

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
