"""Upstream operations on memory that xDSL leaves out: vector.gather, vector.scatter, memref.prefetch.

The names and the syntax are upstream's; a context that loads `VECTOR` and `MEMREF` in the place of xDSL's reads and
prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, IntegerType, MemRefType, VectorType, i1, i32
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException


def _verify_lanes(
    base: SSAValue, indices: Sequence[SSAValue], places: SSAValue, mask: SSAValue, value: SSAValue
) -> None:
    """One place, one truth value and one element a lane; one index a dimension."""
    types = (places.type, mask.type, value.type)
    if not all(isinstance(type, VectorType) and len(type.get_shape()) == 1 for type in types):
        raise VerifyException("the places, the mask and the value are vectors of one dimension")
    if len({type.get_shape() for type in types if isinstance(type, VectorType)}) != 1:
        raise VerifyException("the places, the mask and the value have different numbers of lanes")
    assert isinstance(base.type, MemRefType)
    assert isinstance(mask.type, VectorType) and isinstance(value.type, VectorType)
    if not isinstance(places.type, VectorType) or not isinstance(places.type.element_type, IndexType | IntegerType):
        raise VerifyException("the places are not integers")
    if mask.type.element_type != i1:
        raise VerifyException("the mask is not of i1")
    if value.type.element_type != base.type.element_type:
        raise VerifyException("the vector's elements are not of the buffer's type")
    if len(indices) != base.type.get_num_dims():
        raise VerifyException("there is not one index for each dimension of the buffer")


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Lane l reads the element `index_vec[l]` elements behind base[indices]; where the mask is false, `pass_thru`."""

    name = "vector.gather"
    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    pass_thru = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())

    assembly_format: ClassVar[str] = (
        "$base `[` $indices `]` `[` $index_vec `]` `,` $mask `,` $pass_thru attr-dict `:` type($base) `,` "
        "type($index_vec) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )

    def __init__(
        self, base: SSAValue, indices: Sequence[SSAValue], index_vec: SSAValue, mask: SSAValue, pass_thru: SSAValue
    ) -> None:
        super().__init__(operands=[base, indices, index_vec, mask, pass_thru], result_types=[pass_thru.type])

    def verify_(self) -> None:
        _verify_lanes(self.base, self.indices, self.index_vec, self.mask, self.pass_thru)
        if self.result.type != self.pass_thru.type:
            raise VerifyException("the result is not of the type of what it is where the mask is false")


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """Lane l writes the element `index_vec[l]` elements behind base[indices], where the mask is true."""

    name = "vector.scatter"
    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    value = operand_def(VectorType)
    traits = traits_def(MemoryWriteEffect())

    assembly_format: ClassVar[str] = (
        "$base `[` $indices `]` `[` $index_vec `]` `,` $mask `,` $value attr-dict `:` type($base) `,` "
        "type($index_vec) `,` type($mask) `,` type($value)"
    )

    def __init__(
        self, base: SSAValue, indices: Sequence[SSAValue], index_vec: SSAValue, mask: SSAValue, value: SSAValue
    ) -> None:
        super().__init__(operands=[base, indices, index_vec, mask, value])

    def verify_(self) -> None:
        _verify_lanes(self.base, self.indices, self.index_vec, self.mask, self.value)


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
        assert isinstance(self.memref.type, MemRefType)
        if self.memref.type.get_num_dims() != len(self.indices):
            raise VerifyException("there is not one index for each dimension of the buffer")

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


def _with(dialect: Dialect, *ops: type[Operation]) -> Dialect:
    attributes: list[type[Attribute]] = list(dialect.attributes)
    return Dialect(dialect.name, [*dialect.operations, *ops], attributes)


VECTOR = _with(vector.Vector, GatherOp, ScatterOp)
MEMREF = _with(memref.MemRef, PrefetchOp)
