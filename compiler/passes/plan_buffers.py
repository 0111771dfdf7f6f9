"""plan-buffers: temporaries with disjoint lifetimes share a slot.

An allocation in a parallel loop becomes a view of a slot in the loop's body: each thread has a copy of the slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar, TypeAlias

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, NoneAttr, i8, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from compiler.analysis.arena import Lifetime, plan
from compiler.dialects.calls import is_main
from compiler.dialects.functions import SLOT_ALIGNMENT, functions
from compiler.dialects.levels import require
from compiler.dialects.upstream.walk import ops_in
from compiler.support.errors import LoweringError
from compiler.types.elements import element_bytes


@dataclass(frozen=True)
class PlanBuffersPass(ModulePass):
    """Replace the temporaries of each function by views of as few slots as their lifetimes allow.

        %T = memref.alloc() : memref<4x4xf32>
      ->
        %slot = memref.alloc() {alignment = 64 : i64} : memref<64xi8>
        %T = memref.view %slot[%c0][] : memref<64xi8> to memref<4x4xf32>

    A lifetime runs from the first to the last user of a buffer or its views, in ops of the function's top level. Slots
    do not overlap, so that each may be declared noalias; buffers in one slot have disjoint lifetimes. In a function
    that calls others all buffers are views of one arena, at offsets without overlap of live buffers (by
    `compiler.analysis.arena`). Allocs inside serial loops are hoisted to the function's top level, or to the body of
    the scf.parallel around them, where each thread has a slot; unused ones and deallocs are erased. Raises
    LoweringError for buffers outside the default memory space, that are not static and row-major, or are aligned to
    more than 64 bytes.
    """

    name = "plan-buffers"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require(op, "low", self.name)
        for function in functions(op):
            if function.body.blocks:
                _plan(function)


@dataclass(frozen=True)
class _PlannedBuffer:
    """A temporary: its size in bytes, and the positions of its first and last user in the planning block."""

    alloc: memref.AllocOp
    size: int
    first: int
    last: int


@dataclass
class _Slot:
    """Memory that buffers share one after the other; `last` is the position of the last user in the block."""

    size: int = 0
    last: int = -1
    buffers: list[_PlannedBuffer] = field(default_factory=list)


def _plan(function: FuncOp) -> None:
    allocs: dict[Block, list[memref.AllocOp]] = {}
    for op in ops_in(function):
        if isinstance(op, memref.AllocOp) and not _is_slot(op, _planning_block(op)):
            allocs.setdefault(_planning_block(op), []).append(op)
    for home, home_allocs in allocs.items():
        _plan_block(home, home_allocs)


def _planning_block(op: Operation) -> Block:
    """Return the block whose slots contain an alloc: the body of the innermost scf.parallel around it, or the
    function's."""
    parent = op.parent_op()
    while not isinstance(parent, FuncOp | scf.ParallelOp):
        assert parent is not None
        parent = parent.parent_op()
    return parent.body.block


def _plan_block(top: Block, allocs: list[memref.AllocOp]) -> None:
    for user in [user for alloc in allocs for user in _users(alloc.memref)]:
        if isinstance(user, memref.DeallocOp):
            Rewriter.erase_op(user)
    order = {op: position for position, op in enumerate(top.ops)}
    buffers = [buffer for alloc in allocs if (buffer := _buffer(alloc, top, order)) is not None]
    function = top.parent_op()
    if isinstance(function, FuncOp) and is_main(function):
        _build_slots(top, _arena(buffers))
    else:
        _build_slots(top, [(slot.size, [(buffer, 0) for buffer in slot.buffers]) for slot in _assign_slots(buffers)])
    for alloc in allocs:
        Rewriter.erase_op(alloc)


def _is_slot(alloc: memref.AllocOp, top: Block) -> bool:
    """Return whether an alloc is a slot from an earlier run of the pass."""
    users = [use.operation for use in alloc.memref.uses]
    has_slot_type = alloc.alignment == IntegerAttr(SLOT_ALIGNMENT, i64) and alloc.memref.type.element_type == i8
    return has_slot_type and alloc.parent is top and all(isinstance(user, memref.ViewOp) for user in users)


