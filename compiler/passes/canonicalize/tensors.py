"""The te level: copies, unused results, computes of constants."""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import AnyFloat
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from compiler.dialects import te
from compiler.dialects.checks import element_type
from compiler.dialects.combination import Combination
from compiler.dialects.functions import has_tensors
from compiler.passes.canonicalize.constants import is_evaluated
from compiler.passes.fold_constants import fold


class EvaluateComputes(RewritePattern):
    """Replace a compute or gather of small constants by a constant, if its elements do not depend on who computes them.

    A sum of floats stays, whose order is free, and a mathematical function such as exp: the pass fold-constants
    evaluates these too.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: te.ComputeOp | te.GatherOp, rewriter: PatternRewriter, /) -> None:
        values = fold(op) if op.operands and _is_exact(op) else None
        if values is None:
            return
        constants = [te.ConstantOp(value) for value in values]
        for constant, result in zip(constants, op.results, strict=True):
            constant.output.name_hint = result.name_hint
        rewriter.replace(op, constants, [constant.output for constant in constants])


def _is_exact(op: te.ComputeOp | te.GatherOp) -> bool:
    """Whether all evaluators compute the same elements, and as many in all calls."""
    if op.sizes is not None:
        return False
    if isinstance(op, te.GatherOp):
        return True
    names = set(op.combination.names)
    is_free = any(isinstance(element_type(value), AnyFloat) for value in op.results) and names & {"add", "mul"}
    ops = [inner for inner in op.body.block.ops if not isinstance(inner, te.IndexOp | te.YieldOp | ConstantOp)]
    return not is_free and op.joint is None and all(map(is_evaluated, ops))


class ReadOriginals(RewritePattern):
    """Use the original instead of a copy.

        %C = te.compute "C" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> { te.yield %a : f32 }
        %D = te.compute "D" (%c = %C[...] ...)
      ->
        %D = te.compute "D" (%c = %A[...] ...)

    A copy that the function returns stays if it would return an argument, or a value twice, instead.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: te.ComputeOp, rewriter: PatternRewriter, /) -> None:
        for position, result in enumerate(op.results):
            original = _original(op, position)
            if original is not None and result.uses and (not _is_returned(result) or not _is_public(original)):
                rewriter.replace_all_uses_with(result, original)


def _original(op: te.ComputeOp, position: int) -> SSAValue | None:
    """The value that a result copies, element by element; None for other results."""
    body = op.body.block
    assert body.last_op is not None
    value = body.last_op.operands[position]
    if op.is_reduction or op.sizes is not None or not isinstance(value, BlockArgument) or value.owner is not body:
        return None
    access, source = op.reads.data[value.index], op.inputs[value.index]
    is_in_place = access.affine_map == AffineMap.identity(len(op.axes)) and access.condition is None
    return source if is_in_place and source.type == op.results[position].type else None


def _is_returned(value: SSAValue) -> bool:
    return any(isinstance(use.operation, ReturnOp) for use in value.uses)


def _is_public(value: SSAValue) -> bool:
    """Whether a value is an argument or a result of its function."""
    return isinstance(value, BlockArgument) or _is_returned(value)


class DropUnusedResults(RewritePattern):
    """Drop the results of a compute that nothing reads; those of a joint combiner depend on each other and stay."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: te.ComputeOp, rewriter: PatternRewriter, /) -> None:
        used = [position for position, result in enumerate(op.results) if result.uses]
        if not used or len(used) == len(op.results) or op.joint is not None:
            return
        body: Region = rewriter.move_region_contents_to_new_regions(op.body)
        last = body.block.last_op
        assert last is not None
        last.operands = [last.operands[position] for position in used]
        names = op.combination.names
        new = te.ComputeOp(
            op.label.data,
            op.axes.data,
            op.inputs,
            op.reads.data,
            [op.results[position].type for position in used],
            body,
            Combination([names[position] for position in used] if names else ()),
            op.sizes,
        )
        new.attributes |= op.attributes
        new.location = op.location
        results: list[SSAValue | None] = [None] * len(op.results)
        for position, result in zip(used, new.results, strict=True):
            results[position] = result
            result.name_hint = op.results[position].name_hint
        rewriter.replace(op, new, results)


class DropUnusedCalls(RewritePattern):
    """Drop a call of a te function, which has no effects, if nothing reads its results."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CallOp, rewriter: PatternRewriter, /) -> None:
        caller = op.parent_op()
        if not any(result.uses for result in op.results) and isinstance(caller, FuncOp) and has_tensors(caller):
            rewriter.erase(op)


PATTERNS: tuple[type[RewritePattern], ...] = (EvaluateComputes, ReadOriginals, DropUnusedResults, DropUnusedCalls)
