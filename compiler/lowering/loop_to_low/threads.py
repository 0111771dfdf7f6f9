"""Inside a kernel: loops that are hardware indices, buffers on the chip, and the stages between which threads wait.

A stage is run by threads that differ; those that its loops do not name take no part, as when a loop has fewer
iterations than there are threads, or a stage has no loop along a dimension of the block.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.dialects.gpu import BarrierOp

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.barriers import THREADS, is_stage
from compiler.dialects.upstream.nvgpu import GroupOp, WaitOp
from compiler.lowering.loop_to_low.context import BlockThreads, Context, under
from compiler.lowering.loop_to_low.warp import fragment_of
from compiler.program.tree import Block, Buffer, Loop, key_of, loops_in
from compiler.program.write import hint
from compiler.support.errors import LoweringError
from compiler.types.scopes import SCOPES


def emit_on_chip(context: Context, threads: BlockThreads, buffer: Buffer) -> None:
    """A buffer that a block of threads shares, or of which each thread has its own copy."""
    is_fragment = buffer.scope == "fragment"
    space = SCOPES[buffer.scope]
    if space is None:
        raise LoweringError(
            f"buffer '{buffer.name}' of scope {buffer.scope} lives inside a kernel, where it is shared or local"
        )
    part = threads.parts.get(buffer.name)
    type = MemRefType(buffer.scalar, buffer.shape if part is None else part.shape)
    if is_fragment:
        type = fragment_of(context.program, buffer, type.get_shape())
    value = context.scopes.add(
        memref.AllocaOp.get(type.element_type, shape=type.get_shape(), memory_space=IntegerAttr(space, i64))
    )
    value.name_hint = hint(buffer.name)
    context.buffers[buffer.name] = value


def emit_stage(context: Context, threads: BlockThreads, node: Loop | Block, emit: Callable[[], None]) -> None:
    """A node of a kernel: its barrier, then, where it is a stage, the threads that run it."""
    if key_of(node) in threads.barriers:
        if threads.copies_wait:
            context.scopes.run(WaitOp(context.scopes.add(GroupOp())))
        context.scopes.run(BarrierOp())
    if threads.in_stage or not is_stage(node):
        emit()
        return
    named = {inner.kind for inner in loops_in(node)}
    if "tensorized" in named:  # by a warp, along x
        named.add(THREADS[0])
    idle = [kind for kind in THREADS if kind in threads.ids and kind not in named]
    tests = [Condition(lin.variable(threads.variables[kind]), equal=True) for kind in idle]
    threads.in_stage = True
    under(context, tests, emit)
    threads.in_stage = False


def emit_bound(context: Context, threads: BlockThreads, loop: Loop, emit: Callable[[], None]) -> None:
    """A loop whose variable is a hardware index, for those indices that it has."""
    scopes, kind = context.scopes, loop.kind
    scopes.bound[loop.number], scopes.home[loop.number] = threads.ids[kind], 0
    tests = []
    if loop.extent < threads.extents[kind]:
        tests.append(Condition(lin.constant(loop.extent - 1) - lin.variable(threads.variables[kind])))
    under(context, tests, emit)
    del scopes.bound[loop.number]
