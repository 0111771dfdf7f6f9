"""Snapshots of documents: a version of a file, its pieces between `// -----` with their analyses, and its RUN lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from compiler.filecheck.payload import FileCheckError, Segment, segments
from compiler.lsp.analysis import INFORMATION, Analysis, Finding, RelatedPlace, analyse
from compiler.lsp.runs import RunCommand, run_commands
from compiler.lsp.text import Text, TextRange, Token, token_at
from compiler.opt.diagnostics import Diagnostic
from compiler.opt.expectations import UNEXPECTED, mismatches
from compiler.opt.source import SPLIT, Piece
from compiler.support.spans import Span


@dataclass(frozen=True)
class Section:
    """A piece of a document: its offset there, its text with payloads in place of their comments, the parts of that
    text, and its analysis. `fault` is the finding of a payload that cannot be read; None without one."""

    offset: int
    length: int
    text: str
    parts: Sequence[Segment]
    analysis: Analysis
    fault: Finding | None = None

    @cached_property
    def _starts(self) -> list[int]:
        """The offset in the text of each part."""
        starts = [0]
        for part in self.parts:
            starts.append(starts[-1] + len(part.text))
        return starts

    def _part(self, offset: int) -> tuple[int, Segment]:
        """The start of the part at an offset of the text, and the part; of empty parts the one before them."""
        number = bisect_right(self._starts, min(max(offset, 0), max(len(self.text) - 1, 0))) - 1
        number = min(number, len(self.parts) - 1)
        return self._starts[number], self.parts[number]

    def in_document(self, part: TextRange) -> TextRange:
        """The range in the document of a range of the text; of a payload, the comment that names it."""
        start, first = self._part(part.start)
        if first.is_payload:
            return TextRange(first.start, first.end).shifted(self.offset)
        end_start, last = self._part(max(part.end - 1, part.start))
        moved = part.start - start + first.start
        end = first.end if last.is_payload else part.end - end_start + last.start
        return TextRange(moved, max(moved, min(end, self.length))).shifted(self.offset)

    def in_text(self, offset: int) -> int | None:
        """The offset in the text of an offset of the document; None in the comment of a payload, or outside."""
        within = offset - self.offset
        for start, part in zip(self._starts, self.parts, strict=False):
            if not part.is_payload and part.start <= within <= part.end:
                return start + within - part.start
        return None

    def is_written(self, part: TextRange) -> bool:
        """Whether a range of the text is in the document, and not in a payload."""
        return not self._part(part.start)[1].is_payload


@dataclass(frozen=True)
class Snapshot:
    """A version of a document: its path, its text, its pieces and its RUN lines. `encoding` is that of columns."""

    path: Path
    text: str
    encoding: str = "utf-16"
    sections: Sequence[Section] = field(default=())
    commands: Sequence[RunCommand] = ()

    @classmethod
    def of(cls, path: Path, text: str, encoding: str = "utf-16", former: Snapshot | None = None) -> Snapshot:
        """Analyse a text; pieces that the snapshot `former` has with the same text are not analysed again."""
        commands = run_commands(text)
        unregistered = any(command.allows_unregistered for command in commands)
        same_modes = former is not None and unregistered == any(c.allows_unregistered for c in former.commands)
        analyses = {s.text: s.analysis for s in former.sections} if former is not None and same_modes else {}
        options = [command.options for command in commands if command.options is not None]
        marker = next((o.split_input_file for o in options if o.split_input_file), None if options else SPLIT)
        pieces = [(0, text)] if marker is None else _pieces(text, marker)
        sections = [_section(path, start, piece, analyses, unregistered) for start, piece in pieces]
        return cls(path, text, encoding, sections, commands)

    @cached_property
    def lines(self) -> Text:
        """The text with its lines and columns."""
        return Text(self.text, self.encoding)

    def section_at(self, offset: int) -> tuple[Section, int] | None:
        """The piece at an offset, and the offset in its text; None in the comment of a payload and in a split line."""
        for section in self.sections:
            if section.offset <= offset <= section.offset + section.length:
                inner = section.in_text(offset)
                return None if inner is None else (section, inner)
        return None

    def token_at(self, offset: int) -> tuple[Section, int, Token] | None:
        """The piece, the offset in its text, and the token there; None if there is no token."""
        located = self.section_at(offset)
        token = None if located is None else token_at(located[0].text, located[1])
        return None if located is None or token is None else (*located, token)

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings of all pieces, in the document, and those of RUN lines. Errors that a RUN line expects are
        information: by --verify-diagnostics those that a comment announces, by `not` all."""
        findings = [placed(section, finding) for section in self.sections for finding in self._judged(section)]
        findings += [section.fault for section in self.sections if section.fault is not None]
        return findings + [command.fault for command in self.commands if command.fault is not None]

    def unchecked(self, why: str) -> Finding:
        """The information, at the first RUN line or the first token, that the passes of a document were not run."""
        at = (
            self.commands[0].range
            if self.commands
            else self.sections[0].in_document(self.sections[0].analysis.first_line)
        )
        return Finding(at, f"its passes were not checked: {why}", INFORMATION)

    def _judged(self, section: Section) -> Sequence[Finding]:
        findings = section.analysis.findings
        is_inverted = any(command.is_inverted for command in self.commands)
        verifies = any(command.verifies for command in self.commands)
        if is_inverted or (verifies and any(is_expected(section.text, finding) for finding in findings)):
            return [expected(finding) for finding in findings]
        return findings


def expected(finding: Finding) -> Finding:
    """The finding as information, since a RUN line expects it."""
    return replace(finding, sentence=f"as expected: {finding.sentence}", severity=INFORMATION)


def is_expected(text: str, finding: Finding) -> bool:
    """Whether a comment `expected-error` of the text of a piece announces a finding."""
    if "expected-error" not in text:
        return False
    diagnostic = Diagnostic(Span("", text.count("\n", 0, finding.range.start) + 1, 1), finding.sentence)
    return not any(wrong.sentence.startswith(UNEXPECTED) for wrong in mismatches(Piece("", text, 0), [diagnostic]))


def placed(section: Section, finding: Finding) -> Finding:
    """The finding with the ranges of the document instead of those of a piece's text."""
    related = tuple(RelatedPlace(section.in_document(place.range), place.sentence) for place in finding.related)
    return replace(finding, range=section.in_document(finding.range), related=related)


def _pieces(text: str, marker: str) -> Iterator[tuple[int, str]]:
    """Yield the offset and the text of each piece between the lines `marker`."""
    start = 0
    for match in re.finditer(rf"^{re.escape(marker)}[ \t]*\r?(?:\n|\Z)", text, re.MULTILINE):
        yield start, text[start : match.start()]
        start = match.end()
    yield start, text[start:]


def _section(path: Path, offset: int, piece: str, analyses: Mapping[str, Analysis], unregistered: bool) -> Section:
    fault = None
    try:
        parts = [part for part in segments(path, piece) if part.text]
    except (FileCheckError, OSError, UnicodeDecodeError) as error:
        start = max(piece.find("// PAYLOAD:"), 0)
        end = piece.find("\n", start)
        at = TextRange(start, len(piece) if end < 0 else end).shifted(offset)
        parts, fault = [Segment(piece, 0, len(piece))], Finding(at, str(error).removeprefix(f"{path}: "))
    text = "".join(part.text for part in parts)
    analysis = analyses.get(text) or analyse(text, unregistered)
    return Section(offset, len(piece), text, parts or [Segment("", 0, 0)], analysis, fault)
