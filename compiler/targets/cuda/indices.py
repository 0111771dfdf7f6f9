"""The indices of a kernel that need 64 bits; the others are `int`, whose arithmetic is faster on GPUs."""

from __future__ import annotations

from math import prod

from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue

from compiler.analysis.index_forms import Ranges
from compiler.targets.launches import SIDES, KernelLaunch

INT = (-(1 << 31), (1 << 31) - 1)
"""The range of an `int`."""


def needs_64_bits(type_: MemRefType) -> bool:
    """Return whether the offset, in elements, of some element of a buffer exceeds 2^31 - 1."""
    return prod(type_.get_shape()) - 1 > INT[1]


def wide_indices(call: KernelLaunch) -> set[SSAValue]:
    """Return the index values of a kernel, loop variables included, that may leave the range of a 32-bit int by
    interval arithmetic, for its launch's grid and block."""
    ranges = Ranges()
    extents = {gpu.BlockIdOp: call.grid, gpu.ThreadIdOp: call.block}
    indices: list[SSAValue] = []
    for op in call.kernel.walk():
        indices += op.results
        if isinstance(op, gpu.BlockIdOp | gpu.ThreadIdOp):
            ranges.state(op.results[0], (0, extents[type(op)][SIDES.index(op.dimension.data.value)] - 1))
        elif isinstance(op, scf.ForOp):
            indices += op.body.block.args
            low, high, step = (ranges.of(value) for value in (op.lb, op.ub, op.step))
            # at the exit of the loop the variable is beyond its range
            ranges.state(op.body.block.args[0], (low[0], max(low[1], high[1] + step[1] - 1)))
    return {v for v in indices if isinstance(v.type, IndexType) and not _is_int(*ranges.of(v))}


def _is_int(smallest: float, largest: float) -> bool:
    return INT[0] <= smallest and largest <= INT[1]
