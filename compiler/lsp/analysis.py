"""Analysis of a text: parsed, past syntax errors, and verified; all errors with their ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError

from compiler import universe
from compiler.dialects.dominance import Refusal, last_sentence, refusals
from compiler.lsp.index import DefinedName, Index, IndexingParser, NameUse, OpEntry
from compiler.lsp.text import TextRange, Token, token_at, tokens
from compiler.support.errors import StrataError

MOST_UNITS = 8
"""The most functions with a syntax error that are left out before the rest of a text is given up."""
MOST_FINDINGS = 100
"""The most findings of a text."""
ERROR, WARNING, INFORMATION = 1, 2, 3
"""Severities, as the protocol numbers them."""
_UNIT = r"(?:builtin\.)?module\b|[\w.]*func\b|transform\.named_sequence\b"
"""A pattern of the names of ops that stand beside each other in a module."""
_QUOTED = re.compile(r"'%?([\w$.-]+)'")


@dataclass(frozen=True)
class RelatedPlace:
    """A place that explains a finding, with a sentence."""

    range: TextRange
    sentence: str


@dataclass(frozen=True)
class Finding:
    """A diagnostic: a range, a sentence, a severity, and the places that explain it. `is_located` is False for an error
    without a place of its own; its range is then the start of the text."""

    range: TextRange
    sentence: str
    severity: int = ERROR
    related: Sequence[RelatedPlace] = ()
    is_located: bool = True


@dataclass(frozen=True)
class Analysis:
    """A text, its module (None if nothing could be parsed), its index, and its findings. `is_whole`: whether no
    function was left out of the module for a syntax error."""

    text: str
    module: ModuleOp | None
    index: Index
    findings: Sequence[Finding]
    is_whole: bool

    @property
    def is_valid(self) -> bool:
        """Whether the text was parsed as a whole and verified without an error."""
        return self.module is not None and self.is_whole and not self.findings

    def op_range(self, op: Operation) -> TextRange:
        """The range of an op's name; of an op without a text, that of the closest op around it, else of the first
        line."""
        scope: Operation | None = op
        while scope is not None and scope not in self.index.by_op:
            scope = scope.parent_op()
        return self.first_line if scope is None else self.index.by_op[scope].name_range

    def is_sound(self, entry: OpEntry) -> bool:
        """Whether no finding is in the outermost op around an op, modules left out, such as its function."""
        scopes = [around for around in entry.ancestors if around.kind is not ModuleOp]
        part = scopes[-1].range if scopes else TextRange(0, len(self.text))
        return not any(part.start <= finding.range.start < part.end for finding in self.findings)

    def name_at(self, offset: int, token: Token) -> tuple[DefinedName, NameUse] | None:
        """The name of a value or block at an offset, where `token` is, and its use; None if there is none. Behind a
        syntax error, where nothing is parsed, a value is the last one of its name that the function has before."""
        named = self.index.name_at(offset)
        if named is not None or self.is_whole or token.kind != "value":
            return named
        unit = next((entry for entry in self.index.ops if entry.op is None and entry.range.touches(offset)), None)
        earlier = [
            name
            for name in self.index.names
            if unit is not None and name.text == token.text and unit.range.start <= name.range.start < offset
        ]
        return (earlier[-1], NameUse(token.range)) if earlier else None

    @property
    def first_line(self) -> TextRange:
        """The first token that is no comment; the first character if there is none."""
        first = next((token for token in tokens(self.text) if token.kind != "comment"), None)
        return TextRange(0, min(1, len(self.text))) if first is None else first.range


def analyse(text: str, unregistered: bool = False) -> Analysis:
    """Parse and verify a text. A function with a syntax error, or the line of one outside of functions, is left out,
    and what remains is parsed again; after MOST_UNITS of them what remains is not analysed. `unregistered`: whether ops
    of unknown dialects are allowed."""
    remaining, findings, index = text, list[Finding](), Index()
    parsed: ModuleOp | None = None
    for _ in range(MOST_UNITS):
        if not _has_code(remaining):
            break
        parsed, read, faults = _parsed(remaining, unregistered)
        if parsed is not None:
            index.take(read, TextRange(0, len(text) + 1))
            break
        if not (findings and faults[0].sentence.endswith("and the text ends")):  # the rest was left out
            findings += faults
        unit = _unit(remaining, _broken(read, faults[0].range.start), faults[0].range.start)
        for entry in read.ops:
            if entry.op is None:
                entry.range = TextRange(entry.range.start, max(unit.end, entry.name_range.end))
        index.take(read, unit)
        remaining = _blanked(remaining, unit)
    analysis = Analysis(text, parsed, index, findings, not findings)
    findings += _faults(analysis)[:MOST_FINDINGS]
    return analysis


def _has_code(text: str) -> bool:
    return any(token.kind != "comment" for token in tokens(text)) or bool(re.sub(r"//[^\n]*|\s", "", text))


def _parsed(text: str, unregistered: bool) -> tuple[ModuleOp | None, Index, list[Finding]]:
    """Parse a text: the module and its index, or None, what was indexed before the syntax error, and its findings."""
    ctx = universe.context()
    ctx.allow_unregistered = unregistered
    index = Index()
    try:
        parser = IndexingParser(ctx, text, index)
        try:
            return parser.parse_module(), index, []
        finally:
            parser.define_missing()
    except ParseError as error:
        return None, index, _undefined(index) or [_syntax_fault(error, text, index)]
    except StrataError as error:  # of a plugin, at the op that was begun last
        last = index.ops[-1].range.start if index.ops else 0
        return None, index, [Finding(_token_range(text, last), " ".join(str(error).split()))]


def _syntax_fault(error: ParseError, text: str, index: Index) -> Finding:
    """The finding of a syntax error: its span, or the token where it begins; with the beginning of a function that is
    not closed, if another one begins before the error."""
    start, end = error.span.start, error.span.end
    at = TextRange(start, end) if end > start + 1 else _token_range(text, start)
    related = []
    if isinstance(error, MultipleSpansParseError):
        related = [RelatedPlace(TextRange(s.start, s.end), said or str(error.ref_text)) for s, said in error.refs]
    entry = _broken(index, start)
    if entry is not None and _unit(text, entry, start).end <= start:
        related.append(RelatedPlace(entry.name_range, "this is not closed"))
    return Finding(at, last_sentence(error.msg), related=tuple(related))


def _token_range(text: str, start: int) -> TextRange:
    """The token at an offset; the character there without one, the last one at the end of the text."""
    token = token_at(text, start)
    if token is not None and token.range.start == start:
        return token.range
    end = min(start + 1, len(text))
    return TextRange(max(min(start, end - 1), 0), end)


def _broken(index: Index, fault: int) -> OpEntry | None:
    """The outermost op that is no module, such as a function, of those that are not finished, or else around the offset
    `fault`; None without one."""
    unfinished = [entry for entry in index.ops if entry.op is None]
    around = unfinished or [entry for entry in index.ops if entry.range.touches(fault)]
    return next((entry for entry in around if entry.kind is not ModuleOp), None)


def _undefined(index: Index) -> list[Finding]:
    """A finding for each use of a value that is not defined, in the first function with one, of a text that was parsed
    to its end."""
    if not index.ops or any(entry.op is None for entry in index.ops) or not index.undefined:
        return []
    uses = [(name, use.range) for name, uses in index.undefined.items() for use in uses]
    unit = _broken(index, uses[0][1].start)
    part = TextRange(0, uses[0][1].end) if unit is None else unit.range
    return [Finding(r, f"%{name} is used but not defined") for name, r in uses if part.start <= r.start < part.end]


def _unit(text: str, entry: OpEntry | None, fault: int) -> TextRange:
    """The part of a text to leave out for a syntax error at the offset `fault`: from the outermost op around it that is
    no module, to the next function or script that is indented as that op, or behind the fault to the next line that is
    indented so and does not begin with a bracket; without such an op, the line of the error."""
    if entry is None:
        start, end = text.rfind("\n", 0, fault) + 1, text.find("\n", fault)
        return TextRange(start, len(text) if end < 0 else end)
    start = entry.range.start
    indent = re.match(r"[ \t]*", text[text.rfind("\n", 0, start) + 1 : start])
    width = len(indent[0]) if indent is not None else 0
    closed = rf"|^[ \t]{{0,{width - 1}}}}}" if width else ""
    behind = re.compile(rf"^[ \t]{{{width}}}(?=[^\s/}})\]]){closed}", re.MULTILINE).search(text, fault + 1)
    sibling = re.compile(rf"^[ \t]{{{width}}}(?={_UNIT})", re.MULTILINE).search(text, entry.range.end + 1)
    ends = [match.start() for match in (behind, sibling) if match is not None]
    return TextRange(start, min(ends, default=len(text)))


def _blanked(text: str, part: TextRange) -> str:
    """The text with blanks for the characters of a part, except for line ends."""
    return text[: part.start] + re.sub(r"[^\n]", " ", text[part.start : part.end]) + text[part.end :]


def _faults(analysis: Analysis) -> list[Finding]:
    """The findings of the verifiers of a module. Where a function was left out, those about its name are omitted."""
    if analysis.module is None:
        return []
    try:
        faults = refusals(analysis.module)
    except (StrataError, RecursionError) as error:
        sentence = (
            " ".join(str(error).split()) if isinstance(error, StrataError) else "the program is nested too deeply"
        )
        return [Finding(analysis.first_line, sentence)]
    return [_fault(analysis, refusal) for refusal in faults if analysis.is_whole or not _is_about_symbol(refusal)]


def _is_about_symbol(refusal: Refusal) -> bool:
    return "@" in str(refusal) or "symbol" in str(refusal) or refusal.op.name == "func.call"


def _fault(analysis: Analysis, refusal: Refusal) -> Finding:
    """The finding of a refusal: at the value or label of the op's head that the sentence quotes, else at its name."""
    sentence = " ".join(str(refusal).split())
    entry = analysis.index.by_op.get(refusal.op)
    if entry is None:
        return Finding(analysis.op_range(refusal.op), sentence)
    inner = next(iter(_quoted(analysis.text, entry, sentence)), entry.name_range)
    return Finding(inner, sentence)


def _quoted(text: str, entry: OpEntry, sentence: str) -> Iterator[TextRange]:
    """Yield the ranges, in the first lines of an op up to its region, of the names that a sentence quotes."""
    head = text[entry.name_range.end : entry.range.end].partition("{\n")[0]
    ranges = {token.text.strip('%"'): token.range for token in reversed(tokens(head)) if token.kind != "comment"}
    for name in _QUOTED.findall(sentence):
        if name in ranges and name != entry.name:
            yield ranges[name].shifted(entry.name_range.end)
