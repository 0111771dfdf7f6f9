"""te -> linalg: te functions as programs on tensors for mlir-opt.

function.py  functions, constants
computes.py  computes and gathers: one linalg.generic each
bodies.py    scalar bodies, with reads under conditions and at data-dependent indices
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.dialects.functions import functions, has_tensors
from compiler.dialects.levels import require


@dataclass(frozen=True)
class ConvertTeToLinalgPass(ModulePass):
    """Convert te functions to linalg on tensors, which mlir-opt accepts.

        %C = te.compute "C" [m = 4, n = 2, reduce k = 8] combine [add] (%a = %A[m, k] ..., %b = %B[k, n] ...) { ... }
      ->
        %0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x2xf32>) -> tensor<4x2xf32>
        %C = linalg.generic {indexing_maps = [...], iterator_types = ["parallel", "parallel", "reduction"]} ... { ... }

    A read under a condition is a tensor.extract and a select in the body. Unsigned element types become signless.
    Where te defines more than MLIR, the program is undefined: division of integers by 0, shifts by the width or more.
    Raises LoweringError for a module that is not at the te level.
    """

    name = "convert-te-to-linalg"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from compiler.lowering.te_to_linalg.function import convert_function

        require(op, "te", self.name)
        for function in functions(op):
            if has_tensors(function):
                convert_function(function)
