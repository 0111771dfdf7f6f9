"""loop -> gpu: nests of bound loops become kernels, which a host function launches.

kernels.py   the kernel of each nest: its grid and block, its buffers

loop_to_low emits the code inside kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from compiler.dialects.functions import functions
from compiler.dialects.levels import require
from compiler.lowering.loop_to_gpu.kernels import lower_function
from compiler.support.errors import LoweringError
from compiler.types.policies import policy_named


@dataclass(frozen=True)
class LoopToGpuPass(ModulePass):
    """Lower loop functions to kernels in a gpu.module each, and host functions that launch them.

    Each nest at the top of a function is a kernel; block loops are outermost in it, thread loops further inside, under
    loops that all threads run alike. Barriers are inserted where the dependences between threads need them.

    `policy` is strict, contract or fast: the fastmath flags of floating-point operations.
    """

    name = "loop-to-gpu"

    policy: str = "contract"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        policy = policy_named(self.policy, LoweringError)
        require(op, "loop", self.name)
        for function in functions(op):
            kernels = lower_function(function, policy)
            op.body.block.insert_op_after(kernels, function)
        op.attributes["gpu.container_module"] = UnitAttr()
