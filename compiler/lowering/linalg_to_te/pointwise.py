"""Ops of arith and math on whole tensors, or on scalars outside of bodies: a te.compute each; and constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.exceptions import VerifyException

from compiler.dialects import te
from compiler.dialects.access import axis_attribute
from compiler.dialects.dense import DenseAttr, from_upstream
from compiler.dialects.numbers import constant
from compiler.dialects.upstream.affine import MaxOp
from compiler.interpret.scalar import function
from compiler.lowering.linalg_to_te.bodies import ComputeBody, check_scalar_op
from compiler.lowering.linalg_to_te.values import Literal, TeValues, refusal


def pointwise(
    op: Operation,
    values: TeValues,
    operands: Sequence[SSAValue],
    shape: Sequence[int],
    element: Callable[[ComputeBody, Sequence[SSAValue]], SSAValue],
) -> None:
    """Append a compute of a shape as the result of `op`. `element(body, scalars)` returns its element, from the scalars
    of the operands in order, which are tensors of the shape or scalars."""
    body = ComputeBody(values, [axis_attribute(f"i{n}", size) for n, size in enumerate(shape)], op)
    identity, scalar = AffineMap.identity(len(shape)), AffineMap(len(shape), 0, ())
    reads = [body.read(v, identity if isinstance(v.type, TensorType) else scalar) for v in operands]
    values.tensors[op.results[0]] = values.add(body.compute(values.label(op), [element(body, reads)]), op)


def convert_pointwise(op: Operation, values: TeValues) -> None:
    """Append the compute of an op of arith or math; an op whose operands are all known integers and whose result is an
    integer is evaluated instead, and its result recorded. Raises LoweringError for an op that te bodies cannot contain,
    or with several results, and for an operand without a te value."""
    check_scalar_op(op)
    if len(op.results) != 1:
        raise refusal(op, f"has {len(op.results)} results on tensors")
    if _is_folded(op, values):
        return
    shape = next((values.shape(v, op) for v in op.operands if isinstance(v.type, TensorType)), ())
    pointwise(op, values, op.operands, shape, lambda body, operands: body.copied(op, operands).results[0])


def _is_folded(op: Operation, values: TeValues) -> bool:
    """Evaluate an op if all its operands are known integers and its result is an integer, and record the result, such
    as an extent. Return whether it was evaluated."""
    operands = [values.literals.get(operand) for operand in op.operands]
    numbers = [constant(number) for number in operands if isinstance(number, IntegerAttr)]
    type = op.results[0].type
    if len(numbers) != len(operands) or not isinstance(type, IntegerType | IndexType):
        return False
    values.literals[op.results[0]] = IntegerAttr(int(function(op)(*numbers)), type)
    return True


def fold_affine(op: Operation, values: TeValues) -> None:
    """Evaluate an affine.apply, affine.min or affine.max of known integers, and record the result. Raises LoweringError
    for an unknown operand."""
    literals = [values.literals.get(operand) for operand in op.operands]
    map = op.properties["map"]
    assert isinstance(map, AffineMapAttr)
    numbers = [number.value.data for number in literals if isinstance(number, IntegerAttr)]
    if len(numbers) != len(literals):
        raise refusal(op, "has an operand that is known at run time only: shapes are static")
    results = map.data.eval(numbers[: map.data.num_dims], numbers[map.data.num_dims :])
    values.literals[op.results[0]] = IntegerAttr(max(results) if isinstance(op, MaxOp) else min(results), IndexType())


def convert_constant(op: arith.ConstantOp, values: TeValues) -> None:
    """Append the te.constant of a tensor constant, or record the number of a scalar constant. Raises LoweringError for
    elements that te lacks."""
    value = op.value
    if isinstance(value, FloatAttr | IntegerAttr):
        values.literals[op.result] = value
        return
    try:
        dense = from_upstream(value) if isinstance(value, DenseIntOrFPElementsAttr) else value
        if not isinstance(dense, DenseAttr):
            raise refusal(op, f"has no elements that te reads: {type(value).name}")
        tensor = values.add(te.ConstantOp(dense), op)
    except VerifyException as error:
        raise refusal(op, f"has no te form: {error}") from error
    values.tensors[op.result] = tensor
    if isinstance(value, DenseIntOrFPElementsAttr) and value.is_splat():
        values.splats[tensor] = _first(value)


def _first(value: DenseIntOrFPElementsAttr) -> Literal:
    number, element = next(iter(value.iter_attrs())), value.get_element_type()
    assert isinstance(number, FloatAttr | IntegerAttr)
    return number if number.type == element else IntegerAttr(number.value.data, element)  # type: ignore[arg-type]
