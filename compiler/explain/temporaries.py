"""The temporaries of a kernel: the arena, the buffers in it, and those on the stack."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block

from compiler.explain.builds import Builds
from compiler.lowering.low_to_llvm.signature import outlined_in, slot_offsets, slots, workspace
from compiler.lowering.low_to_llvm.types import buffer_bytes


@dataclass(frozen=True)
class Temporary:
    """A buffer between blocks. type: its shape and dtype, such as 4x8xf32. bytes: its size. offset: its byte offset in
    the arena; None for a buffer on the stack."""

    name: str
    type: str
    bytes: int
    offset: int | None


@dataclass(frozen=True)
class Temporaries:
    """The arena's size in bytes for one thread, and the buffers; lifetimes of buffers at one offset are disjoint."""

    arena: int
    buffers: tuple[Temporary, ...]


def temporaries(b: Builds) -> Temporaries:
    """Return the temporaries of the kernel's function: those in the arena, then those on the stack."""
    block = b.function.body.block
    shared = slot_offsets(block)[-1]
    buffers = _in_slots(block, 0)
    for loop in outlined_in(b.function).loops:
        buffers += _in_slots(loop.body.block, shared)
    stack = [op.memref for op in b.function.walk() if isinstance(op, memref.AllocaOp)]
    buffers += [_temporary(v.name_hint, v.type, None) for v in stack if isinstance(v.type, MemRefType)]
    return Temporaries(workspace(b.function).size(1), tuple(buffers))


def _in_slots(block: Block, start: int) -> list[Temporary]:
    """Return the buffers in a block's slots with their arena offsets; the first slot is at byte `start`. The buffers of
    a slot are its views; a slot without views is one buffer."""
    buffers: list[Temporary] = []
    for slot, offset in zip(slots(block), slot_offsets(block), strict=False):
        views = [use.operation for use in slot.memref.uses if isinstance(use.operation, memref.ViewOp)]
        values = [view.result for view in views] or [slot.memref]
        buffers += [_temporary(v.name_hint, v.type, start + offset) for v in values if isinstance(v.type, MemRefType)]
    return buffers


def _temporary(name: str | None, type: MemRefType, offset: int | None) -> Temporary:
    shape = "x".join(map(str, (*type.get_shape(), type.element_type)))
    return Temporary(name or "a buffer", shape, buffer_bytes(type), offset)
