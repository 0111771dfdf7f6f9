"""vector: MLIR has vector.gather, vector.scatter and about thirty more ops that xDSL has not. Of these, all but the two
are read and printed, not lowered."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects import vector
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerType, MemRefType, VectorType, i1
from xdsl.ir import Attribute, Block, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.formats import table_op
from compiler.dialects.upstream.memref import check_indices


def _verify_lanes(
    base: SSAValue, indices: Sequence[SSAValue], places: SSAValue, mask: SSAValue, value: SSAValue
) -> None:
    """Raise VerifyException unless places, mask and value are one-dimensional, of one length and of fitting element
    types, and the buffer has one index a dimension."""
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
    check_indices(base, indices)


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Load in lane l the element `index_vec[l]` elements after base[indices]; `pass_thru[l]` if the mask is false."""

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
    """Store lane l, where the mask is true, to the element `index_vec[l]` elements after base[indices]."""

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

    def verify_(self) -> None:
        _verify_lanes(self.base, self.indices, self.index_vec, self.mask, self.value)


@irdl_op_definition
class OuterProductOp(IRDLOperation):
    """The outer product of two vectors, or a vector times a scalar, which `kind`, add if absent, combines with `acc` if
    it is given."""

    name = "vector.outerproduct"
    lhs = operand_def(VectorType)
    rhs = operand_def()
    acc = opt_operand_def(VectorType)
    kind = opt_prop_def(vector.CombiningKindAttr)
    result = result_def(VectorType)
    traits = traits_def(Pure())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.properties | self.attributes)
        printer.print_string(f" : {self.lhs.type}, {self.rhs.type}")

    @classmethod
    def parse(cls, parser: Parser) -> OuterProductOp:
        start = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = dict(parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        types: list[Attribute] = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        left, right = (*types, None)[:2]
        if len(types) != 2 or not isinstance(left, VectorType) or len(names) not in (2, 3):
            parser.raise_error("a vector, a vector or scalar, and at most one accumulator are expected", start)
        sizes, scalable = [*left.shape], [*left.scalable_dims]
        if isinstance(right, VectorType):
            sizes, scalable = [*sizes, *right.shape], [*scalable, *right.scalable_dims]
        result = VectorType(left.element_type, ArrayAttr(sizes), ArrayAttr(scalable))
        operands = parser.resolve_operands(names, [*types, result][: len(names)], start)
        kind = {"kind": attributes.pop("kind")} if "kind" in attributes else {}
        return cls.create(operands=operands, result_types=[result], properties=kind, attributes=attributes)


@irdl_op_definition
class ToElementsOp(IRDLOperation):
    """The elements of a vector as scalars, in row-major order."""

    name = "vector.to_elements"
    source = operand_def(VectorType)
    elements = var_result_def()
    traits = traits_def(Pure())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(f" : {self.source.type}")

    @classmethod
    def parse(cls, parser: Parser) -> ToElementsOp:
        source, attributes = parser.parse_unresolved_operand(), parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start, type = parser.pos, parser.parse_type()
        if not isinstance(type, VectorType):
            parser.raise_error("a vector type is expected", start)
        types = [type.element_type] * prod(type.get_shape())
        return cls.create(
            operands=[parser.resolve_operand(source, type)], result_types=types, attributes=dict(attributes)
        )


@irdl_op_definition
class MaskOp(IRDLOperation):
    """The op in the region, in the lanes where the mask is true; elsewhere the value `passthru`, or without it
    undefined."""

    name = "vector.mask"
    mask = operand_def(VectorType)
    passthru = opt_operand_def()
    results_ = var_result_def()
    maskRegion = region_def()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_region(self.maskRegion)
        printer.print_op_attributes(self.attributes)
        printer.print_string(f" : {self.mask.type}")
        if self.results:
            printer.print_string(" -> ")
            printer.print_list([result.type for result in self.results], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> MaskOp:
        start = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        block = region.blocks[-1]
        if not isinstance(block.last_op, YIELD):
            block.add_op(YIELD.create(operands=block.last_op.results if block.last_op else []))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types: list[Attribute] = [parser.parse_type()]
        results: list[Attribute] = []
        if parser.parse_optional_punctuation("->") is not None:
            results = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type) or [
                parser.parse_type()
            ]
        operands = parser.resolve_operands(names, [*types, *results][: len(names)], start)
        return cls.create(operands=operands, result_types=results, regions=[region], attributes=dict(attributes))


YIELD = table_op(
    "vector.yield",
    "attr-dict ($values^ `:` type($values))?",
    operands="values*",
    traits=(IsTerminator(),),
)
_TRANSFER = "$base `[` $indices `]` `,` $mask `,` "
_READ_ONLY = [
    table_op(
        "vector.contract",
        "attr-dict $lhs `,` $rhs `,` $acc `:` type($lhs) `,` type($rhs) `into` type($acc)",
        operands="lhs rhs acc:D",
        properties="indexing_maps iterator_types kind?",
        results="result:D",
        traits=(Pure(),),
    ),
    table_op("vector.print", "$source attr-dict `:` type($source)", operands="source"),
    OuterProductOp,
    ToElementsOp,
    MaskOp,
    YIELD,
    table_op(
        "vector.from_elements",
        "$elements attr-dict `:` type($dest)",
        operands="elements*:T",
        results="dest:vector[T]",
        traits=(Pure(),),
    ),
    table_op(
        "vector.shape_cast",
        "$source attr-dict `:` type($source) `to` type($result)",
        operands="source",
        results="result",
        traits=(Pure(),),
    ),
    table_op(
        "vector.transpose",
        "$vector `,` $permutation attr-dict `:` type($vector) `to` type($result)",
        operands="vector",
        properties="permutation:array",
        results="result",
        traits=(Pure(),),
    ),
    table_op(
        "vector.type_cast",
        "$memref attr-dict `:` type($memref) `to` type($result)",
        operands="memref",
        results="result",
        traits=(Pure(),),
    ),
    table_op("vector.step", "attr-dict `:` type($result)", results="result", traits=(Pure(),)),
    table_op("vector.vscale", "attr-dict", results="res:index", traits=(Pure(),)),
    table_op(
        "vector.constant_mask",
        "$mask_dim_sizes attr-dict `:` type($result)",
        properties="mask_dim_sizes:array",
        results="result",
        traits=(Pure(),),
    ),
    table_op(
        "vector.extract_strided_slice",
        "$source attr-dict `:` type($source) `to` type($result)",
        operands="source",
        properties="offsets sizes strides",
        results="result",
        traits=(Pure(),),
    ),
    table_op(
        "vector.insert_strided_slice",
        "$valueToStore `,` $dest attr-dict `:` type($valueToStore) `into` type($dest)",
        operands="valueToStore dest:D",
        properties="offsets strides",
        results="res:D",
        traits=(Pure(),),
    ),
    table_op(
        "vector.scalable.insert",
        "$valueToStore `,` $dest `[` $pos `]` attr-dict `:` type($valueToStore) `into` type($dest)",
        operands="valueToStore dest:D",
        properties="pos:i64",
        results="res:D",
    ),
    table_op(
        "vector.scalable.extract",
        "$source `[` $pos `]` attr-dict `:` type($res) `from` type($source)",
        operands="source",
        properties="pos:i64",
        results="res",
    ),
    table_op(
        "vector.interleave",
        "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)",
        operands="lhs:T rhs:T",
        results="result",
        traits=(Pure(),),
    ),
    table_op(
        "vector.deinterleave",
        "$source attr-dict `:` type($source) `->` type($res1)",
        operands="source",
        results="res1:T res2:T",
        traits=(Pure(),),
    ),
    table_op(
        "vector.multi_reduction",
        "$kind `,` $source `,` $acc attr-dict $reduction_dims `:` type($source) `to` type($acc)",
        operands="source acc:D",
        properties="kind:kind reduction_dims:array",
        results="dest:D",
        traits=(Pure(),),
    ),
    table_op(
        "vector.scan",
        "$kind `,` $source `,` $initial_value attr-dict `:` type($source) `,` type($initial_value)",
        operands="source:S initial_value:I",
        properties="kind:kind reduction_dim inclusive",
        results="dest:S accumulated_value:I",
        traits=(Pure(),),
    ),
    table_op(
        "vector.expandload",
        f"{_TRANSFER} $pass_thru attr-dict `:` type($base) `,` type($mask) `,` type($pass_thru) `into` type($result)",
        operands="base indices*:index mask pass_thru",
        properties="alignment?",
        results="result",
    ),
    table_op(
        "vector.compressstore",
        f"{_TRANSFER} $valueToStore attr-dict `:` type($base) `,` type($mask) `,` type($valueToStore)",
        operands="base indices*:index mask valueToStore",
        properties="alignment?",
    ),
]

# Not subclasses: emission and passes look up handlers by the class of an op, which xDSL's passes also build.
for _op, _effect in (
    *((op, MemoryReadEffect()) for op in (vector.LoadOp, vector.MaskedLoadOp, vector.TransferReadOp)),
    *((op, MemoryWriteEffect()) for op in (vector.StoreOp, vector.MaskedStoreOp, vector.TransferWriteOp)),
    *((op, Pure()) for op in (vector.BitcastOp, vector.CreateMaskOp, vector.ReductionOp)),
):
    _op.traits.add_trait(_effect)

VECTOR = Dialect(
    vector.Vector.name,
    [*(op for op in vector.Vector.operations if op is not vector.PrintOp), GatherOp, ScatterOp, *_READ_ONLY],
    list(vector.Vector.attributes),
)
