"""The default loop order: contiguous accesses innermost. Legal by construction, so it needs no analysis."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass

from compiler.dialects.functions import functions
from compiler.dialects.loop import BlockOp, ForOp


@dataclass(frozen=True)
class ReorderContiguousPass(ModulePass):
    """Move the spatial loop along which most operands are contiguous innermost, reductions outside it.

        m, l, k { C[m, l] += A[m, k] * B[k, l] }  ->  m, k, l { C[m, l] += A[m, k] * B[k, l] }

    Touches only perfect nests of serial loops around one block that binds each of its axes to one loop and does
    not read what it writes: their instances are independent but for the reduction, whose order is free.
    """

    name = "reorder-contiguous"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in (block for function in functions(op) for block in function.body.blocks):
            for nest in list(block.ops):
                if isinstance(nest, ForOp):
                    _reorder(nest)


def _reorder(nest: ForOp) -> None:
    loops, block = _perfect(nest)
    if block is None or not _independent(loops, block):
        return
    inner = max(range(len(loops)), key=lambda i: (_contiguous(block, i), i))
    if inner == len(loops) - 1 or block.axes.data[inner].is_reduce:
        return
    order = [loops[i] for i in range(len(loops)) if i != inner] + [loops[inner]]
    _rebuild(loops, order, block)


def _perfect(nest: ForOp) -> tuple[list[ForOp], BlockOp | None]:
    loops: list[ForOp] = []
    op: Operation | None = nest
    while isinstance(op, ForOp):
        loops.append(op)
        ops = list(op.body.block.ops)
        op = ops[0] if len(ops) == 1 else None
    return loops, op if isinstance(op, BlockOp) else None


def _independent(loops: list[ForOp], block: BlockOp) -> bool:
    return (
        all(loop.loop_kind == "serial" for loop in loops)
        and [loop.iv for loop in loops] == list(block.loops)
        and block.bindings.data == AffineMap.identity(len(loops))
        and block.guard is None
        and not set(block.targets) & set(block.inputs)
    )


def _contiguous(block: BlockOp, axis: int) -> int:
    """How many accesses step by one element along the axis, less those that stride."""
    score = 0
    for access in (*block.reads, *block.writes):
        results = access.affine_map.results
        if results and axis in results[-1].used_dims():
            score += _unit(results[-1], axis) - any(axis in r.used_dims() for r in results[:-1])
        elif any(axis in r.used_dims() for r in results):
            score -= 1
    return score


def _unit(expr: object, axis: int) -> int:
    from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind

    match expr:
        case AffineDimExpr(position):
            return int(position == axis)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return _unit(lhs, axis) or _unit(rhs, axis)
    return 0


def _rebuild(loops: list[ForOp], order: list[ForOp], block: BlockOp) -> None:
    place = loops[0].parent_block()
    assert place is not None
    anchor = loops[0].next_op
    bodies: dict[ForOp, Block] = {loop: loop.body.block for loop in loops}
    block.detach()
    for loop in loops:
        loop.detach()
    for outer, inner in zip(order, [*order[1:], block], strict=True):
        bodies[outer].add_op(inner)
    if anchor is None:
        place.add_op(order[0])
    else:
        place.insert_op_before(order[0], anchor)
