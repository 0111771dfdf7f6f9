"""Index arithmetic in bodies: values and tests as forms over the axes of a block, or over what replaces these."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.upstream.arith import CmpiOp
from compiler.program import body


def affine_test(node: body.Scalar, axes: Sequence[Linear], ranges: lin.Ranges) -> Condition | None:
    """Translate an eq or sge of index expressions to a condition, axis n replaced by axes[n]; None for another op, and
    if a side is not affine."""
    if not isinstance(node, body.Apply) or node.kind is not CmpiOp:
        return None
    predicate = dict(node.properties)["predicate"]
    left, right = (linear_of(operand, axes, ranges) for operand in node.operands)
    if left is None or right is None or not isinstance(predicate, IntegerAttr):
        return None
    return {0: Condition(left - right, True), 5: Condition(left - right)}.get(predicate.value.data)


def linear_of(node: body.Scalar, axes: Sequence[Linear], ranges: lin.Ranges) -> Linear | None:
    """Translate an index expression to a form, axis n replaced by axes[n]; None if it is not affine, and for a mod."""
    if isinstance(node, body.Index):
        return axes[node.axis]
    if isinstance(node, body.Read):
        return None
    if node.kind is arith.ConstantOp:
        value = dict(node.properties)["value"]
        return lin.constant(value.value.data) if isinstance(value, IntegerAttr) else None
    if len(node.operands) != 2:
        return None
    left, right = (linear_of(operand, axes, ranges) for operand in node.operands)
    if left is None or right is None:
        return None
    if node.kind is arith.AddiOp:
        return left + right
    if node.kind is arith.SubiOp:
        return left - right
    if node.kind is arith.MuliOp and (left.is_constant or right.is_constant):
        return right.scaled(left.constant) if left.is_constant else left.scaled(right.constant)
    if node.kind is arith.FloorDivSIOp and right.is_constant and right.constant > 0:
        return lin.floordiv(left, right.constant, ranges)
    return None
