"""loop -> low: loops become scf.for, blocks become loads, arithmetic and stores.

The function is read once, to its program; ops are emitted from that.

function.py    the program that is lowered, and the signature of the low-level function
context.py     the state of lowering a function
scopes.py      insertion points: index arithmetic is simplified, shared, and hoisted to the loop that it depends on
nests.py       loops and their kinds, guards
bounds.py      the bounds of a loop, narrowed by guards
literals.py    constants: buffers of the module, numbers where the index is constant
widened.py     temporaries that are enlarged, so that partial tiles read inside them
cuts.py        splitting of a loop of vectors into full iterations and a masked end
lanes.py       the elements of a block's accesses, their strides and masks
reads.py       the reads of a block: scalar, vector, masked, lane by lane
accesses.py    the writes of a block
blocks.py      one block: reads, body, combination, writes
gathers.py     one gather: index values, the element or the default, the write
selections.py  folding of selections with constant or known conditions
versions.py    versions of a stage of a kernel without selections that nothing needs
scalars.py     the body's operations on scalars or vectors, with the floating-point policy's flags
prefetches.py  prefetches of the cache lines of a later iteration
streams.py     buffers with non-temporal stores
operands.py    the operands of a tensorized nest
tensor.py      tensorized nests: one op of an intrinsic each
private.py     the part of a local buffer that a thread of a kernel owns
fragments.py   elements of MMA tiles that the threads of a warp compute with
threads.py     inside a kernel: hardware indices, buffers on the chip, stages
warp.py        tensorized nests that a warp runs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.dialects.calls import is_main
from compiler.dialects.functions import functions, outputs
from compiler.dialects.levels import require
from compiler.graph.main import read_buffers, write_low
from compiler.lowering.loop_to_low.nests import lower_function
from compiler.support.errors import LoweringError
from compiler.types.policies import policy_named


@dataclass(frozen=True)
class LoopToLowPass(ModulePass):
    """Lower loop nests to func, scf, memref, vector, arith and math. `policy` is strict, contract or fast: the fastmath
    flags of floating-point operations. Main functions are lowered too: their buffers become allocations around calls.
    Raises LoweringError for an unknown policy, for a function that is not at the loop level, and for one that has no
    low form."""

    name = "loop-to-low"
    anchor: ClassVar = "func.func"

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
