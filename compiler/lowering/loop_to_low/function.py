"""Functions: reading a loop function, and the low-level function that replaces it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from compiler.analysis.tensorized import run_whole
from compiler.passes.decompose_reductions import decomposed
from compiler.program.read import read
from compiler.program.tree import Buffer, Program
from compiler.program.write import hint, memref_type


def prepared(function: FuncOp) -> Program:
    """The program of a loop function as it is lowered: inits written out, the blocks of tensorized nests run whole."""
    return run_whole(decomposed(read(function)))


def entry(buffers: Sequence[Buffer]) -> Block:
    """A function's first block, with buffers as arguments."""
    block = Block(arg_types=[low_type(buffer) for buffer in buffers])
    for buffer, argument in zip(buffers, block.args, strict=True):
        argument.name_hint = hint(buffer.name)
    return block


def arguments(buffers: Sequence[Buffer], block: Block) -> dict[str, SSAValue]:
    """The arguments of a first block by the names of the buffers that they are."""
    return dict(zip((buffer.name for buffer in buffers), block.args, strict=True))


def low_type(buffer: Buffer) -> MemRefType:
    """A buffer's type at the low level, where the ops say the sign."""
    return memref_type(buffer.scalar, buffer.shape)


def allocated(buffer: Buffer, type: MemRefType) -> memref.AllocOp:
    """The allocation of a buffer in memory."""
    alloc = memref.AllocOp([], [], type)
    alloc.memref.name_hint = hint(buffer.name)
    return alloc
