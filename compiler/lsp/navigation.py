"""Definitions, references and new names of values, blocks, symbols and labels."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from compiler.lsp.analysis import Analysis
from compiler.lsp.index import OpEntry
from compiler.lsp.snapshot import Section, Snapshot
from compiler.lsp.text import TextRange, Token, tokens, tokens_from
from compiler.support.errors import InputError

_VALUE_NAME = re.compile(r"\d+|[A-Za-z_$.-][\w$.-]*")
_SYMBOL_NAME = re.compile(r"[A-Za-z_][\w$.]*")
LABELLED = ("te.compute", "te.gather", "loop.block", "loop.gather", "loop.for", "loop.alloc", "te.constant")
"""The ops whose label other ops, such as sched.get_block, name in quotes."""


@dataclass(frozen=True)
class Occurrences:
    """A name in the text of a piece: the ranges of its definitions, of which there is one except for labels, and those
    of its uses."""

    definitions: tuple[TextRange, ...]
    uses: tuple[TextRange, ...]


def occurrences(analysis: Analysis, offset: int, token: Token) -> Occurrences | None:
    """The occurrences of the value, block, symbol or label at an offset of a piece's text; None if there is none."""
    match token.kind:
        case "value" | "block":
            named = analysis.name_at(offset, token)
            if named is not None:
                uses = {named[1].range, *(use.range for use in named[0].uses)} - {named[0].range}
                return Occurrences((named[0].range,), tuple(sorted(uses)))
        case "symbol":
            return _symbol(analysis, token.text)
        case "string":
            return _label(analysis, token.text)
    return None


def definitions(snapshot: Snapshot, offset: int) -> list[TextRange]:
    """The ranges in a document of the definition of what stands at an offset; of a label in quotes of all ops that have
    it. Empty if nothing with a definition is there."""
    located = _found(snapshot, offset)
    return [] if located is None else [located[0].in_document(r) for r in located[1].definitions]


def references(snapshot: Snapshot, offset: int, with_definition: bool = True) -> list[TextRange]:
    """The ranges in a document of the uses of what stands at an offset, and `with_definition` of its definitions, in
    order. Empty if nothing with a definition is there."""
    located = _found(snapshot, offset)
    if located is None:
        return []
    section, there = located
    ranges = {*there.uses, *(there.definitions if with_definition else ())}
    return sorted({section.in_document(r) for r in ranges})


def renamed(snapshot: Snapshot, offset: int, name: str) -> list[tuple[TextRange, str]]:
    """The edits, ranges and new texts, that rename the value or symbol at an offset; `name` may begin with its `%` or
    `@`.

    Raises InputError for anything else, for an invalid name or one that is used in the same function, and for a name
    that a payload defines.
    """
    section, token, there = _renamable(snapshot, offset)
    mark = token.text[0]
    bare = name.removeprefix(mark)
    pattern = _SYMBOL_NAME if mark == "@" else _VALUE_NAME
    if not pattern.fullmatch(bare):
        raise InputError(f"'{name}' is not a name of a {'symbol' if mark == '@' else 'value'}")
    new = mark + bare
    ranges = sorted({*there.definitions, *there.uses})
    scope = _scope(section.analysis, ranges) if mark == "%" else TextRange(0, len(section.text))
    used = {t.text for t in tokens(section.text) if scope.start <= t.range.start < scope.end}
    if new in used and new != token.text:
        raise InputError(f"'{new}' is used already")
    return [(section.in_document(r), new) for r in ranges]


def rename_range(snapshot: Snapshot, offset: int) -> TextRange:
    """The range of the name that `renamed` would change at an offset. Raises InputError if it refuses."""
    section, token, _ = _renamable(snapshot, offset)
    return section.in_document(token.range)


def symbol_definition(analysis: Analysis, symbol: str) -> OpEntry | None:
    """The op that defines a symbol `@f`; None if there is none."""
    return next((e for e in analysis.index.ops if e.op is not None and _symbol_name(e) == _bare(symbol)), None)


def symbol_range(analysis: Analysis, entry: OpEntry) -> TextRange:
    """The range of the name `@f` of an op that defines a symbol; that of the op's own name if it is not written."""
    for token in tokens_from(analysis.text, entry.name_range.end):
        if token.kind == "symbol":
            return token.range
    return entry.name_range


def label_range(analysis: Analysis, entry: OpEntry) -> TextRange:
    """The range of the label of an op, in its quotes; that of the op's name if it has none."""
    token = next(tokens_from(analysis.text, entry.name_range.end), None)
    return token.range if token is not None and token.kind == "string" else entry.name_range


def _found(snapshot: Snapshot, offset: int) -> tuple[Section, Occurrences] | None:
    located = snapshot.token_at(offset)
    there = None if located is None else occurrences(located[0].analysis, located[1], located[2])
    return None if located is None or there is None else (located[0], there)


def _renamable(snapshot: Snapshot, offset: int) -> tuple[Section, Token, Occurrences]:
    located = snapshot.token_at(offset)
    there = None if located is None else occurrences(located[0].analysis, located[1], located[2])
    if located is None or there is None or located[2].kind not in ("value", "symbol"):
        raise InputError("only values and symbols that are defined here have other names")
    section, _, token = located
    if not all(section.is_written(r) for r in (*there.definitions, *there.uses)):
        raise InputError(f"'{token.text}' is a name of a payload, which other files share")
    return section, token, there


def _scope(analysis: Analysis, ranges: list[TextRange]) -> TextRange:
    """The range of the outermost op that is no module around all ranges; the whole text without one."""
    for entry in analysis.index.ops:
        around = entry.range.start <= ranges[0].start and ranges[-1].end <= entry.range.end
        if around and entry.name != "builtin.module":
            return entry.range
    return TextRange(0, len(analysis.text))


def _symbol(analysis: Analysis, text: str) -> Occurrences | None:
    entry = symbol_definition(analysis, text)
    if entry is None:
        return None
    definition = symbol_range(analysis, entry)
    same = [t.range for t in tokens(analysis.text) if t.kind == "symbol" and _bare(t.text) == _bare(text)]
    return Occurrences((definition,), tuple(r for r in same if r != definition))


def _label(analysis: Analysis, text: str) -> Occurrences | None:
    owners = [e for e in analysis.index.ops if e.name in LABELLED and e.label == text.strip('"')]
    labels = {label_range(analysis, entry) for entry in owners}
    if not labels:
        return None
    same = {t.range for t in tokens(analysis.text) if t.kind == "string" and t.text == text}
    return Occurrences(tuple(sorted(labels)), tuple(sorted(same - labels)))


def _symbol_name(entry: OpEntry) -> str | None:
    attribute = None if entry.op is None else entry.op.properties.get("sym_name")
    return attribute.data if isinstance(attribute, StringAttr) else None


def _bare(symbol: str) -> str:
    return symbol.removeprefix("@").strip('"')
