"""Reads of te.compute and loop.block: maps and conditions by the ranges of the axes, equal and unused reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, i32
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from compiler.dialects import loop, te
from compiler.dialects.access import AccessAttr
from compiler.program.read import computed
from compiler.program.tree import Access
from compiler.program.write import access_attribute


class SimplifyReads(RewritePattern):
    """Simplify the reads of a compute or block: indices and conditions by the extents of its axes; read equal elements
    once; drop a read that no value needs, and one whose condition never holds. An op over sizes stays.

        te.compute "Y" [i = 4] (%a = %A[i mod 4] where (i + 1 >= 0) else 0.0, %b = %A[i], %c = %B[i]) { %a * %b }
      ->
        te.compute "Y" [i = 4] (%a = %A[i]) { %a * %a }
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: te.ComputeOp | loop.BlockOp, rewriter: PatternRewriter, /) -> None:
        if "sizes" in op.properties:
            return
        names = {value: str(number) for number, value in enumerate(op.inputs)}
        block = computed(op, names)
        reads = [_simplified(access, block.axis_ranges) for access in block.reads]
        arguments, inner = list(op.body.block.args), op.body.block
        remaining: list[int] = []
        first: dict[Access, SSAValue] = {}
        for position, (access, argument) in enumerate(zip(reads, arguments, strict=True)):
            if access is None:
                otherwise = block.reads[position].otherwise
                assert otherwise is not None
                if argument.uses:
                    constant = ConstantOp(otherwise)
                    rewriter.insert(constant, InsertPoint.at_start(inner))
                    rewriter.replace_all_uses_with(argument, constant.result)
            elif access in first:
                rewriter.replace_all_uses_with(argument, first[access])
            elif argument.uses:
                first[access] = argument
                remaining.append(position)
        accesses = [_attribute(len(op.axes), reads[position]) for position in remaining]
        if len(remaining) < len(arguments) or accesses != list(op.reads):
            _set_reads(op, remaining, accesses, rewriter)


def _simplified(access: Access, ranges: dict[int, tuple[int, int]]) -> Access | None:
    """The access without conditions that always hold or are repeated; None if a condition never holds."""
    if any(condition.never(ranges) for condition in access.where):
        return None
    where = tuple(dict.fromkeys(c for c in access.where if not c.always(ranges)))
    return replace(access, where=where, otherwise=access.otherwise if where else None)


def _attribute(axes: int, access: Access | None) -> AccessAttr:
    assert access is not None
    return access_attribute(axes, access.index, access.where, access.otherwise)


def _set_reads(
    op: te.ComputeOp | loop.BlockOp, remaining: Sequence[int], accesses: Sequence[AccessAttr], rewriter: PatternRewriter
) -> None:
    """Reduce the reads of an op to those at the positions `remaining`, with new accesses; the arguments of the others
    have no uses."""
    inputs = list(op.inputs)
    for position, argument in reversed(list(enumerate(op.body.block.args))):
        if position not in remaining:
            rewriter.erase_block_argument(argument)
    kept = [inputs[position] for position in remaining]
    if isinstance(op, loop.BlockOp):
        sizes = [len(op.loops), len(kept), len(op.targets)]
        op.operands = [*op.loops, *kept, *op.targets]
        op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)
    else:
        op.operands = kept
    op.properties["reads"] = ArrayAttr(accesses)
    rewriter.notify_op_modified(op)
