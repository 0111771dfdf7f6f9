"""Split files into pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from compiler.support.spans import Span, inside

SPLIT = "// -----"


@dataclass(frozen=True)
class Piece:
    """A part of a file that is a separate module, and the number of lines of the file before it."""

    file: str
    text: str
    lines_before: int

    @property
    def placed(self) -> str:
        """The text after `lines_before` empty lines, so that line numbers are those of the file."""
        return "\n" * self.lines_before + self.text

    @property
    def start(self) -> Span:
        """The location of the first token that is not a comment; that of the first line if there is none."""
        code = re.match(r"(\s+|//[^\n]*)*", self.text)
        end = code.end() if code else 0
        at = self.lines_before + (end if end < len(self.text) else 0)
        return inside(self.file, self.placed, at, at)


def split(file: str, text: str, marker: str = SPLIT) -> Iterator[Piece]:
    """Split the text of a file at the lines `marker`; yield the pieces."""
    split_line = re.compile(rf"^{re.escape(marker)}[ \t]*(?:\n|\Z)", re.MULTILINE)
    lines = 0
    for part in split_line.split(text):
        yield Piece(file, part, lines)
        lines += part.count("\n") + 1
