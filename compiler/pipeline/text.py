"""The parts of a pipeline's text, with their source locations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from compiler.support import spans
from compiler.support.errors import InputError
from compiler.support.spans import Span

SOURCE = "<passes>"
"""The name of a pipeline's text in errors."""
STRING = r'"(?:\\.|[^"\\])*"'
_TOKEN = re.compile(rf'{STRING}|[^",(){{}}]+|.', re.DOTALL)


@dataclass(frozen=True)
class Substring:
    """The characters `start` to `end` of the text `source`; slices of it are Substrings of the same text."""

    source: str
    start: int
    end: int

    @classmethod
    def of(cls, text: str) -> Substring:
        """Return the Substring of a whole text."""
        return cls(text, 0, len(text))

    def __str__(self) -> str:
        return self.source[self.start : self.end]

    def __getitem__(self, span: slice) -> Substring:
        start, end, _ = span.indices(self.end - self.start)
        return replace(self, start=self.start + start, end=self.start + end)

    @property
    def stripped(self) -> Substring:
        """The substring without surrounding white space."""
        text = str(self)
        start = len(text) - len(text.lstrip())
        return self[start : start + len(text.strip())]

    def group(self, match: re.Match[str], number: int) -> Substring:
        """The Substring of a group of a match in this substring's text."""
        return self[slice(*match.span(number))]

    @property
    def span(self) -> Span:
        """The source location of the substring, whose text is registered as `<passes>` for messages."""
        spans.remember(SOURCE, self.source)
        return spans.inside(SOURCE, self.source, self.start, self.end)

    def refusal(self, sentence: str) -> InputError:
        """Return an InputError with a sentence and the location of the substring."""
        return InputError(sentence).within(self.span)


def elements(part: Substring) -> list[Substring]:
    """Split a text at commas outside brackets and quotes; no elements for an empty text. Raises InputError for empty
    elements and unbalanced brackets."""
    if not str(part).strip():
        return []
    stripped = [part[start:end].stripped for start, end in _between_commas(part)]
    for element in stripped:
        if not str(element):
            raise element.refusal(f"an empty name in the passes '{part}'")
    return stripped


def _between_commas(pipeline: Substring) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each element between commas outside brackets and quotes. Raises InputError for
    unbalanced brackets."""
    start, opened = 0, list[int]()
    text = str(pipeline)
    for match in _TOKEN.finditer(text):
        token, position = match[0], match.start()
        if token == "," and not opened:
            yield start, position
            start = position + 1
        elif token in ("(", "{"):
            opened.append(position)
        elif token in (")", "}") and (not opened or text[opened.pop()] + token not in ("()", "{}")):
            sentence = f"unbalanced braces or brackets at a '{token}' in the passes '{pipeline}'"
            raise pipeline[position : position + 1].refusal(sentence)
    if opened:
        unclosed = opened[-1]
        sentence = f"unbalanced braces or brackets: a '{text[unclosed]}' is not closed in the passes '{pipeline}'"
        raise pipeline[unclosed : unclosed + 1].refusal(sentence)
    yield start, len(text)
