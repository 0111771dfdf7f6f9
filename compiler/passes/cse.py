"""cse: equal values are computed once, at each level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce

from compiler.dialects import loop, te
from compiler.dialects.functions import functions, has_tensors
from compiler.program.read import computed, gathered
from compiler.support.origins import fused


@dataclass(frozen=True)
class CsePass(ModulePass):
    """Compute equal values once.

        %A = te.compute "A" [i = 4] (%x = %X[i] ...) { arith.addf %x, %x }
        %B = te.compute "B" [j = 4] (%y = %X[j] ...) { arith.addf %y, %y }
        func.return %A, %B
      ->
        %A = te.compute "A" [i = 4] (%x = %X[i] ...) { arith.addf %x, %x }
        func.return %A, %A

    te: computes and gathers that are equal up to labels and the names of axes, calls with equal operands, constants;
    the first gets the locations of all.
    loop: ops in bodies, constants; blocks stay. low: ops without effects, and loads without a store between them.
    """

    name = "cse"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        cse(op)
        region_dce(op.body)
        for function in functions(op):
            _merge_equal(function)


def _merge_equal(function: FuncOp) -> None:
    """Merge the equal ops of a te function, and the equal constants of a loop function, which differ in names."""
    is_te = has_tensors(function)
    seen: dict[object, Operation] = {}
    for block in function.body.blocks:
        for op in list(block.ops):
            key = _key(op, is_te)
            first = op if key is None else seen.setdefault(key, op)
            if first is not op:
                first.location = fused((first.location, op.location))
                Rewriter.replace_op(op, [], first.results)


def _key(op: Operation, is_te: bool) -> object:
    """A key that is equal for equal ops; None for an op that stays, which a call does unless `is_te`."""
    types = tuple(op.result_types)
    if isinstance(op, loop.ConstantOp | te.ConstantOp):
        return (type(op), op.value, types)
    if isinstance(op, CallOp) and is_te:
        return ("call", op.callee, tuple(map(id, op.operands)), types, tuple(sorted(op.attributes.items())))
    if not isinstance(op, te.ComputeOp | te.GatherOp) or op.sizes is not None:
        return None
    names: dict[SSAValue, str] = {value: str(id(value)) for value in op.operands}
    block = computed(op, names) if isinstance(op, te.ComputeOp) else gathered(op, names)
    axes = tuple((axis.size, axis.is_reduce) for axis in block.axes)
    return (replace(block, label="", axes=()), axes, tuple(sorted(op.attributes.items())), types)
