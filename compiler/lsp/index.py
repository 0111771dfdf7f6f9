"""The index of a parsed text: the ranges of its ops, and the definition and uses of each name of a value or a block.

It is written while the text is parsed, so that of a text with a syntax error everything before the error is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.parser import UnresolvedOperand
from xdsl.utils.lexer import Span

from compiler.dialects.parser import Parser
from compiler.lsp.text import TextRange

SOURCE = "<document>"
"""The name of a text in the locations of its ops."""


@dataclass(eq=False)
class OpEntry:
    """An op in a text. `name_range` is that of its name, with quotes; `kind` its class, `op` the op itself: both None
    until they are parsed. The `range` of an op with a syntax error ends where its function is given up."""

    parent: OpEntry | None
    range: TextRange
    name_range: TextRange
    kind: type[Operation] | None = None
    op: Operation | None = None

    @property
    def name(self) -> str:
        """The full name of the op, such as `te.compute`; empty if it is not known."""
        return self.op.name if self.op is not None else getattr(self.kind, "name", "")

    @property
    def label(self) -> str:
        """The label of a block, a compute, a loop or a buffer; empty for an op without one."""
        return getattr(None if self.op is None else self.op.properties.get("label"), "data", "")

    @property
    def ancestors(self) -> Iterator[OpEntry]:
        """The op and those around it, innermost first."""
        entry: OpEntry | None = self
        while entry is not None:
            yield entry
            entry = entry.parent


@dataclass(frozen=True)
class NameUse:
    """A use of a name; `number` is N of `%x#N`, else 0."""

    range: TextRange
    number: int = 0


@dataclass(eq=False)
class DefinedName:
    """A name `%x` or `^bb1` with the range of its definition, the values that it names (of a block none), and its uses
    in the order of parsing. `block` is the block of a label, `entry` the op that has the value as a result or as an
    argument of a region."""

    text: str
    range: TextRange
    values: Sequence[SSAValue] = ()
    block: Block | None = None
    entry: OpEntry | None = None
    uses: list[NameUse] = field(default_factory=list)


class Index:
    """The ops and the defined names of a text, in the order of parsing."""

    def __init__(self) -> None:
        self.ops: list[OpEntry] = []
        self.names: list[DefinedName] = []
        self.by_op: dict[Operation, OpEntry] = {}
        self.by_value: dict[SSAValue, DefinedName] = {}
        self.by_block: dict[Block, DefinedName] = {}
        self.undefined: dict[str, list[NameUse]] = {}
        """The uses of each name, without `%`, that is not defined yet."""

    def op_at(self, offset: int) -> OpEntry | None:
        """The innermost op whose text contains an offset, or ends there; None outside of all ops."""
        containing = [entry for entry in self.ops if entry.range.touches(offset)]
        return max(containing, key=lambda entry: (entry.range.start, -entry.range.end), default=None)

    def name_at(self, offset: int) -> tuple[DefinedName, NameUse] | None:
        """The name at an offset with its use there, or its definition as a use; None if no name is there."""
        for name in self.names:
            for use in (NameUse(name.range), *name.uses):
                if use.range.touches(offset):
                    return name, use
        return None

    def add(self, name: DefinedName) -> None:
        """Add a defined name."""
        self.names.append(name)
        self.by_value.update(dict.fromkeys(name.values, name))
        if name.block is not None:
            self.by_block[name.block] = name

    def take(self, part_index: Index, part: TextRange) -> None:
        """Add the ops and names of another index that begin in a part of the text."""
        for entry in part_index.ops:
            if part.start <= entry.range.start < part.end:
                self.ops.append(entry)
                if entry.op is not None:
                    self.by_op[entry.op] = entry
        for name in part_index.names:
            if part.start <= name.range.start < part.end:
                self.add(name)


class IndexingParser(Parser):
    """The parser of modules, which writes an index while it parses."""

    def __init__(self, ctx: Context, input: str, index: Index) -> None:
        super().__init__(ctx, input, SOURCE)
        self.index = index
        self._open: list[OpEntry] = []

    def parse_operation(self) -> Operation:
        """Parse an op, and record its range."""
        start = TextRange(self.pos, self.pos)
        entry = OpEntry(self._open[-1] if self._open else None, start, start)
        self.index.ops.append(entry)
        self._open.append(entry)
        entry.op = super().parse_operation()
        entry.range = TextRange(start.start, self._end_of_text())
        self.index.by_op[entry.op] = entry
        self._open.pop()
        return entry.op

    def define_missing(self) -> None:
        """Replace the values that are used and not defined, which have no op, by results of casts without operands, so
        that ops which use them can be read."""
        for name, missing in self.forward_ssa_references.items():
            for value in missing.values():
                (stand_in,) = UnrealizedConversionCastOp.get([], [value.type]).results
                stand_in.name_hint = name if SSAValue.is_valid_name(name) else None
                value.replace_all_uses_with(stand_in)

    def _end_of_text(self) -> int:
        """The end of the text before the current token, blanks and comments left out."""
        text, end = self._source.content, self.pos
        while True:
            start = text.rfind("\n", 0, end) + 1
            line = text[start:end].partition("//")[0].rstrip()
            if line or start == 0:
                return start + len(line)
            end = start - 1

    def _get_op_by_name(self, name: str) -> type[Operation]:
        kind = super()._get_op_by_name(name)
        if self._open:
            end = self._source.content.rindex(name, 0, self.pos) + len(name)
            quoted = self._source.content[end - len(name) - 1 : end + 1] == f'"{name}"'
            self._open[-1].kind = kind
            self._open[-1].name_range = TextRange(end - len(name) - quoted, end + quoted)
        return kind

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        uses = self.index.undefined.pop(name, [])
        owner = self._open[-1] if self._open else None
        self.index.add(DefinedName(f"%{name}", TextRange(span.start, span.end), tuple(values), None, owner, uses))

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> Any:
        """Resolve an operand, and record the use."""
        value = super().resolve_operand(operand, type)
        self._record(operand.span, operand.index)
        return value

    def _parse_optional_operand_without_type(self) -> SSAValue | None:
        span = self._current_token.span
        value: SSAValue | None = super()._parse_optional_operand_without_type()
        if value is not None:
            self._record(span, value.index if len(self.ssa_values[span.text[1:]]) > 1 else 0)  # type: ignore[attr-defined]
        return value

    def _record(self, span: Span, number: int) -> None:
        """Record a use; of a value that is not defined yet, until it is."""
        name, use = span.text[1:], NameUse(TextRange(span.start, span.end), number)
        values = self.ssa_values.get(name)
        if values is None:
            self.index.undefined.setdefault(name, []).append(use)
        elif values and values[0] in self.index.by_value:
            self.index.by_value[values[0]].uses.append(use)

    def _get_block_from_name(self, block_name: Span) -> Block:
        block = super()._get_block_from_name(block_name)
        self._refer(block, block_name)
        return block

    def parse_optional_successor(self) -> Block | None:
        """Parse an optional successor, and record the reference to its block."""
        span = self._current_token.span
        block = super().parse_optional_successor()
        if block is not None:
            self._refer(block, span)
        return block

    def _parse_block(self) -> Block:
        span = self._current_token.span
        block = super()._parse_block()
        self._label(block, span).range = TextRange(span.start, span.end)
        return block

    def _refer(self, block: Block, span: Span) -> None:
        self._label(block, span).uses.append(NameUse(TextRange(span.start, span.end)))

    def _label(self, block: Block, span: Span) -> DefinedName:
        """The name of a block, added with the range `span` if it is new."""
        if block not in self.index.by_block:
            self.index.add(DefinedName(span.text, TextRange(span.start, span.end), block=block))
        return self.index.by_block[block]
