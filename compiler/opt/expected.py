"""--verify-diagnostics: what comments announce, against what was found.

A comment is `expected-error {{text}}` on the line of the error, or `expected-error@+1`, `@-2`, `@below`,
`@above` (past other such comments) or `@unknown` (an error that names no place); `expected-error-re` has
regular expressions in `{{...}}` inside. As mlir-opt does it, but a comment that it would silently ignore is
an error here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compiler.opt.diagnostics import Diagnostic
from compiler.opt.source import Piece

_WORD = re.compile(r"//.*expected-(?:error|warning|note|remark)")
_COMMENT = re.compile(
    r"expected-(error|warning|note|remark)(-re)? *(?:@([+-]\d+|above|below|unknown))? *\{\{(.*)\}\}\s*$"
)


@dataclass(frozen=True)
class _Expected:
    kind: str
    line: int | None
    text: str
    pattern: re.Pattern[str]

    def matches(self, found: Diagnostic) -> bool:
        line = found.line if found.known else None
        return self.kind == "error" and self.line == line and bool(self.pattern.search(found.sentence))


def mismatches(piece: Piece, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """What was found and not announced, or announced and not found; empty is success."""
    wrong: list[Diagnostic] = []
    expected = list(_expectations(piece, wrong))
    for diagnostic in found:
        match = next((e for e in expected if e.matches(diagnostic)), None)
        if match is None:
            wrong.append(Diagnostic(diagnostic.line, diagnostic.column, f"unexpected error: {diagnostic.sentence}"))
        else:
            expected.remove(match)
    for e in expected:
        line, column = (e.line, 1) if e.line is not None else piece.start
        wrong.append(Diagnostic(line, column, f'expected {e.kind} "{e.text}" was not produced'))
    return wrong


def _expectations(piece: Piece, wrong: list[Diagnostic]) -> Iterator[_Expected]:
    lines = piece.text.split("\n")
    for index, line in enumerate(lines):
        if not _WORD.search(line):
            continue
        comment = _COMMENT.search(line)
        pattern = comment and _pattern(comment[4], regular=bool(comment[2]))
        if not comment or not pattern:
            number = piece.lines_before + index + 1
            sentence = "this comment is not of the form expected-error@+1 {{text}} and checks nothing"
            wrong.append(Diagnostic(number, 1, sentence))
            continue
        target = _target(comment[3], index, lines)
        yield _Expected(comment[1], None if target is None else piece.lines_before + target + 1, comment[4], pattern)


def _pattern(text: str, regular: bool) -> re.Pattern[str] | None:
    if not regular:
        return re.compile(re.escape(text))
    parts = re.split(r"\{\{(.*?)\}\}", text)
    try:
        return re.compile("".join(p if i % 2 else re.escape(p) for i, p in enumerate(parts)))
    except re.error:
        return None


def _target(where: str | None, index: int, lines: list[str]) -> int | None:
    """The index of the line that a comment in line `index` is about."""
    if where is None:
        return index
    if where == "unknown":
        return None
    if where not in ("above", "below"):
        return index + int(where)
    step = 1 if where == "below" else -1
    index += step
    while 0 <= index < len(lines) and _WORD.search(lines[index]):
        index += step
    return index
