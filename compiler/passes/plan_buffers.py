"""Plan temporaries: buffers whose lifetimes do not meet share a slot; slots never overlap."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i8,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from compiler.dialects.functions import functions


@dataclass(frozen=True)
class PlanBuffersPass(ModulePass):
    """Replace the temporaries of each function by views of as few slots as their lifetimes allow.

        %T = memref.alloc() : memref<4x4xf32>
      ->
        %slot = memref.alloc() {alignment = 64 : i64} : memref<64xi8>
        %T = memref.view %slot[%c0][] : memref<64xi8> to memref<4x4xf32>

    A lifetime runs from a buffer's first to its last user, in ops of the function's top level. Since slots do not
    overlap, each may be declared noalias; buffers in one slot are never used together.
    """

    name = "plan-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            _plan(function)


@dataclass
class _Slot:
    size: int = 0
    free_from: int = 0
    buffers: list[memref.AllocOp] = field(default_factory=list)


def _plan(function: FuncOp) -> None:
    top = function.body.block
    order = {op: position for position, op in enumerate(top.ops)}
    slots: list[_Slot] = []
    allocs = [op for op in function.walk() if isinstance(op, memref.AllocOp)]
    lives = {op: _lifetime(op, order) for op in allocs}
    for alloc in sorted(allocs, key=lambda a: lives[a]):
        first, last = lives[alloc]
        size = _bytes(alloc.memref.type)
        open = [slot for slot in slots if slot.free_from <= first]
        slot = min(open, key=lambda s: abs(s.size - size)) if open else _Slot()
        if not open:
            slots.append(slot)
        slot.size, slot.free_from = max(slot.size, size), last + 1
        slot.buffers.append(alloc)
    _build(function, slots)


def _lifetime(alloc: memref.AllocOp, order: dict[Operation, int]) -> tuple[int, int]:
    places = [order[_at_top(use.operation, order)] for use in alloc.memref.uses]
    return (min(places), max(places)) if places else (0, 0)


def _at_top(op: Operation, order: dict[Operation, int]) -> Operation:
    while op not in order:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _bytes(type: MemRefType) -> int:
    element = type.element_type
    width = element.size if isinstance(element, FixedBitwidthType) else 8
    return prod(type.get_shape()) * int(width)


def _build(function: FuncOp, slots: list[_Slot]) -> None:
    if not slots:
        return
    start = ConstantOp(IntegerAttr(0, IndexType()))
    planned: list[Operation] = [start]
    for slot in slots:
        whole = memref.AllocOp([], [], MemRefType(i8, [slot.size]), IntegerAttr(64, i64))
        whole.memref.name_hint = "slot"
        planned.append(whole)
        for old in slot.buffers:
            view = memref.ViewOp(whole, start, [], old.memref.type)
            planned.append(view)
            _replace(old, view.result)
    block = function.body.block
    first = block.first_op
    assert first is not None
    block.insert_ops_before(planned, first)


def _replace(old: memref.AllocOp, new: SSAValue) -> None:
    for user in [use.operation for use in old.memref.uses]:
        if isinstance(user, memref.DeallocOp):
            user.detach()
            user.erase()
    new.name_hint = old.memref.name_hint
    old.memref.replace_all_uses_with(new)
    old.detach()
    old.erase()
