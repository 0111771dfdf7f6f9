"""te -> loop: one loop nest a compute, axes in their order, a buffer for each tensor.

nests.py   the loop program of a function without calls
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.dialects.calls import is_main
from compiler.dialects.functions import functions, has_tensors
from compiler.dialects.levels import require
from compiler.graph.main import read_tensors, write_loop
from compiler.lowering.te_to_loop.nests import lowered
from compiler.program.write import update


@dataclass(frozen=True)
class TeToLoopPass(ModulePass):
    """Lower tensor expressions to loop nests, one a compute or gather.

        %C = te.compute "C" [m = 4, reduce k = 8] combine [add] (%a = %A[m, k] ...) { ... }
      ->
        loop.for "m" { loop.for "k" { loop.block "C" [...] (%a = %A[m, k] ...) -> (%C[m]) { ... } } }

    In a function that calls others each tensor between calls becomes a buffer argument of the calls; a value that is
    returned and that no call computes is copied. Raises LoweringError for an op that is not of the te level.
    """

    name = "te-to-loop"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require(op, "te", self.name)
        for function in functions(op):
            if not has_tensors(function):
                continue
            if is_main(function):
                write_loop(function, read_tensors(function))
            else:
                update(function, lowered(function))
