"""The default order of a block's loops: contiguous accesses innermost."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.affine import linear as lin
from compiler.program.tree import Access, Block, Loop, Program


def contiguous_order(program: Program, block: Block, loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """Reorder the loops around a block: innermost the one along which most accesses are contiguous. Empty: no change.

    Keeps the order of loops that are not a perfect serial nest with one loop for each axis in its order, of a block
    that is guarded or reads its target, and of a block where a reduction would become innermost.

    >>> A = te.placeholder((4, 8), name="A")
    >>> B = te.compute((8, 4), lambda i, j: A[j, i] + A[j, 0], name="B")
    >>> program = Schedule(te.function("f", [A], B)).program
    >>> order = strata.analysis.contiguous_order(program, program.blocks["B"], program.enclosing("B"))
    >>> [loop.label for loop in order]
    ['j', 'i']
    """
    alone = all(len(loop.body) == 1 and loop.kind == "serial" for loop in loops)
    written = set(block.targets)
    bound = block.bindings == tuple(lin.variable(loop.number) for loop in loops)
    if not loops or not alone or not bound or block.guard or written & set(block.sources):
        return ()
    inner = max(range(len(loops)), key=lambda axis: (_contiguous(program, block, axis), axis))
    if inner == len(loops) - 1 or block.axes[inner].is_reduce:
        return ()
    return (*loops[:inner], *loops[inner + 1 :], loops[inner])


def _contiguous(program: Program, block: Block, axis: int) -> int:
    """Return the number of accesses with stride 1 along an axis, minus those with strides not -1, 0 or 1; the least
    possible value for an axis of size 1."""
    if block.axes[axis].size == 1:
        return -len(block.reads) - len(block.writes)
    steps = [step(program, access, axis) for access in (*block.reads, *block.writes)]
    return steps.count(1) - sum(by not in (0, 1, -1) for by in steps)


def step(program: Program, access: Access, axis: int) -> int | None:
    """Stride of an access along an axis of its block, in elements; None if it is not constant.

    >>> A = te.placeholder((4, 8), name="A")
    >>> program = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program
    >>> [strata.analysis.step(program, program.blocks["B"].reads[0], axis) for axis in (0, 1)]
    [8, 1]
    """
    total, pitch = 0, 1
    for form, extent in zip(reversed(access.index), reversed(program.buffers[access.buffer].shape), strict=True):
        factor = form.coefficient(axis)
        if factor is None:
            return None
        total, pitch = total + factor * pitch, pitch * extent
    return total
