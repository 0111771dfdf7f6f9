"""Arrivals of blocks at a counter: which blocks arrive together, and which accesses come before the last one's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import gpu
from xdsl.ir import Operation, SSAValue

from compiler.dialects.grid import ArriveOp
from compiler.targets.launches import SIDES, Extents, KernelLaunch
from compiler.targets.simt.threads import sides_of


def arriving_sides(op: ArriveOp) -> tuple[int, ...]:
    """Return the dimensions of the grid (0 for x) along which blocks arrive at one counter: those that its index does
    not depend on."""
    pending: list[SSAValue] = [op.index]
    used: set[int] = set()
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, gpu.BlockIdOp):
            used.add(SIDES.index(owner.dimension.data.value))
        if isinstance(owner, Operation):
            pending += owner.operands
    return tuple(side for side in range(len(SIDES)) if side not in used)


def with_those_awaited(call: KernelLaunch, blocks: Sequence[int]) -> Sequence[int]:
    """Return blocks of a launch together with the blocks that share an arrival counter with one of them, those of
    one counter next to each other. For a kernel without arrivals, and for as many blocks as the grid has, return
    `blocks` unchanged."""
    ops = [op for op in call.kernel.walk() if isinstance(op, ArriveOp)]
    sides = {side for op in ops for side in arriving_sides(op)}
    if not ops or len(blocks) == prod(call.grid):
        return blocks
    return list(dict.fromkeys(other for block in blocks for other in _beside(block, call.grid, sides)))


def _beside(block: int, grid: Extents, sides: set[int]) -> list[int]:
    position = sides_of(block, grid)
    x, y, z = (range(n) if side in sides else (at,) for side, (at, n) in enumerate(zip(position, grid, strict=True)))
    return [i + grid[0] * (j + grid[1] * k) for k in z for j in y for i in x]
