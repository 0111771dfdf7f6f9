"""linalg -> te: programs on tensors of MLIR's linalg, tensor, arith and math as te functions.

function.py    functions, their ops in order
calls.py       calls, which are inlined
structured.py  linalg.generic and the named ops: one te.compute each
combiners.py   which combiner the body of a reduction applies
joint.py       reductions whose outputs depend on each other
bodies.py      scalar bodies
copies.py      copies of scalar bodies, with gathers
reads.py       reads of whole tensors in bodies
pointwise.py   arith and math on whole tensors, constants
tensors.py     the dialect tensor: shapes, elements, softmax
slices.py      slices and padding
packing.py     pack and unpack
inlined.py     computes made by te's own operators
detection.py   which functions are at this level
values.py      the state of a conversion, refusals
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.dialects.functions import functions
from compiler.lowering.linalg_to_te.calls import inline_calls
from compiler.lowering.linalg_to_te.detection import is_linalg


@dataclass(frozen=True)
class ConvertLinalgToTePass(ModulePass):
    """Convert functions of linalg on tensors of static shape to te functions.

        %C = linalg.matmul ins(%A, %B : ...) outs(%zero : tensor<4x2xf32>) -> tensor<4x2xf32>
      ->
        %C = te.compute "C" [m = 4, n = 2, reduce k = 8] combine [add] (%a = %A[m, k] ..., %b = %B[k, n] ...) { ... }

    A reduction's initial value is dropped if it is neutral, else combined with the result. Other functions stay. Raises
    LoweringError at an op without a te form.
    """

    name = "convert-linalg-to-te"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from compiler.lowering.linalg_to_te.function import convert_function  # loads te.nn

        if any(map(is_linalg, functions(op))):
            inline_calls(op)
        for function in functions(op):
            if is_linalg(function):
                convert_function(function)
