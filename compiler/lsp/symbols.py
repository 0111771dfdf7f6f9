"""The outline of a document, and the ranges that fold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import StringAttr

from compiler.dialects import loop
from compiler.lsp.analysis import Analysis
from compiler.lsp.index import OpEntry
from compiler.lsp.navigation import LABELLED, label_range, symbol_range
from compiler.lsp.snapshot import Section, Snapshot
from compiler.lsp.text import TextRange

FUNCTION, NAMESPACE, VARIABLE, ARRAY = 12, 3, 13, 18
"""Kinds of symbols, as the protocol numbers them."""
_COMMENTS = re.compile(r"^(?:[ \t]*//[^\n]*\n){2,}", re.MULTILINE)

Inner: TypeAlias = dict[OpEntry | None, list[OpEntry]]


@dataclass(frozen=True)
class OutlineSymbol:
    """An op in the outline: its name there, a detail, its kind, the range of its text, that of its name, and the
    symbols inside it."""

    name: str
    detail: str
    kind: int
    range: TextRange
    name_range: TextRange
    children: Sequence[OutlineSymbol]


def outline(snapshot: Snapshot) -> list[OutlineSymbol]:
    """The symbols of a document: functions, scripts, and in them loops, blocks, computes and buffers."""
    return [symbol for section in snapshot.sections for symbol in _symbols(section, _inner(section), None)]


def folds(snapshot: Snapshot) -> list[tuple[TextRange, str]]:
    """The ranges of a document that fold, of more than one line, each with its kind in the protocol: ops with regions
    (`region`) and comments of two lines or more (`comment`)."""
    ranges = []
    for section in snapshot.sections:
        for entry in section.analysis.index.ops:
            has_region = entry.op is not None and entry.op.regions
            if has_region and section.is_written(entry.range):
                ranges.append((section.in_document(entry.range), "region"))
    comments = [TextRange(match.start(), match.end() - 1) for match in _COMMENTS.finditer(snapshot.text)]
    ranges += [(part, "comment") for part in comments]
    return [(part, kind) for part, kind in ranges if "\n" in snapshot.text[part.start : part.end]]


def _inner(section: Section) -> Inner:
    """Map each op, and None for the module, to the ops inside it."""
    inner: Inner = {}
    for entry in section.analysis.index.ops:
        inner.setdefault(entry.parent, []).append(entry)
    return inner


def _symbols(section: Section, ops: Inner, parent: OpEntry | None) -> Iterator[OutlineSymbol]:
    analysis = section.analysis
    for entry in ops.get(parent, ()):
        inner = list(_symbols(section, ops, entry))
        described = _described(analysis, entry) if section.is_written(entry.range) else None
        if described is None:
            yield from inner
        else:
            name, detail, kind, at = described
            op_range = section.in_document(entry.range)
            name_range = section.in_document(at)
            if not (op_range.start <= name_range.start and name_range.end <= op_range.end):
                name_range = op_range
            yield OutlineSymbol(name, detail, kind, op_range, name_range, inner)


def _described(analysis: Analysis, entry: OpEntry) -> tuple[str, str, int, TextRange] | None:
    """The name of an op in the outline, its detail, its kind and the range of its name; None for an op without one."""
    op = entry.op
    if op is None:  # it has a syntax error
        at = symbol_range(analysis, entry)
        is_function = entry.parent is None and at != entry.name_range and at.end <= entry.range.end
        return (analysis.text[at.start : at.end], entry.name, FUNCTION, at) if is_function else None
    symbol = op.properties.get("sym_name")
    if isinstance(symbol, StringAttr):
        kind = NAMESPACE if op.name == "builtin.module" else FUNCTION
        return f"@{symbol.data}", op.name, kind, symbol_range(analysis, entry)
    if op.name == "builtin.module":
        return "module", "", NAMESPACE, entry.name_range
    if op.name in LABELLED:
        at = label_range(analysis, entry)
        if isinstance(op, loop.ForOp):
            return entry.label or "loop", f"{op.loop_kind} loop of {op.size}", ARRAY, at
        return entry.label or op.name, op.name, VARIABLE, at
    return None
