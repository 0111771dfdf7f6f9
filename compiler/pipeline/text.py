"""The parts of a pipeline's text, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from compiler.support import spans
from compiler.support.errors import InputError
from compiler.support.spans import Span

SOURCE = "<passes>"
"""What the text of a pipeline is called in errors."""
STRING = r'"(?:\\.|[^"\\])*"'
_TOKEN = re.compile(rf'{STRING}|[^",(){{}}]+|.', re.DOTALL)


@dataclass(frozen=True)
class Substring:
    """Some characters of a text."""

    whole: str
    start: int
    end: int

    @classmethod
    def of(cls, text: str) -> Substring:
        """All of a text."""
        return cls(text, 0, len(text))

    def __str__(self) -> str:
        return self.whole[self.start : self.end]

    def __getitem__(self, span: slice) -> Substring:
        start, end, _ = span.indices(self.end - self.start)
        return replace(self, start=self.start + start, end=self.start + end)

    @property
    def stripped(self) -> Substring:
        """The same part without spaces around it."""
        text = str(self)
        start = len(text) - len(text.lstrip())
        return self[start : start + len(text.strip())]

    def group(self, match: re.Match[str], number: int) -> Substring:
        """A group of a match in this part's text."""
        return self[slice(*match.span(number))]

    @property
    def span(self) -> Span:
        """Its place."""
        spans.remember(SOURCE, self.whole)
        return spans.inside(SOURCE, self.whole, self.start, self.end)

    def refused(self, sentence: str) -> InputError:
        """An error about this part."""
        return InputError(sentence).within(self.span)


def elements(part: Substring) -> list[Substring]:
    """The elements between commas outside brackets and quotes. Raises InputError."""
    if not str(part).strip():
        return []
    parts = [part[start:end].stripped for start, end in _between_commas(part)]
    for element in parts:
        if not str(element):
            raise element.refused(f"an empty name in the passes '{part}'")
    return parts


def _between_commas(part: Substring) -> Iterator[tuple[int, int]]:
    start, opened = 0, list[int]()
    text = str(part)
    for match in _TOKEN.finditer(text):
        token, at = match[0], match.start()
        if token == "," and not opened:
            yield start, at
            start = at + 1
        elif token in ("(", "{"):
            opened.append(at)
        elif token in (")", "}") and (not opened or text[opened.pop()] + token not in ("()", "{}")):
            raise part[at : at + 1].refused(f"unbalanced braces or brackets at a '{token}' in the passes '{part}'")
    if opened:
        at = opened[-1]
        sentence = f"unbalanced braces or brackets: a '{text[at]}' is not closed in the passes '{part}'"
        raise part[at : at + 1].refused(sentence)
    yield start, len(text)
