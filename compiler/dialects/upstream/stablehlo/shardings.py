"""sdy: the meshes and shardings that JAX prints beside StableHLO, which are skipped: te functions run on one device."""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import SymbolNameConstraint
from xdsl.ir import Data, Dialect
from xdsl.irdl import IRDLOperation, irdl_attr_definition, irdl_op_definition, prop_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind


def skip_angles(parser: AttrParser) -> str:
    """Parse `<...>` without a look at the tokens inside, and return the text with its brackets. Raises ParseError for
    other text, and if the bracket is not closed."""
    start = parser.pos
    parser.parse_punctuation("<")
    depth = 1
    while True:
        token = parser._consume_token()
        if token.kind is MLIRTokenKind.EOF:
            parser.raise_error("'<' is not closed", start)
        depth += (token.text == "<") - (token.text == ">")
        if not depth:
            return token.span.input.content[start : token.span.end]


class SkippedAttr(Data[str]):
    """The base of attributes whose text is stored unparsed."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Parse the text in angle brackets."""
        return skip_angles(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print the text."""
        printer.print_string(self.data)


@irdl_attr_definition
class ShardingAttr(SkippedAttr):
    """The distribution of an array over the devices of a mesh; its text is ignored."""

    name = "sdy.sharding"


@irdl_attr_definition
class ShardingPerValueAttr(SkippedAttr):
    """The shardings of an op's results."""

    name = "sdy.sharding_per_value"


@irdl_op_definition
class MeshOp(IRDLOperation):
    """The devices of a program: `sdy.mesh @mesh = <["x"=2]>`."""

    name = "sdy.mesh"
    sym_name = prop_def(SymbolNameConstraint())
    mesh = prop_def(ShardingAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        parser.parse_punctuation("=")
        mesh = ShardingAttr(skip_angles(parser))
        return cls.create(properties={"sym_name": name, "mesh": mesh}, attributes=parser.parse_optional_attr_dict())


SDY = Dialect("sdy", [MeshOp], [ShardingAttr, ShardingPerValueAttr])
