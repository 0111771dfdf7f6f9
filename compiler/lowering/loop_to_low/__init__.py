"""loop -> low: loops become scf.for, blocks become loads, arithmetic and stores.

The function is read once, to its program; ops are emitted from that.

function.py    how a loop function is read, and what replaces it
context.py     what is known while a function is lowered
scopes.py      where ops go: index arithmetic, simplified, shared, and hoisted to the loop that it depends on
nests.py       loops and their kinds, guards
bounds.py      the bounds of a loop, narrowed by guards
literals.py    constants: buffers of the module, numbers where the index is known
widened.py     temporaries that grow, so that a tile that is not whole reads what is there
cuts.py        where a loop of vectors is cut into whole iterations and a masked end
lanes.py       where the accesses of a block are, and in which lanes: elements, strides, masks
reads.py       the reads of a block: plain, masked, lane by lane
accesses.py    the same with the writes
blocks.py      one block: reads, body, combination, writes; lanes where a loop is vectorized
gathers.py     one gather: index values, the element or the value outside, the write
selections.py  selections that unrolled loops decide
scalars.py     the body's operations on scalars or vectors, with the floating-point policy's flags
prefetches.py  the cache lines that a later iteration touches
streams.py     which buffers a loop writes past the caches
operands.py    where the operands of a tensorized nest begin
tensor.py      tensorized nests: one op of an intrinsic each
private.py     local buffers of which each thread of a kernel keeps a part
threads.py     inside a kernel: hardware indices, buffers on the chip, stages
warp.py        tensorized nests that the threads of a warp run together
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.dialects.functions import functions, is_main, outputs
from compiler.dialects.levels import require
from compiler.graph.main import read_buffers, write_low
from compiler.lowering.loop_to_low.nests import lower_function
from compiler.support.errors import LoweringError
from compiler.types.policies import policy_named


@dataclass(frozen=True)
class LoopToLowPass(ModulePass):
    """Lower loop nests to func, scf, memref, vector, arith and math.

    `policy` is strict, contract or fast: which liberties floating-point operations carry as fastmath flags.
    """

    name = "loop-to-low"

    policy: str = "contract"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        policy = policy_named(self.policy, LoweringError)
        require(op, "loop", self.name)
        output_counts = {function.sym_name.data: outputs(function) for function in functions(op)}
        for function in functions(op):
            if is_main(function):
                write_low(function, read_buffers(function, output_counts))
            else:
                lower_function(function, policy)
