"""vector: MLIR has vector.gather and vector.scatter, xDSL has not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import vector
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, VectorType, i1
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

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


VECTOR = Dialect(vector.Vector.name, [*vector.Vector.operations, GatherOp, ScatterOp], list(vector.Vector.attributes))
