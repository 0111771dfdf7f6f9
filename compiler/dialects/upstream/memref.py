"""memref: MLIR has memref.prefetch, xDSL has not."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, MemRefType, i32
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect
from xdsl.utils.exceptions import VerifyException


def check_indices(buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
    """Raise VerifyException unless a buffer has one index a dimension."""
    assert isinstance(buffer.type, MemRefType)
    rank = buffer.type.get_num_dims()
    if len(indices) != rank:
        raise VerifyException(f"{buffer.type} takes {rank} indices, not {len(indices)}")


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Ask for the cache line of an element: to read or write it, with a locality from 0 (once) to 3 (keep close)."""

    name = "memref.prefetch"
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    isWrite = prop_def(BoolAttr)
    localityHint = prop_def(IntegerAttr)
    isDataCache = prop_def(BoolAttr)
    traits = traits_def(MemoryReadEffect())

    def __init__(self, buffer: SSAValue, indices: Sequence[SSAValue], write: bool, locality: int) -> None:
        super().__init__(
            operands=[buffer, indices],
            properties={
                "isWrite": BoolAttr.from_bool(write),
                "localityHint": IntegerAttr(locality, i32),
                "isDataCache": BoolAttr.from_bool(True),
            },
        )

    def verify_(self) -> None:
        if not 0 <= self.localityHint.value.data <= 3:
            raise VerifyException("the locality is a number from 0 to 3")
        check_indices(self.memref, self.indices)

    def print(self, printer: Printer) -> None:
        way = "write" if self.isWrite.value.data else "read"
        cache = "data" if self.isDataCache.value.data else "instr"
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        printer.print_string(f", {way}, locality<{self.localityHint.value.data}>, {cache}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        buffer = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        parser.parse_punctuation(",")
        way = parser.expect(lambda: _keyword(parser, "read", "write"), "'read' or 'write' expected")
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        with parser.in_angle_brackets():
            locality = parser.parse_integer()
        parser.parse_punctuation(",")
        cache = parser.expect(lambda: _keyword(parser, "data", "instr"), "'data' or 'instr' expected")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        operands = [parser.resolve_operand(buffer, type), *(parser.resolve_operand(i, IndexType()) for i in indices)]
        op = cls(operands[0], operands[1:], way == "write", locality)
        op.properties["isDataCache"] = BoolAttr.from_bool(cache == "data")
        op.attributes.update(attributes)
        return op


def _keyword(parser: Parser, *words: str) -> str | None:
    return next((word for word in words if parser.parse_optional_keyword(word) is not None), None)


MEMREF = Dialect(memref.MemRef.name, [*memref.MemRef.operations, PrefetchOp], list(memref.MemRef.attributes))
