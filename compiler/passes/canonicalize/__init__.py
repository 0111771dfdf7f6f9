"""canonicalize: constants, identities and what nothing needs, at each level.

constants.py  scalar ops on constants
scalars.py    identities of arith, folders of ops, xDSL's canonicalisations
reads.py      reads of computes and blocks
tensors.py    te: copies, unused results, computes of constants
nests.py      loop: loops of one iteration, guards, dead buffers
low.py        low: affine maps of constants, broadcasts, buffers that nothing reads
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker, RewritePattern
from xdsl.transforms.dead_code_elimination import region_dce

from compiler.dialects import loop
from compiler.dialects.calls import is_main
from compiler.dialects.functions import functions
from compiler.dialects.upstream.walk import ops_in
from compiler.passes.canonicalize import low, tensors
from compiler.passes.canonicalize.constants import EvaluateConstants
from compiler.passes.canonicalize.nests import simplified
from compiler.passes.canonicalize.reads import SimplifyReads
from compiler.passes.canonicalize.scalars import (
    ConstantsLast,
    FoldByInterface,
    FoldIdentities,
    JoinConstants,
    UpstreamPatterns,
)
from compiler.program.read import read
from compiler.program.write import update, write


@dataclass(frozen=True)
class CanonicalizePass(ModulePass):
    """Evaluate constants, apply identities, and remove what nothing needs, at the level of each function.

        %0 = arith.addi %c3, %c4 : index;  %1 = arith.muli %i, %c1 : index;  %2 = arith.select %true, %a, %b : f32
      ->
        %0 = arith.constant 7 : index;     %i;                               %a

    te: conditions and maps by the ranges of axes, equal and unused reads, copies, small computes on constants. loop:
    also guards, loops of one iteration, buffers that nothing reads. low: also loops of at most one iteration, constant
    conditions, affine maps. Results are equal bit for bit, but for the sign and payload of NaN. Scripts stay as they
    are. No build runs this pass: it changes the loops that a schedule has made.
    """

    name = "canonicalize"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            _simplify_nests(function)
        patterns: list[RewritePattern] = [
            EvaluateConstants(),
            FoldByInterface(ctx),
            FoldIdentities(),
            ConstantsLast(),
            JoinConstants(),
            SimplifyReads(),
            *(kind() for kind in (*tensors.PATTERNS, *low.PATTERNS)),
            UpstreamPatterns(),
        ]
        applier = GreedyRewritePatternApplier(patterns)
        PatternRewriteWalker(applier, post_walk_func=region_dce).rewrite_module(op)
        for function in functions(op):
            _simplify_nests(function)


def _simplify_nests(function: FuncOp) -> None:
    """Simplify the loops of a loop function; leave others alone."""
    if len(function.body.blocks) != 1 or is_main(function):
        return
    if not all(isinstance(type, MemRefType) for type in function.function_type.inputs):
        return
    if not any(isinstance(op, loop.BlockOp | loop.GatherOp | loop.ForOp | loop.AllocOp) for op in ops_in(function)):
        return
    program = simplified(read(function))  # whose forms are simplified by the ranges of loops
    if not function.body.is_structurally_equivalent(write(program).body):
        update(function, program)
