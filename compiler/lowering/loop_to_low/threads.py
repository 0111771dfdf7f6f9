"""Inside a kernel: loops that are hardware indices, buffers on the chip, and the stages between barriers.

The blocks of a stage run on the same threads; threads beyond the extents of its loops are idle.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.dialects.gpu import BarrierOp
from xdsl.ir import SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.stages import BLOCKS, THREADS, Arrival, bound_kinds, is_stage
from compiler.dialects.grid import ArriveOp
from compiler.dialects.upstream.nvgpu import GroupOp, WaitOp
from compiler.lowering.loop_to_low.context import BlockThreads, Context, emit_under
from compiler.lowering.loop_to_low.warp import thread_fragment_type
from compiler.program.tree import Block, Buffer, Loop, blocks_in, key_of
from compiler.program.write import hint
from compiler.support.errors import LoweringError
from compiler.types.scopes import SCOPES


def emit_on_chip(context: Context, threads: BlockThreads, buffer: Buffer) -> None:
    """Allocate a shared buffer of a block, or a local or fragment buffer: each thread's part if the buffer is outside
    the thread loops, else the whole. Raises LoweringError for scope global, and for a fragment unless warp intrinsics
    access it as one kind of MMA tile, of the shape of its last two dimensions."""
    is_fragment = buffer.scope == "fragment"
    space = SCOPES[buffer.scope]
    if space is None:
        raise LoweringError(
            f"buffer '{buffer.name}' of scope {buffer.scope} lives inside a kernel, where it is shared or local"
        )
    part = threads.parts.get(buffer.name)
    type = MemRefType(buffer.scalar, buffer.shape if part is None else part.shape)
    if is_fragment:
        type = thread_fragment_type(context.program, buffer, type.get_shape())
    value = context.scopes.add(
        memref.AllocaOp.get(type.element_type, shape=type.get_shape(), memory_space=IntegerAttr(space, i64))
    )
    value.name_hint = hint(buffer.name)
    context.buffers[buffer.name] = value


def emit_stage(context: Context, threads: BlockThreads, node: Loop | Block, emit: Callable[[], None]) -> None:
    """Emit a node of a kernel after its barrier, if it has one; of the threads along a dimension that a stage does not
    use, only index 0 runs the stage, unless it is replicated along it. A barrier is after a wait for asynchronous
    copies, if there are any: the copies since the last one are a group, also where a barrier is left out."""
    key, groups = key_of(node), threads.groups
    if key in threads.barriers and key in threads.unordered:
        if groups is not None and key == groups.barrier:
            context.scopes.run(GroupOp())
    elif key in threads.barriers:
        if threads.copies_wait:
            in_flight = groups.in_flight if groups is not None and key == groups.barrier else None
            context.scopes.run(WaitOp(context.scopes.add(GroupOp()), in_flight))
        context.scopes.run(BarrierOp())
    if threads.in_stage or not is_stage(node):
        emit()
        return
    used_kinds = bound_kinds(node) | threads.alike.get(blocks_in(node)[0].label, frozenset())
    idle = [kind for kind in THREADS if kind in threads.ids and kind not in used_kinds]
    tests = [Condition(lin.variable(threads.variables[kind]), equal=True) for kind in idle]
    threads.in_stage = True
    emit_under(context, tests, emit)
    threads.in_stage = False


def emit_bound(context: Context, threads: BlockThreads, loop: Loop, emit: Callable[[], None]) -> None:
    """Bind a loop's variable to its hardware index, and emit its body by `emit`, under a test if the kernel has indices
    beyond the loop's extent. Requires that `threads` has an index of the loop's kind."""
    scopes, kind = context.scopes, loop.kind
    scopes.bound[loop.number], scopes.home[loop.number] = threads.ids[kind], 0
    tests = []
    if loop.extent < threads.extents[kind]:
        tests.append(Condition(lin.constant(loop.extent - 1) - lin.variable(threads.variables[kind])))
    emit_under(context, tests, emit)
    del scopes.bound[loop.number]


def emit_arrival(context: Context, arrival: Arrival) -> SSAValue:
    """Emit the arrival of a block at the counter of its iteration of the loops around; return whether it is the
    last."""
    threads = context.threads
    assert threads is not None and threads.counters is not None
    parts = {loop.kind for loop in arrival.parts}
    number = lin.constant(0)
    for kind in BLOCKS:
        if kind in threads.ids and kind not in parts:
            number = number.scaled(threads.extents[kind]) + lin.variable(threads.variables[kind])
    last = context.scopes.add(ArriveOp(threads.counters, context.scopes.index(number), arrival.count))
    last.name_hint = "last"
    return last
