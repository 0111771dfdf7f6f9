"""Calls: the body of the callee in place of each."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from compiler.dialects.calls import called, calls
from compiler.dialects.functions import functions
from compiler.lowering.linalg_to_te.detection import is_linalg
from compiler.lowering.linalg_to_te.values import refusal
from compiler.support.errors import InputError


def inline_calls(module: ModuleOp) -> None:
    """Inline all calls in functions of linalg, and of such functions, until there are none. Callees that are private,
    or have an argument that is an index or a tensor of dynamic shape, are removed. Raises LoweringError for an unknown
    callee, and for one without a body of one block. A verified module has no recursion."""
    inlined: dict[FuncOp, None] = {}
    while call := next((c for f in functions(module) for c in calls(f) if _concerns_linalg(f, c)), None):
        callee = _callee(call)
        inlined[callee] = None
        copy = callee.body.clone().block
        last = copy.last_op
        assert last is not None
        Rewriter.inline_block(copy, InsertPoint.before(call), call.operands)
        for result, value in zip(call.results, last.operands, strict=True):
            result.replace_all_uses_with(value)
        for op in (call, last):
            op.detach()
            op.erase()
    for callee in inlined:
        if callee.sym_visibility == StringAttr("private") or any(map(_is_open, callee.body.block.args)):
            callee.detach()
            callee.erase()


def _is_open(argument: SSAValue) -> bool:
    """Whether an argument is an index, or a tensor with a dynamic dimension: only callers determine it."""
    type = argument.type
    return type == IndexType() or (isinstance(type, TensorType) and DYNAMIC_INDEX in type.get_shape())


def _concerns_linalg(function: FuncOp, call: CallOp) -> bool:
    return call.parent is function.body.block and (is_linalg(function) or is_linalg(_callee(call)))


def _callee(call: CallOp) -> FuncOp:
    try:
        callee = called(call)
    except InputError as error:
        raise refusal(call, f"has no callee: {error}") from error
    if len(callee.body.blocks) != 1:
        raise refusal(call, f"calls {call.callee}, whose body is not one block")
    return callee
