"""te-alternatives: rewrite te functions by laws that are choices."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.alternatives import PROGRAM_LAWS
from compiler.alternatives.explained import refusal
from compiler.alternatives.law import Conditions
from compiler.alternatives.program import rewrite_graph
from compiler.dialects.functions import functions
from compiler.graph.canonical import canonicalize
from compiler.graph.read import read
from compiler.graph.tree import Graph
from compiler.graph.write import write
from compiler.support import spans
from compiler.support.actions import is_watched, remark
from compiler.support.errors import InputError
from compiler.support.spans import Span
from compiler.types.machines import host
from compiler.types.policies import policy_named


@dataclass(frozen=True)
class TeAlternativesPass(ModulePass):
    """Canonicalise te functions, and rewrite each by laws that are choices, as long as one has an estimated gain.

        %S = te.compute "S" [i = 64, j = 8, reduce k = 32] combine [add] (%a = %A[i, j, k] ...)
        %T = te.compute "T" [i = 64, reduce j = 8] combine [add] (%s = %S[i, j] ...) { te.yield %s }
      ->
        %sum0 = te.compute "sum0" [i0 = 64, reduce r0 = 32, reduce r1 = 8] combine [add] (%a0_1 = %a0[i0, r1, r0] ...)

    The laws are `compiler.alternatives.PROGRAM_LAWS`; of each the form with the largest estimated gain on this machine
    is used. `policy` is strict, contract or fast; `error` is the accepted error, max|y - y64| / max|y|, by default that
    of the written form.

    Raises InputError for a function that is not at the te level, and for another policy.
    """

    name = "te-alternatives"
    policy: str = "contract"
    error: float | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        policy_named(self.policy, InputError)
        conditions = Conditions(host(), self.policy, error=self.error)
        graphs = [read(function) for function in functions(canonicalize(op))]
        if is_watched():
            for written, graph in zip(functions(op), graphs, strict=False):
                _remark(graph, conditions, spans.of_op(written))
        rewritten = [write(rewrite_graph(graph, conditions, PROGRAM_LAWS).graph) for graph in graphs]
        for function in list(op.ops):
            op.body.block.erase_op(function)
        op.body.block.add_ops(rewritten)


def _remark(graph: Graph, conditions: Conditions, span: Span | None) -> None:
    """Report for each law where it is applied, or why not; `span`, if known, is the place of the function."""
    applied = rewrite_graph(graph, conditions, PROGRAM_LAWS).applied
    for form in applied:
        remark("passed", TeAlternativesPass.name, f"{form.law}: {form.where}, for a gain of {form.gain:.3g}", span)
    for law in PROGRAM_LAWS:
        if all(form.law != law.name for form in applied):
            remark("missed", TeAlternativesPass.name, f"{law.name}: {refusal(law, graph, conditions)}", span)
