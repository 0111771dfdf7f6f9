"""te-group: a te function becomes a function that calls its groups."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.graph.grouping import group


@dataclass(frozen=True)
class TeGroupPass(ModulePass):
    """Cut each te function into groups: private functions with the attribute te.group, which it calls.

        func @f(%X, %W, %V) { %T = X * W;  %R = relu(%T);  %S = softmax(%R);  return %S }
      ->
        func @f(%X, %W, %V) { %R = call @group_0(%X, %W);  %S = call @group_1(%R);  return %S }
        func private @group_0(%X, %W) attributes {te.group} { %T = X * W;  %R = relu(%T);  return %R }
        func private @group_1(%R) attributes {te.group} { %S = softmax(%R);  return %S }

    A contraction takes along what is elementwise before and after it; reductions of the same rows are one group, and so
    are attention and two products with short rows between them; elementwise computes are joined. A group has at most
    64 computes and 512 scalar operations: a longer one is cut where fewest bytes pass. What others read of a group, or
    the function returns, are its results; what it reads from outside are its arguments. Groups that differ by names
    only are one function; they are numbered by their first calls.

    A function of one group stays as it is, and so does a module that has groups: it is verified. Raises Refusal, a
    VerifyException, for groups that are public or call, and for functions that call others than groups, or compute
    beside their calls.
    Elsewhere: Relay's FuseOps, XLA's fusion, oneDNN Graph's partitions.
    """

    name = "te-group"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        made = group(op)
        if made is not op:
            for old in list(op.ops):
                op.body.block.erase_op(old)
            for new in list(made.ops):
                new.detach()
                op.body.block.add_op(new)
