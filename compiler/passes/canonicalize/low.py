"""The low level: affine expressions of constants, broadcast constants, and buffers that are only written."""

from __future__ import annotations

from xdsl.dialects import affine, arith, memref, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineSymExpr
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import ConstantLike

from compiler.dialects.upstream.affine import MaxOp
from compiler.passes.touches import leaves_unread


class EvaluateMaps(RewritePattern):
    """Evaluate an affine map of constants; one that is a single operand is that operand.

    %1 = affine.apply affine_map<(d0) -> (d0 * 4 + 1)>(%c3);  %2 = affine.apply affine_map<(d0) -> (d0)>(%i)
      ->
        %1 = arith.constant 13 : index;                           %i
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: affine.ApplyOp | affine.MinOp | MaxOp, rewriter: PatternRewriter, /) -> None:
        map = op.map.data
        operands = list(op.operands)
        if len(map.results) == 1 and isinstance(result := map.results[0], AffineDimExpr | AffineSymExpr):
            position = result.position + (map.num_dims if isinstance(result, AffineSymExpr) else 0)
            rewriter.replace(op, (), (operands[position],))
            return
        numbers = [_number(value) for value in operands]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers) and not all(isinstance(e, AffineConstantExpr) for e in map.results):
            return
        known = known if len(known) == len(numbers) else [0] * len(numbers)
        try:
            results = map.eval(known[: map.num_dims], known[map.num_dims :])
        except ZeroDivisionError:  # undefined
            return
        value = min(results) if isinstance(op, affine.MinOp) else max(results)
        if -(2**63) <= value < 2**63:
            rewriter.replace(op, arith.ConstantOp(IntegerAttr.from_index_int_value(value)))


def _number(value: SSAValue) -> int | None:
    constant = ConstantLike.get_constant_value(value)
    return constant.value.data if isinstance(constant, IntegerAttr) else None


class BroadcastConstants(RewritePattern):
    """Make the broadcast of a constant a constant: `vector.broadcast %c1 : f32 to vector<8xf32>` is dense<1.0>."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: vector.BroadcastOp, rewriter: PatternRewriter, /) -> None:
        value, type = ConstantLike.get_constant_value(op.source), op.vector.type
        if isinstance(value, FloatAttr | IntegerAttr) and isinstance(type, VectorType):
            splat = DenseIntOrFPElementsAttr.from_list(type, [value.value.data])
            rewriter.replace(op, arith.ConstantOp(splat))


class DropUnreadBuffers(RewritePattern):
    """Remove a buffer that is only written, and the stores to it."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: memref.AllocOp | memref.AllocaOp, rewriter: PatternRewriter, /) -> None:
        users = list(dict.fromkeys(use.operation for use in op.memref.uses))
        if all(leaves_unread(user, op.memref) for user in users):
            for user in users:
                rewriter.erase(user)
            rewriter.erase(op)


PATTERNS: tuple[type[RewritePattern], ...] = (EvaluateMaps, BroadcastConstants, DropUnreadBuffers)
