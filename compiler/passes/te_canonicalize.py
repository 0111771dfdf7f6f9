"""te-canonicalize: equivalent te functions become equal texts."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.graph.canonical import canonicalize


@dataclass(frozen=True)
class TeCanonicalizePass(ModulePass):
    """Rewrite te functions by laws that preserve every result, then order and name computes by structure.

        %T = te.compute "T" [j = 8, i = 4] (%b = %B[i, j] ...) { te.yield %b }
        %C = te.compute "C" [i = 4, j = 8] (%a = %A[i, j] ..., %t = %T[j, i] ...) { arith.addf %a, %t }
      ->
        %map0 = te.compute "map0" [i0 = 4, i1 = 8] (%a1_1 = %a1[i0, i1] ..., %a0_1 = %a0[i0, i1] ...) { arith.addf }

    The laws are those of `compiler.graph.laws`: results are equal bit for bit, but for the payload of NaN and the order
    of reductions. The text does not depend on names, on the order of computes, commutative operands and reduce axes,
    and for private functions that are called on the order of arguments and results.

    Raises InputError for a function that is not at the te level.
    """

    name = "te-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        new = canonicalize(op)
        for function in list(op.ops):
            op.body.block.erase_op(function)
        op.body.block.add_ops([new.body.block.detach_op(function) for function in list(new.ops)])
