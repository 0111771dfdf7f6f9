"""The loop dialect: buffers, explicit loops with kinds, and blocks.

`loop.for` is a named loop, `loop.alloc` a buffer whose lifetime begins there, `loop.constant` one whose elements the
program states, `loop.block` one structured statement, `loop.gather` a table read at an index that buffers hold.
Schedules act on this level; every analysis reads attributes instead of guessing from loads and stores.
"""

from xdsl.dialects.arith import ArithConstantMaterializationInterface
from xdsl.ir import Dialect

from compiler.dialects.loop.block import BlockOp, IndexOp, YieldOp
from compiler.dialects.loop.gather import GatherOp
from compiler.dialects.loop.loops import BOUND, KINDS, AllocOp, ConstantOp, ForOp, enclosing_loops, loop_of
from compiler.dialects.loop.placement import Header, Placed

LOOP = Dialect(
    "loop",
    [ForOp, AllocOp, ConstantOp, BlockOp, GatherOp, IndexOp, YieldOp],
    [],
    [ArithConstantMaterializationInterface()],
)

__all__ = [
    "BOUND",
    "KINDS",
    "LOOP",
    "AllocOp",
    "BlockOp",
    "ConstantOp",
    "ForOp",
    "GatherOp",
    "Header",
    "IndexOp",
    "Placed",
    "YieldOp",
    "enclosing_loops",
    "loop_of",
]
