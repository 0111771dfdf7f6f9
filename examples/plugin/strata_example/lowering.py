"""The pass lower-example."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern, op_type_rewrite_pattern

from strata_example.dialect import DoubleOp


class AddToItself(RewritePattern):
    """%y = example.double %x  ->  %y = arith.addf %x, %x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DoubleOp, rewriter: PatternRewriter) -> None:
        """Rewrite one op."""
        rewriter.replace_matched_op(arith.AddfOp(op.number, op.number))


@dataclass(frozen=True)
class LowerExamplePass(ModulePass):
    """Lower the ops of the dialect example to arith."""

    name = "lower-example"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(AddToItself()).rewrite_module(op)
