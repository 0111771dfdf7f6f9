"""Texts of documents: ranges of characters, lines and columns in the units of a client, and the tokens of MLIR."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

_LINE_END = re.compile(r"\r\n|\n|\r")
_TOKEN = re.compile(
    r"""(?P<comment>//[^\r\n]*)
    |(?P<value>%(?:\d+|[\w$.-]+))
    |(?P<symbol>@(?:"(?:[^"\\\r\n]|\\.)*"|[\w$.-]+))
    |(?P<block>\^[\w$.-]+)
    |(?P<string>"(?:[^"\\\r\n]|\\.)*")
    |(?P<type>![\w$.-]+)
    |(?P<word>[A-Za-z_][\w$.]*)
    |(?P<number>\d[\w.]*)""",
    re.VERBOSE,
)
UNITS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
"""The encodings of columns that a client may choose, and the bytes of a unit."""


@dataclass(frozen=True, order=True)
class TextRange:
    """The characters of a text from offset `start` to `end`, which is excluded."""

    start: int
    end: int

    def shifted(self, offset: int) -> TextRange:
        """The range `offset` characters later."""
        return TextRange(self.start + offset, self.end + offset)

    def touches(self, offset: int) -> bool:
        """Whether a cursor at an offset is inside the range or at one of its ends."""
        return self.start <= offset <= self.end


@dataclass(frozen=True)
class Token:
    """A token of MLIR: its kind, a group of the pattern above such as `value`, its text, and its range."""

    kind: str
    text: str
    range: TextRange


class Text:
    """A text with its lines. Lines and columns count from 0; a line ends in `\\n`, `\\r\\n` or `\\r`. Columns are
    counted in the units of `encoding`, a key of UNITS."""

    def __init__(self, text: str, encoding: str = "utf-32") -> None:
        self.text = text
        self._unit = UNITS[encoding]
        self._codec = f"{encoding}-le" if self._unit > 1 else encoding

    @cached_property
    def lines(self) -> list[int]:
        """The offsets at which the lines begin."""
        return [0, *(end.end() for end in _LINE_END.finditer(self.text))]

    def line_range(self, line: int) -> TextRange:
        """The characters of a line without its end. Lines behind the last one are empty, at the end of the text."""
        if line >= len(self.lines):
            return TextRange(len(self.text), len(self.text))
        start = self.lines[line]
        end = self.lines[line + 1] if line + 1 < len(self.lines) else len(self.text)
        return TextRange(start, start + len(self.text[start:end].rstrip("\r\n")))

    def position(self, offset: int) -> tuple[int, int]:
        """The line and the column of an offset; an offset outside the text is moved to its nearest end."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self.lines, offset) - 1
        return line, self._units(self.text[self.lines[line] : offset])

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and a column; a column behind the end of the line is moved to that end."""
        characters = self.line_range(max(line, 0))
        text = self.text[characters.start : characters.end]
        if text.isascii():
            return characters.start + min(max(column, 0), len(text))
        count = 0
        for position, character in enumerate(text):
            if count >= column:
                return characters.start + position
            count += self._units(character)
        return characters.end

    def _units(self, text: str) -> int:
        if text.isascii():
            return len(text)
        return len(text.encode(self._codec, "surrogatepass")) // self._unit


@lru_cache(maxsize=8)
def tokens(text: str) -> Sequence[Token]:
    """The tokens of a text, comments included, punctuation left out; of an unfinished string its words."""
    return tuple(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        yield Token(str(match.lastgroup), match[0], TextRange(*match.span()))


def tokens_from(text: str, offset: int) -> Iterator[Token]:
    """Yield the tokens of a text that begin at an offset or behind it."""
    every = tokens(text)
    return islice(every, bisect_left(every, offset, key=lambda token: token.range.start), None)


def token_at(text: str, offset: int) -> Token | None:
    """The token at an offset, which may be its end; of two that meet there the one that begins. None between tokens."""
    every = tokens(text)
    behind = bisect_right(every, offset, key=lambda token: token.range.start)
    last = every[behind - 1] if behind else None
    return last if last is not None and last.range.touches(offset) else None
