"""The default order of a block's loops: contiguous accesses innermost."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.affine import linear as lin
from compiler.program.tree import Block, Loop


def contiguous_order(block: Block, loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """The loops around a block with that innermost along which most accesses are contiguous; none to keep their order.

    Keeps the order of loops that are not a perfect serial nest, one for each axis in its order, of a block that is
    guarded or reads what it writes, and where a reduction would be innermost.
    """
    alone = all(len(loop.body) == 1 and loop.kind == "serial" for loop in loops)
    written = {access.buffer for access in block.writes}
    bound = block.bindings == tuple(lin.variable(loop.number) for loop in loops)
    if not loops or not alone or not bound or block.guard or written & set(block.sources):
        return ()
    inner = max(range(len(loops)), key=lambda axis: (_contiguous(block, axis), axis))
    if inner == len(loops) - 1 or block.axes[inner].is_reduce:
        return ()
    return (*loops[:inner], *loops[inner + 1 :], loops[inner])


def _contiguous(block: Block, axis: int) -> int:
    """How many accesses step by one element along an axis, less those that stride."""
    score = 0
    for access in (*block.reads, *block.writes):
        *outer, last = access.index or (None,)
        strides = sum(axis in form.variables() for form in outer if form is not None)
        if last is not None and axis in last.variables():
            score += (last.coefficient(axis) == 1) - bool(strides)
        elif strides:
            score -= 1
    return score