def _buffer(alloc: memref.AllocOp, top: Block, order: dict[Operation, int]) -> _PlannedBuffer | None:
    """Return the buffer of an alloc with its lifetime, to the end of `top` if it escapes; None if it is unused. order:
    the position of each op of `top`."""
    size = _bytes(alloc)
    users = list(_users(alloc.memref))
    user_positions = [order[at_top] for user in users if (at_top := top.find_ancestor_op_in_block(user)) is not None]
    if not user_positions:
        return None
    last = len(order) if any(map(_escapes, users)) else max(user_positions)
    return _PlannedBuffer(alloc, size, min(user_positions), last)


def _escapes(user: Operation) -> bool:
    """Return whether a user passes a buffer on in an untracked way: a yield, or an op that returns a buffer and is no
    view."""
    returns_buffer = any(isinstance(value.type, MemRefType) for value in user.results)
    return isinstance(user, scf.YieldOp) or (returns_buffer and not _is_view(user))


def _is_view(op: Operation) -> bool:
    return len(op.results) == 1 and not op.regions and isinstance(op.results[0].type, MemRefType)


def _users(buffer: SSAValue) -> Iterator[Operation]:
    """Yield the ops that use a buffer or a view of it."""
    for use in buffer.uses:
        yield use.operation
        if _is_view(use.operation):
            yield from _users(use.operation.results[0])


def _bytes(alloc: memref.AllocOp) -> int:
    type, stated = alloc.memref.type, alloc.alignment
    if not isinstance(type.memory_space, NoneAttr):
        raise LoweringError(f"a buffer of {type} cannot be planned: slots are in the default memory space")
    if not (type.has_static_shape() and isinstance(type.layout, NoneAttr)):
        raise LoweringError(f"a buffer of {type} cannot be planned: it is not static and in row-major order")
    if isinstance(stated, IntegerAttr) and stated.value.data > SLOT_ALIGNMENT:
        raise LoweringError(f"a buffer aligned to {stated.value.data} bytes cannot be planned: slots have 64")
    return prod(type.get_shape()) * element_bytes(type.element_type)


def _assign_slots(buffers: list[_PlannedBuffer]) -> list[_Slot]:
    """Assign each buffer, in the order of first use, to the free slot of the nearest size, or to a new one."""
    slots: list[_Slot] = []
    for buffer in sorted(buffers, key=lambda b: (b.first, b.last)):
        free = [slot for slot in slots if slot.last < buffer.first]
        slot = min(free, key=lambda s: abs(s.size - buffer.size), default=None)
        if slot is None:
            slot = _Slot()
            slots.append(slot)
        slot.size, slot.last = max(slot.size, buffer.size), buffer.last
        slot.buffers.append(buffer)
    return slots


_Slices: TypeAlias = list[tuple[_PlannedBuffer, int]]
"""The buffers in a slot, with their offsets in bytes."""


def _arena(buffers: list[_PlannedBuffer]) -> list[tuple[int, _Slices]]:
    """Return one slot with its size in bytes, and the offset of each buffer in it; no slot without buffers."""
    lifetimes = [Lifetime(buffer.size, buffer.first, buffer.last) for buffer in buffers]
    arena = plan(lifetimes, SLOT_ALIGNMENT)
    return [(arena.size, list(zip(buffers, arena.offsets, strict=True)))] if buffers else []


def _build_slots(top: Block, slots: list[tuple[int, _Slices]]) -> None:
    """Insert slots at the start of a block, each a size in bytes with its buffers and their offsets, and replace the
    buffers by views of them."""
    if not slots:
        return
    insert = Builder(InsertPoint.at_start(top)).insert
    offset_constants = {0: insert(ConstantOp(IntegerAttr(0, IndexType())))}
    for size, buffers in slots:
        slot = insert(memref.AllocOp([], [], MemRefType(i8, [size]), IntegerAttr(SLOT_ALIGNMENT, i64)))
        slot.memref.name_hint = "slot"
        for buffer, offset in buffers:
            replaced = buffer.alloc.memref
            if offset not in offset_constants:
                offset_constants[offset] = insert(ConstantOp(IntegerAttr(offset, IndexType())))
            view = insert(memref.ViewOp(slot, offset_constants[offset], [], replaced.type))
            view.result.name_hint = replaced.name_hint
            replaced.replace_all_uses_with(view.result)
