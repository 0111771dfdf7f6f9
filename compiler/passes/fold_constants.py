"""fold-constants: small computes on small constants are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from compiler.dialects import te
from compiler.dialects.checks import element_type
from compiler.dialects.dense import DenseAttr, bytes_of
from compiler.dialects.dense_elements import Dense
from compiler.dialects.functions import functions
from compiler.dialects.numbers import Array
from compiler.interpret.te import evaluate
from compiler.passes.lift_constants import MAX_INLINE_BYTES
from compiler.types.dtypes import row_of

MAX_POINTS = 1 << 20
"""The largest index space that is evaluated, in points; it takes about 10 ms."""


@dataclass(frozen=True)
class FoldConstantsPass(ModulePass):
    """Evaluate computes that depend on small constants alone and have small results; erase unused constants.

        %T = te.constant dense<[[1.0, 0.0], [0.5, 0.5]]>;  %U = te.compute "U" [...] (%t = %T[j, i]) { 2 * %t }
      ->
        %U = te.constant dense<[[2.0, 1.0], [0.0, 1.0]]>

    Small means at most `bytes` bytes. The values come from the evaluator of te functions. Computes with large operands
    or results are prepared when the kernel is built: see split-constants.
    """

    name = "fold-constants"
    anchor: ClassVar = "func.func"

    bytes: int = MAX_INLINE_BYTES

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            fold_constants(function, self.bytes)


def fold_constants(function: FuncOp, max_bytes: int = MAX_INLINE_BYTES) -> bool:
    """Replace computes and gathers of a te function by constants if all operands are constants, no operand or result
    has more than `max_bytes` bytes, and the index space has at most MAX_POINTS points. If any is replaced, erase all
    unused constants. Return whether anything changed."""
    folded = False
    for op in list(function.body.block.ops) if function.body.blocks else ():
        values = fold(op, max_bytes) if isinstance(op, te.ComputeOp | te.GatherOp) else None
        if values is None:
            continue
        for output, value in zip(op.results, values, strict=True):
            constant = te.ConstantOp(value)
            constant.output.name_hint = output.name_hint
            op.parent_block().insert_op_before(constant, op)  # type: ignore[union-attr]
            output.replace_all_uses_with(constant.output)
        _erase(op)
        folded = True
    if folded:
        _drop_unused(function.body.block)
    return folded


def fold(op: te.ComputeOp | te.GatherOp, max_bytes: int = MAX_INLINE_BYTES) -> list[DenseAttr] | None:
    """Evaluate an op on constants; return its results' values. None if it is over sizes, an operand is no constant, an
    operand or result has more than `max_bytes` bytes, a result has no numpy dtype, or the index space has more than
    MAX_POINTS points."""
    owners = [value.owner for value in op.operands]
    constants = [owner for owner in owners if isinstance(owner, te.ConstantOp)]
    if op.sizes is not None or len(constants) < len(owners):
        return None
    if any(row_of(element_type(value)) is None for value in op.results):
        return None
    types = [value.type for value in (*op.operands, *op.results)]
    if any(isinstance(type, TensorType) and bytes_of(type) > max_bytes for type in types):
        return None
    if prod(axis.size for axis in op.axes) > MAX_POINTS:
        return None
    arrays = evaluate(_constant_function(op, constants), [])
    return [_dense(value, array) for value, array in zip(op.results, arrays, strict=True)]


def _constant_function(op: te.ComputeOp | te.GatherOp, constants: Sequence[te.ConstantOp]) -> ModuleOp:
    """Return a module whose only function has no arguments, computes an op on constants and returns its results."""
    copies = {constant.output: constant.clone() for constant in constants}
    copy = op.clone({value: constant.output for value, constant in copies.items()})
    types = [output.type for output in copy.results]
    body = Block([*copies.values(), copy, ReturnOp(*copy.results)])
    return ModuleOp([FuncOp("alone", FunctionType.from_lists([], types), Region(body))])


def _dense(value: SSAValue, array: Array) -> DenseAttr:
    type, name = value.type, value.name_hint or "c"
    assert isinstance(type, TensorType)
    return DenseAttr(Dense(type, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, name))


def _drop_unused(block: Block) -> None:
    for op in list(block.ops):
        if isinstance(op, te.ConstantOp) and not op.output.uses:
            _erase(op)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
