"""loop -> low: loops become scf.for, blocks become loads, arithmetic and stores.

scopes.py    where operations go: index arithmetic, simplified, shared, and hoisted to the loop that it depends on
nests.py     loops and their kinds, guards
cuts.py      where a loop of vectors is cut into whole iterations and a masked end
blocks.py    one block: reads, body, combination, writes; lanes where a loop is vectorized
streams.py   which buffers a loop writes past the caches
tensor.py    tensorized nests: one op of an intrinsic each
scalars.py   the body's operations on scalars or vectors, with the floating-point policy's flags
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.dialects.functions import functions
from compiler.dialects.levels import require
from compiler.errors import LoweringError
from compiler.lowering.loop_to_low.nests import lower_function
from compiler.lowering.loop_to_low.tensor import run_whole
from compiler.passes.decompose_reductions import DecomposeReductionsPass
from compiler.policies import POLICIES


@dataclass(frozen=True)
class LoopToLowPass(ModulePass):
    """Lower loop nests to func, scf, memref, vector, arith and math.

    `policy` is strict, contract or fast: which liberties floating-point operations carry as fastmath flags.
    """

    name = "loop-to-low"

    policy: str = "contract"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.policy not in POLICIES:
            raise LoweringError(f"unknown policy '{self.policy}' (there are {', '.join(POLICIES)})")
        require(op, "loop", self.name)
        DecomposeReductionsPass().apply(ctx, op)
        for function in functions(op):
            run_whole(function)
        for function in functions(op):
            lower_function(function, POLICIES[self.policy])
