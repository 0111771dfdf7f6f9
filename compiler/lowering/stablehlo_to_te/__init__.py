"""StableHLO -> te: functions that JAX prints as te functions, op by op through te's operators.

function.py      functions: their ops in order, calls inlined, results of the stated type
call.py          `HloCall`, the argument of a handler: an op, its operands, its attributes
known.py         values that are known before a run: constants, and what is computed of them
table.py         the table of handlers
operators/       the handlers, by family
scalars.py       scalar functions, also of regions
windows.py       indices of windows with strides, dilation and padding
detection.py     which functions are at this level
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.lowering.stablehlo_to_te.detection import has_stablehlo


@dataclass(frozen=True)
class ConvertStablehloToTePass(ModulePass):
    """Convert the public functions of a module of StableHLO to te functions.

        %0 = stablehlo.dot_general %A, %B, contracting_dims = [1] x [0] : (...) -> tensor<4x2xf32>
      ->
        %0 = te.compute "dot_general" [i0 = 4, i1 = 2, reduce k0 = 8] combine [add] (...) { ... }

    Private functions are inlined where they are called, loops of a known number of iterations unrolled. Raises
    LoweringError at an op without a te form.
    """

    name = "convert-stablehlo-to-te"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from compiler.lowering.stablehlo_to_te.function import convert_module  # loads te.nn

        if has_stablehlo(op):
            convert_module(op)
