"""linalg.pack and unpack: a tensor in tiles, `D[i, j, ii, jj] = A[tile * i + ii, tile * j + jj]`, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, TensorType, i64
from xdsl.dialects.utils import parse_dynamic_index_list_without_types, print_dynamic_index_list
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.linalg.generic import rank_of


class TiledLayoutOp(IRDLOperation):
    """The base of pack and unpack: dimension inner_dims_pos[n] in tiles of size inner_tiles[n], which are the last
    dimensions; outer dimension n is number outer_dims_perm[n]. HAS_PADDING: true for pack, whose result has the
    tiles."""

    inner_dims_pos = prop_def(DenseArrayBase.constr(i64))
    outer_dims_perm = opt_prop_def(DenseArrayBase.constr(i64))
    static_inner_tiles = prop_def(DenseArrayBase.constr(i64))
    res = result_def(TensorType)
    HAS_PADDING: ClassVar = False

    @property
    def dims(self) -> list[int]:
        """The dimension of the unpacked tensor that each tile cuts, by tile."""
        return [int(dim) for dim in self.inner_dims_pos.get_values()]

    @property
    def sizes(self) -> list[int]:
        """The size of each tile; DYNAMIC_INDEX if it is one of `open_sizes`, in their order."""
        return [int(size) for size in self.static_inner_tiles.get_values()]

    @property
    def open_sizes(self) -> Sequence[SSAValue]:
        """The operands that are sizes of tiles."""
        return self.operands[len(self.operands) - self.sizes.count(DYNAMIC_INDEX) :]

    @property
    def order(self) -> list[int]:
        """The dimension of the unpacked tensor for each outer dimension of the packed one: their own order without
        outer_dims_perm."""
        rank = min(rank_of(self.operands[0]), rank_of(self.operands[1]))
        return [*map(int, self.outer_dims_perm.get_values())] if self.outer_dims_perm else [*range(rank)]

    def verify_(self) -> None:
        ranks = rank_of(self.operands[0]), rank_of(self.operands[1])
        tiles, rank = len(self.static_inner_tiles), min(ranks)
        if sorted(self.order) != [*range(rank)] or not {*self.dims} <= {*range(rank)} or len({*self.dims}) != tiles:
            raise VerifyException(f"{self.name} has {tiles} tiles for dimensions {self.dims} in the order {self.order}")
        if ranks != ((rank, rank + tiles) if self.HAS_PADDING else (rank + tiles, rank)):
            raise VerifyException(f"{self.name} has {tiles} tiles and makes a rank of {ranks[1]} of {ranks[0]}")

    @classmethod
    def parse(cls, parser: Parser) -> TiledLayoutOp:
        source = parser.parse_unresolved_operand()
        padding: list[SSAValue] = []
        if cls.HAS_PADDING and parser.parse_optional_keyword("padding_value"):
            with parser.in_parens():
                value = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                padding = [parser.resolve_operand(value, parser.parse_type())]
        properties: dict[str, Attribute] = {}
        for word in ("outer_dims_perm", "inner_dims_pos"):
            if parser.parse_optional_keyword(word):
                parser.parse_punctuation("=")
                dims = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
                properties[word] = DenseArrayBase.from_list(i64, dims)
        parser.parse_keyword("inner_tiles")
        parser.parse_punctuation("=")
        names, sizes = parse_dynamic_index_list_without_types(parser, DYNAMIC_INDEX)
        properties["static_inner_tiles"] = DenseArrayBase.from_list(i64, list(sizes))
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        parser.parse_punctuation("->")
        types.append(parser.parse_type())
        tensors = [parser.resolve_operand(*pair) for pair in zip((source, dest), types, strict=True)]
        tiles = [parser.resolve_operand(name, IndexType()) for name in names]
        operands: Sequence[SSAValue | Sequence[SSAValue]] = [*tensors, *([padding] if cls.HAS_PADDING else []), tiles]
        return cls.build(operands=operands, properties=properties, attributes=attributes, result_types=types[1:])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operands[0])
        if isinstance(self, PackOp) and self.padding_value is not None:
            printer.print_string(" padding_value(")
            printer.print_ssa_value(self.padding_value)
            printer.print_string(" : ")
            printer.print_attribute(self.padding_value.type)
            printer.print_string(")")
        if self.outer_dims_perm is not None:
            printer.print_string(f" outer_dims_perm = {self.order}")
        printer.print_string(f" inner_dims_pos = {self.dims} inner_tiles = ")
        print_dynamic_index_list(printer, DYNAMIC_INDEX, self.open_sizes, self.sizes)
        printer.print_string(" into ")
        printer.print_ssa_value(self.operands[1])
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)
        printer.print_string(" -> ")
        printer.print_attribute(self.operands[1].type)


@irdl_op_definition
class PackOp(TiledLayoutOp):
    """Copy a tensor to tiles; the elements beyond it are padding_value, and undefined without one."""

    name = "linalg.pack"
    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    padding_value = opt_operand_def()
    inner_tiles = var_operand_def(IndexType)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    HAS_PADDING: ClassVar = True


@irdl_op_definition
class UnpackOp(TiledLayoutOp):
    """Copy a tensor from tiles, without the elements beyond it."""

    name = "linalg.unpack"
    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    inner_tiles = var_operand_def(IndexType)
    irdl_options = (ParsePropInAttrDict(),)
