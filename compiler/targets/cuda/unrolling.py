"""`pragmas`: which loops of a kernel NVRTC is told to unroll, and by how many iterations."""

from __future__ import annotations

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from compiler.dialects.grid import ArriveOp

MOST = 1024
"""The most stores of an unrolled loop over register tiles."""


def pragmas(loop: scf.ForOp) -> list[str]:
    """Return the pragmas of a loop: with the attribute `unroll_by` to unroll that many iterations, else to unroll all
    if it has the attribute `unroll` or is a short loop over loops that have it, else none. Loops behind an arrival
    without `unroll` stay loops: loads of all parts would take the registers of the blocks that do not go on."""
    by = loop.attributes.get("unroll_by")
    if isinstance(by, IntegerAttr):
        return [f"#pragma unroll {by.value.data}"]
    if _is_behind_arrival(loop) and "unroll" not in loop.attributes:
        return ["#pragma unroll 1"]
    return ["#pragma unroll"] if is_unrolled(loop) else []


def is_unrolled(loop: scf.ForOp) -> bool:
    """Return whether a loop has the attribute `unroll`, or contains loops that all have it, no branch and no barrier,
    and executes, by constant bounds, 1 to MOST stores in all. On some architectures ptxas alone does not unroll such a
    loop over a panel."""
    if "unroll" in loop.attributes:
        return True
    if _is_behind_arrival(loop):
        return False
    nests = [op for op in loop.body.block.ops if isinstance(op, scf.ForOp)]
    stores = _stores(loop) if nests and all("unroll" in nest.attributes for nest in nests) else None
    return stores is not None and 0 < stores <= MOST


def _is_behind_arrival(loop: scf.ForOp) -> bool:
    """Return whether the last block to arrive alone runs a loop."""
    outer = loop.parent_op()
    while outer is not None and not isinstance(outer, gpu.FuncOp):
        if isinstance(outer, scf.IfOp) and isinstance(outer.cond.owner, ArriveOp):
            return True
        outer = outer.parent_op()
    return False


def _stores(loop: scf.ForOp) -> int | None:
    """Return the number of stores that all iterations of a loop execute; None with a branch, barrier or unmarked loop
    inside, or bounds that are not constant."""
    bounds = [_constant(value) for value in (loop.lb, loop.ub, loop.step)]
    each = 0
    for op in loop.body.block.ops:
        inner = _stores(op) if isinstance(op, scf.ForOp) and "unroll" in op.attributes else _count(op)
        if inner is None:
            return None
        each += inner
    low, high, step = bounds
    if low is None or high is None or not step:
        return None
    return each * max(0, -(-(high - low) // step))


def _count(op: Operation) -> int | None:
    if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp | gpu.BarrierOp):
        return None
    return int(isinstance(op, memref.StoreOp))


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None
