"""Expressions that may be equal, by their operations."""

from __future__ import annotations

from compiler.dialects.upstream.arith import SelectOp
from compiler.program import body


def resembles(wanted: body.Scalar, actual: body.Scalar) -> bool:
    """Whether two expressions may be equal: the same operations from the top down, to a read or axis value. A select
    resembles what one of its two cases resembles."""
    if isinstance(wanted, body.Read) or isinstance(actual, body.Read):
        return True
    if isinstance(actual, body.Apply) and actual.kind is SelectOp:  # an affine condition, which decides for one case
        return resembles(wanted, actual.operands[1]) or resembles(wanted, actual.operands[2])
    if isinstance(wanted, body.Apply) and wanted.kind is SelectOp:
        return resembles(wanted.operands[1], actual) or resembles(wanted.operands[2], actual)
    return same_operation(wanted, actual) and all(map(resembles, operands(wanted), operands(actual)))


def same_operation(left: body.Scalar, right: body.Scalar) -> bool:
    """Whether two expressions apply the same operation, to any operands; an axis value applies any, a read none."""
    if not isinstance(left, body.Apply) or not isinstance(right, body.Apply):
        return not isinstance(left, body.Read) and not isinstance(right, body.Read)
    return (
        left.kind is right.kind
        and left.properties == right.properties
        and left.types == right.types
        and left.result == right.result
        and len(left.operands) == len(right.operands)
    )


def operands(node: body.Scalar) -> tuple[body.Scalar, ...]:
    """The operands of an operation; empty for a leaf."""
    return node.operands if isinstance(node, body.Apply) else ()
