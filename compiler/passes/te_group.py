"""te-group: a te function becomes calls of its groups."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from compiler.dialects.functions import functions, has_tensors
from compiler.graph.grouping import decisions, group, is_group
from compiler.graph.read import read
from compiler.support import spans
from compiler.support.actions import is_watched, remark


@dataclass(frozen=True)
class TeGroupPass(ModulePass):
    """Cut each te function into groups: private functions with the attribute te.group, which it calls.

        func @f(%X, %W, %V) { %T = X * W;  %R = relu(%T);  %S = softmax(%R);  return %S }
      ->
        func @f(%X, %W, %V) { %R = call @group_0(%X, %W);  %S = call @group_1(%R);  return %S }
        func private @group_0(%X, %W) attributes {te.group} { %T = X * W;  %R = relu(%T);  return %R }
        func private @group_1(%R) attributes {te.group} { %S = softmax(%R);  return %S }

    A contraction is grouped with the elementwise computes before and after it; reductions of the same rows are one
    group, and so are attention and two products with short rows between them; elementwise computes are joined. A group
    has at most 64 computes and 512 scalar operations: a longer one is cut where the fewest bytes cross. Values that
    other groups read, or the function returns, are a group's results; values from outside are its arguments. Groups
    that are equal up to names are one function; they are numbered by their first calls.

    A function of one group does not change. A module with groups does not either: it is verified. Raises Refusal, a
    VerifyException, for groups that are public or have calls, and for functions that call functions other than groups,
    or have computes beside their calls.
    Elsewhere: Relay's FuseOps, XLA's fusion, oneDNN Graph's partitions.
    """

    name = "te-group"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if is_watched():
            for grouping in [f for f in functions(op) if not is_group(f) and has_tensors(f)]:
                _remark(grouping)
        grouped = group(op)
        if grouped is not op:
            for function in list(op.ops):
                op.body.block.erase_op(function)
            for function_ in list(grouped.ops):
                function_.detach()
                op.body.block.add_op(function_)


def _remark(function: FuncOp) -> None:
    """Report for each compute that may join groups which it joins, or that it is the last of its group."""
    span = spans.of_op(function)
    for decision in decisions(read(function)):
        compute, options = decision.choice.compute, decision.choice.options
        if decision.taken is None:
            remark("analysis", TeGroupPass.name, f"'{compute}' is the last compute of its group", span)
            continue
        joined = ", ".join(f"'{name}'" for name in options[decision.taken])
        bytes_crossing = decision.cost[decision.taken]
        remark("passed", TeGroupPass.name, f"'{compute}' joins {joined}; {bytes_crossing} bytes cross the group", span)
        for option in options[: decision.taken]:
            others = ", ".join(f"'{name}'" for name in option)
            remark("missed", TeGroupPass.name, f"'{compute}' cannot join {others}: the groups would form a cycle", span)
