"""Inside a kernel: loops that are hardware indices, buffers on the chip, and the stages between which threads wait.

A stage is run by threads that differ; those that its loops do not name take no part, as when a loop has fewer
iterations than there are threads, or a stage has no loop along a dimension of the block.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.dialects.gpu import BarrierOp
from xdsl.ir import Operation

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.barriers import ASYNC, THREADS, UNIFORM
from compiler.dialects import loop
from compiler.dialects.upstream.nvgpu import GroupOp, WaitOp
from compiler.errors import LoweringError
from compiler.lowering.loop_to_low.accesses import under
from compiler.lowering.loop_to_low.context import Context, Threads
from compiler.lowering.loop_to_low.warp import fragment_of
from compiler.scopes import SCOPES

BARRIER = "barrier"
"""The attribute of a node before which all threads of a block wait for each other."""


def emit_on_chip(context: Context, threads: Threads, op: loop.AllocOp, type: MemRefType) -> None:
    """A buffer that a block shares, or of which each thread has its own."""
    is_fragment = op.scope.data == "fragment"
    space = SCOPES[op.scope.data]
    if space is None:
        raise LoweringError(
            f"buffer '{op.label.data}' of scope {op.scope.data} lives inside a kernel, where it is shared or local"
        )
    part = threads.parts.get(op.buffer)
    own = MemRefType(type.element_type, type.get_shape() if part is None else part.shape)
    if is_fragment:
        own = fragment_of(op, own.get_shape())
    buffer = context.scopes.add(
        memref.AllocaOp.get(own.element_type, shape=own.get_shape(), memory_space=IntegerAttr(space, i64))
    )
    buffer.name_hint = op.buffer.name_hint
    context.buffers[op.buffer] = buffer


def emit_stage(context: Context, threads: Threads, op: loop.ForOp | loop.Placed, emit: Callable[[], None]) -> None:
    """A node of a kernel: its barrier, then, where it is a stage, the threads that run it."""
    if BARRIER in op.attributes:
        if threads.copies_wait:
            context.scopes.run(WaitOp(context.scopes.add(GroupOp())))
        context.scopes.run(BarrierOp())
    if threads.in_stage or (isinstance(op, loop.ForOp) and op.loop_kind in UNIFORM):
        emit()
        return
    named = {inner.loop_kind for inner in op.walk() if isinstance(inner, loop.ForOp)}
    if "tensorized" in named:  # by a warp, along x
        named.add(THREADS[0])
    idle = [kind for kind in THREADS if kind in threads.ids and kind not in named]
    tests = [Condition(lin.variable(threads.variables[kind]), equal=True) for kind in idle]
    threads.in_stage = True
    under(context, tests, emit)
    threads.in_stage = False


def has_copies(op: Operation) -> bool:
    """Whether a loop in an op asks for copies that nobody waits for."""
    return any(isinstance(inner, loop.ForOp) and ASYNC in inner.attributes for inner in op.walk())


def emit_bound(context: Context, threads: Threads, op: loop.ForOp, emit: Callable[[], None]) -> None:
    """A loop whose variable is a hardware index, for those indices that it has."""
    scopes, variable, kind = context.scopes, context.variables[op.iv], op.loop_kind
    scopes.bound[variable], scopes.home[variable] = threads.ids[kind], 0
    tests = []
    if op.size < threads.extents[kind]:
        tests.append(Condition(lin.constant(op.size - 1) - lin.variable(threads.variables[kind])))
    under(context, tests, emit)
    del scopes.bound[variable]
