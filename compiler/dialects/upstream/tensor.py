"""tensor: xDSL's verifiers refuse a static result of a padding by operands, and a reshape of rank 0."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.utils.exceptions import VerifyException

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

TENSOR = tensor.Tensor
