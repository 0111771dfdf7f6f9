"""check-combiners: test the combiner regions of reductions with several results, such as argmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.analysis.combiners import check_combiners


@dataclass(frozen=True)
class CheckCombinersPass(ModulePass):
    """Test the combiner region of each reduction with several results, such as argmax.

    It must be commutative and associative, and its identity neutral. The region runs on values that the op's body
    yields for random reads, and on combinations of these; floats are compared up to rounding. Changes nothing.

    Raises CombinerError, a VerifyException and a StrataError, at the op, with values for which it fails.
    """

    name = "check-combiners"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_combiners(op)
