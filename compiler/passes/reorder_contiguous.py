"""reorder-contiguous: the default loop order, with contiguous accesses innermost; legal by construction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.analysis.order import contiguous_order
from compiler.dialects.calls import is_main
from compiler.dialects.functions import functions
from compiler.dialects.loop import ForOp
from compiler.program.read import read
from compiler.program.tree import Loop, Node, Program, blocks_in, nested
from compiler.program.write import update
from compiler.support.actions import remark


@dataclass(frozen=True)
class ReorderContiguousPass(ModulePass):
    """Move the spatial loop along which most operands are contiguous innermost, the reduction loops outside it.

        m, l, k { C[m, l] += A[m, k] * B[k, l] }  ->  m, k, l { C[m, l] += A[m, k] * B[k, l] }

    Touches only perfect nests of serial loops around one unguarded block that binds each axis to one loop and does not
    read what it writes: their instances are independent but for the reduction, whose order is free.
    """

    name = "reorder-contiguous"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if is_main(function) or not any(isinstance(inner, ForOp) for inner in function.walk()):
                continue
            program = read(function)
            reordered = reorder_contiguous(program)
            if reordered is not program:
                update(function, reordered)


def reorder_contiguous(program: Program) -> Program:
    """Return the program with nests reordered as by the pass; the same object if no nest changes."""
    nests = dict(_reordered_nests(program))
    return replace(program, body=tuple(nests.get(n, node) for n, node in enumerate(program.body))) if nests else program


def _reordered_nests(program: Program) -> Iterator[tuple[int, Node]]:
    """Yield the nests whose loop order changes, reordered, each with its position in the program's body."""
    for position, node in enumerate(program.body):
        blocks = blocks_in(node)
        if isinstance(node, Loop) and len(blocks) == 1 and blocks[0].table is None:
            order = contiguous_order(program, blocks[0], program.enclosing(blocks[0].label))
            if order:
                loops = ", ".join(loop.label for loop in order)
                remark("passed", ReorderContiguousPass.name, f"block '{blocks[0].label}': the loops are now {loops}")
                yield position, nested(order, blocks[0])
