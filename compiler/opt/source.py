"""Splitting files, and parsing with the place of every op."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import UnresolvedOperand
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span

from compiler.dialects.parser import Parser

AttributeT = TypeVar("AttributeT", bound=Attribute)
SPLIT = "// -----"
_SPLIT_LINE = re.compile(rf"^{re.escape(SPLIT)}[ \t]*(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """A part of a file that is a module of its own, and how many lines of the file stand before it."""

    file: str
    text: str
    lines_before: int

    def place(self, position: int) -> tuple[int, int]:
        """Line and column, from one, of a character of the text in the file."""
        before = self.text[:position]
        return self.lines_before + before.count("\n") + 1, position - before.rfind("\n")

    @property
    def start(self) -> tuple[int, int]:
        """Where the first thing that is not a comment stands."""
        code = re.match(r"(\s+|//[^\n]*)*", self.text)
        end = code.end() if code else 0
        return self.place(end if end < len(self.text) else 0)


def split(file: str, text: str) -> Iterator[Piece]:
    """The pieces of a text between lines that read `// -----`."""
    lines = 0
    for part in _SPLIT_LINE.split(text):
        yield Piece(file, part, lines)
        lines += part.count("\n") + 1


class Places:
    """Where each op of a piece begins in its file."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self._starts: dict[Operation, int] = {}
        self._latest: int | None = None

    def begin(self, position: int) -> None:
        """Note that an op begins at a character of the piece."""
        self._latest = position

    def finish(self) -> None:
        """Note that all of the piece has been read."""
        self._latest = None

    def end(self, op: Operation, position: int) -> None:
        """Note that an op that began at a character of the piece has become `op`."""
        self._starts[op] = position

    def of(self, op: Operation) -> tuple[int, int] | None:
        """Line and column of an op, or of the closest op around it that was in the text; None if none was."""
        around: Operation | None = op
        while around is not None and around not in self._starts:
            around = around.parent_op()
        return None if around is None else self.piece.place(self._starts[around])

    @property
    def latest(self) -> tuple[int, int] | None:
        """Line and column of the op that was begun last, while the piece is being read."""
        return None if self._latest is None else self.piece.place(self._latest)


class _Parser(Parser):
    """xDSL's parser, which also notes where things are."""

    def __init__(self, ctx: Context, places: Places) -> None:
        super().__init__(ctx, places.piece.text, places.piece.file)
        self._places = places
        self._early: dict[str, Span] = {}

    def parse_operation(self) -> Operation:
        """Parse an op and note its place."""
        start = self.pos
        self._places.begin(start)
        op = super().parse_operation()
        self._places.end(op, start)
        return op

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeT) -> SSAValue[AttributeT]:
        """Resolve an operand, and note where a value is used before it is defined."""
        if operand.operand_name not in self.ssa_values:
            self._early.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parse everything. Raises ParseError; for a value that is never defined, at its first use."""
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError as error:
            missing = next(iter(self.forward_ssa_references), None)
            if missing in self._early and "used but not defined" in error.msg:
                raise ParseError(self._early[missing], f"%{missing} is used but not defined") from error
            raise


def parse(ctx: Context, places: Places) -> ModuleOp:
    """The module of a piece, not verified; `places` learns where its ops are. Raises ParseError."""
    module = _Parser(ctx, places).parse_module()
    places.finish()
    return module
