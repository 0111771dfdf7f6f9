"""Functions: their ops in order, each by the file of its dialect."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.dialects.cf import AssertOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Operation, Region

from compiler.lowering.linalg_to_te.bodies import SCALAR_DIALECTS
from compiler.lowering.linalg_to_te.pointwise import convert_constant, convert_pointwise
from compiler.lowering.linalg_to_te.structured import convert_structured
from compiler.lowering.linalg_to_te.tensors import HANDLERS
from compiler.lowering.linalg_to_te.values import PASS, TeValues, check_types, refusal, static_shape
from compiler.program.names import Names, spelled
from compiler.support.errors import LoweringError
from compiler.types.dtypes import row_of


def convert_function(function: FuncOp) -> None:
    """Replace a function of linalg on tensors by its te form, in place. Ops without users are dropped, and cf.assert
    always. Raises LoweringError at an op without a te form, and for a function of other than one block; the function is
    then unchanged."""
    name = function.sym_name.data
    if len(function.body.blocks) != 1:
        raise LoweringError(f"{PASS}: @{name} has {len(function.body.blocks)} blocks, expected one").at(function)
    body = function.body.block
    check_types(function, body.args)
    block = Block(arg_types=[_argument_type(function, number) for number in range(len(body.args))])
    values = TeValues(block, Names(separator="_"))
    for number, (old, new) in enumerate(zip(body.args, block.args, strict=True)):
        new.name_hint = values.labels.fresh(spelled(old.name_hint or f"arg{number}"))
        values.tensors[old] = new
    for op in body.ops:
        try:
            _convert(op, values)
        except LoweringError as error:
            raise error if error.op is not None else error.at(op)  # noqa: B904
    _remove_unused(block)
    function.detach_region(function.body)
    function.add_region(Region(block))
    assert block.last_op is not None
    function.function_type = FunctionType.from_lists(block.arg_types, block.last_op.operand_types)


def _argument_type(function: FuncOp, number: int) -> Attribute:
    """Return the type of argument number `number` in te: a tensor's own, rank 0 for a scalar. Raises LoweringError for
    a tensor of dynamic shape, or a type that is no dtype."""
    argument = function.body.block.args[number]
    if isinstance(argument.type, TensorType):
        static_shape(argument, function)
    elif row_of(argument.type) is None:
        reason = f"argument {number} of @{function.sym_name.data} is of type {argument.type}"
        raise LoweringError(f"{PASS}: {reason}: te functions take tensors and numbers").at(function)
    return argument.type if isinstance(argument.type, TensorType) else TensorType(argument.type, [])


def _convert(op: Operation, values: TeValues) -> None:
    if isinstance(op, ReturnOp):
        values.block.add_op(ReturnOp(*(values.tensor(value, op) for value in op.operands)))
        return
    if isinstance(op, AssertOp):  # a te program checks nothing as it runs
        return
    check_types(op, [*op.operands, *op.results])
    if isinstance(op, arith.ConstantOp):
        convert_constant(op, values)
    elif isinstance(op, LinalgStructuredOperation):
        convert_structured(op, values)
    elif op.name.startswith("te."):
        new = op.clone({old: values.tensor(old, op) for old in op.operands})
        values.block.add_op(new)
        values.tensors |= zip(op.results, new.results, strict=True)
    elif (handler := HANDLERS.get(type(op))) is not None:
        handler(op, values)
    elif op.name.partition(".")[0] in SCALAR_DIALECTS:
        convert_pointwise(op, values)
    else:
        raise refusal(op, "has no te form")


def _remove_unused(block: Block) -> None:
    """Remove the ops of a block whose results have no uses, such as fills with an identity, and those without results;
    the last op stays."""
    for op in reversed([*block.ops][:-1]):
        if not any(result.uses for result in op.results):
            op.detach()
            op.erase()
