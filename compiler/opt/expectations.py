"""--verify-diagnostics: compare the diagnostics expected by comments with the actual ones.

A comment is `expected-error {{text}}` on the line of the error, or `expected-error@+1`, `@-2`, `@below`,
`@above` (past other such comments) or `@unknown` (an error without a location); `expected-error-re` has
regular expressions in `{{...}}` inside. As in mlir-opt, except that a comment that it silently ignores is
an error here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compiler.opt.diagnostics import Diagnostic
from compiler.opt.source import Piece
from compiler.support.spans import Span

UNEXPECTED = "unexpected error: "
"""The start of the sentence of a diagnostic that no comment announces."""
_KIND = re.compile(r"expected-(?:error|warning|note|remark)")
_HEAD = re.compile(
    r"expected-(error|warning|note|remark)(-re)? *+(?:@([+-]\d+|above|below|unknown))? *+\{\{"
)  # possessive, so that a long line takes linear time


@dataclass(frozen=True)
class _Expected:
    kind: str
    line: int | None
    text: str
    pattern: re.Pattern[str]

    def matches(self, diagnostic: Diagnostic) -> bool:
        line = diagnostic.span.line if diagnostic.known else None
        return self.kind == "error" and self.line == line and bool(self.pattern.search(diagnostic.sentence))


def mismatches(piece: Piece, diagnostics: Iterable[Diagnostic], all_expected: bool = True) -> list[Diagnostic]:
    """Return errors for a piece: its unexpected diagnostics, if `all_expected` requires that each is expected, its
    invalid comments, and the expected diagnostics that are missing; empty on success. An expectation matches one
    diagnostic."""
    wrong: list[Diagnostic] = []
    expected = list(_expectations(piece, wrong))
    for diagnostic in diagnostics:
        match = next((e for e in expected if e.matches(diagnostic)), None)
        if match is None and all_expected:
            wrong.append(Diagnostic(diagnostic.span, f"{UNEXPECTED}{diagnostic.sentence}"))
        elif match is not None:
            expected.remove(match)
    for e in expected:
        span = piece.start if e.line is None else Span(piece.file, e.line, 1)
        wrong.append(Diagnostic(span, f'expected {e.kind} "{e.text}" was not produced'))
    return wrong


def _expectations(piece: Piece, wrong: list[Diagnostic]) -> Iterator[_Expected]:
    lines = piece.text.split("\n")
    comments = [_comment(line) for line in lines]
    targets = _Targets([comment is not None for comment in comments])
    for index, comment in enumerate(comments):
        if comment is None:
            continue
        head = _HEAD.search(comment)
        text = comment[head.end() : -2] if head and comment.endswith("}}") and head.end() <= len(comment) - 2 else None
        pattern = _pattern(text, regular=bool(head[2])) if head and text is not None else None
        if head is None or text is None or pattern is None:
            number = piece.lines_before + index + 1
            sentence = "this comment is not of the form expected-error@+1 {{text}} and checks nothing"
            wrong.append(Diagnostic(Span(piece.file, number, 1), sentence))
            continue
        target = targets.of(head[3], index)
        yield _Expected(head[1], None if target is None else piece.lines_before + target + 1, text, pattern)


def _comment(line: str) -> str | None:
    """Return the text of a line from `//` on if it has an expectation, else None."""
    start = line.find("//")
    return line[start:].rstrip() if start >= 0 and _KIND.search(line, start) else None


def _pattern(text: str, regular: bool) -> re.Pattern[str] | None:
    if not regular:
        return re.compile(re.escape(text))
    try:
        return re.compile("".join(_regular(text)))
    except re.error:
        return None


def _regular(text: str) -> Iterator[str]:
    """Yield the parts of a regular expression: text in `{{...}}` as it is, other text escaped."""
    while text:
        literal, _, after_literal = text.partition("{{")
        inner, closed, after = after_literal.partition("}}")
        if not closed:
            yield re.escape(text)
            return
        yield re.escape(literal) + inner
        text = after


class _Targets:
    """The lines that comments with expectations refer to; `announcing` is true for each line with such a comment."""

    def __init__(self, announcing: list[bool]) -> None:
        self._above = list(_closest(announcing))
        self._below = [len(announcing) - 1 - n for n in _closest(announcing[::-1])][::-1]

    def of(self, where: str | None, index: int) -> int | None:
        """Return the index of the line that `where` selects for a comment in line `index`: this line for None, the
        closest without a comment for `above` and `below` (out of range if there is none); None for `unknown`."""
        if where is None:
            return index
        if where == "unknown":
            return None
        if where in ("above", "below"):
            return (self._above if where == "above" else self._below)[index]
        return index + int(where)


def _closest(announcing: list[bool]) -> Iterator[int]:
    """Yield for each line the index of the closest preceding line without an expectation; -1 if there is none."""
    closest = -1
    for index, comment in enumerate(announcing):
        yield closest
        if not comment:
            closest = index
