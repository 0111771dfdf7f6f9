"""Functions and constants."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from compiler.dialects import te
from compiler.dialects.dense import DenseAttr, to_upstream
from compiler.dialects.dense_elements import Dense
from compiler.dialects.functions import state_constants
from compiler.lowering.te_to_linalg.bodies import signless
from compiler.lowering.te_to_linalg.computes import Add, convert_compute, convert_gather


def convert_function(function: FuncOp) -> None:
    """Replace the body and the type of a te function by those of linalg on tensors with signless elements."""
    body = function.body.block
    types = [signless(argument.type) for argument in body.args]
    block = Block(arg_types=types)
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, block.args, strict=True))
    for old, argument in values.items():
        argument.name_hint = old.name_hint

    def add(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    for op in body.ops:
        new = _converted(op, values, add)
        new.location = op.location
        block.add_op(new)
        for result, replacement in zip(op.results, new.results, strict=True):
            replacement.name_hint = result.name_hint
            values[result] = replacement
    state_constants(function, {})
    function.function_type = FunctionType.from_lists(types, list(map(signless, function.function_type.outputs)))
    function.detach_region(function.body)
    function.add_region(Region(block))


def _converted(op: Operation, values: dict[SSAValue, SSAValue], add: Add) -> Operation:
    """Return the op of linalg, func or arith that replaces an op of a te function, and is not appended; `add` appends
    the ops for its operands."""
    match op:
        case te.ComputeOp():
            return convert_compute(op, values, add)
        case te.GatherOp():
            return convert_gather(op, values, add)
        case te.ConstantOp():
            return arith.ConstantOp(to_upstream(DenseAttr(Dense(signless(op.output.type), op.value.data.data))))
        case CallOp():
            operands = [values[value] for value in op.arguments]
            return CallOp(op.callee, operands, [signless(result.type) for result in op.results])
        case ReturnOp():
            return ReturnOp(*(values[value] for value in op.operands))
    raise AssertionError(f"no form of '{op.name}' in linalg")
