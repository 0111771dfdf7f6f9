"""The program of a loop function that is lowered, and the signature of the low-level function."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from compiler.analysis.whole_nests import run_whole
from compiler.passes.decompose_reductions import decompose_reductions
from compiler.program.read import read
from compiler.program.tree import Buffer, Program
from compiler.program.write import hint, memref_type


def prepare_program(function: FuncOp) -> Program:
    """Read a loop function for lowering: inits are separate blocks, and no guard depends on the loops of a tensorized
    nest. Raises LoweringError for a tensorized nest that is not perfect or does not fit its intrinsic."""
    return run_whole(decompose_reductions(read(function)))


def entry_block(buffers: Sequence[Buffer]) -> Block:
    """Create the entry block of a function, with buffers as arguments."""
    block = Block(arg_types=[low_type(buffer) for buffer in buffers])
    for buffer, argument in zip(buffers, block.args, strict=True):
        argument.name_hint = hint(buffer.name)
    return block


def arguments_by_name(buffers: Sequence[Buffer], block: Block) -> dict[str, SSAValue]:
    """Map each buffer's name to its argument of an entry block."""
    return dict(zip((buffer.name for buffer in buffers), block.args, strict=True))


def low_type(buffer: Buffer) -> MemRefType:
    """Return a buffer's type at the low level, where types are signless."""
    return memref_type(buffer.scalar, buffer.shape)


def allocation(buffer: Buffer, type: MemRefType) -> memref.AllocOp:
    """Create the allocation of a buffer as a memref of `type`, with a name hint; it is not inserted."""
    alloc = memref.AllocOp([], [], type)
    alloc.memref.name_hint = hint(buffer.name)
    return alloc
