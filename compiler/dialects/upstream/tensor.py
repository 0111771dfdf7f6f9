"""tensor: xDSL's verifiers refuse a static result of a padding by operands, and a reshape of rank 0."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.formats import table_op

_verify_expansion = tensor.ExpandShapeOp.verify_


def _verify_pad(op: tensor.PadOp) -> None:
    rank = len(op.static_low)
    ranks = {len(type.get_shape()) for type in (op.source.type, op.result.type) if isinstance(type, TensorType)}
    if {rank, len(op.static_high), len(op.region.block.args), *ranks} != {rank}:
        raise VerifyException("low, high, the arguments of the region and both tensors have one rank")


def _verify_expand(op: tensor.ExpandShapeOp) -> None:
    """Verify a tensor.expand_shape by xDSL's rules, except one of a single element, with the reassociation `[]`."""
    if op.reassociation.data or {*op.static_output_shape.get_values()} - {1}:
        _verify_expansion(op)


# Not subclasses: xDSL allows none of a defined op.
tensor.PadOp.verify_ = _verify_pad  # type: ignore[method-assign]
tensor.ExpandShapeOp.verify_ = _verify_expand  # type: ignore[method-assign]

_READ_ONLY = [
    table_op(
        "tensor.bitcast",
        "$source attr-dict `:` type($source) `to` type($dest)",
        operands="source",
        results="dest",
        traits=(Pure(),),
    ),
    table_op(
        "tensor.rank", "$tensor attr-dict `:` type($tensor)", operands="tensor", results="rank:index", traits=(Pure(),)
    ),
    table_op(
        "tensor.generate",
        "$dynamicExtents $body attr-dict `:` type($result)",
        operands="dynamicExtents*:index",
        results="result",
        regions="body",
    ),
    table_op(
        "tensor.gather",
        "$source `[` $indices `]` `gather_dims` `(` $gather_dims `)` (`unique` $unique^)? attr-dict `:` "
        "functional-type(operands, results)",
        operands="source indices",
        properties="gather_dims:array unique?:unit",
        results="result",
    ),
    table_op(
        "tensor.scatter",
        "$source `into` $dest `[` $indices `]` `scatter_dims` `(` $scatter_dims `)` (`unique` $unique^)? attr-dict `:` "
        "functional-type(operands, results)",
        operands="source dest indices",
        properties="scatter_dims:array unique?:unit",
        results="result",
    ),
    table_op(
        "tensor.parallel_insert_slice",
        "$source `into` $dest `` custom<DynamicIndexList>($offsets, $static_offsets) "
        "custom<DynamicIndexList>($sizes, $static_sizes) custom<DynamicIndexList>($strides, $static_strides) "
        "attr-dict `:` type($source) `into` type($dest)",
        operands="source dest offsets*:index sizes*:index strides*:index",
        properties="static_offsets:array static_sizes:array static_strides:array",
    ),
]
"""Ops that are read and printed, not lowered."""

TENSOR = Dialect(tensor.Tensor.name, [*tensor.Tensor.operations, *_READ_ONLY], list(tensor.Tensor.attributes))
