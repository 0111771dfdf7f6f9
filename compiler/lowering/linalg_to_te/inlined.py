"""Computes made by te's own operators, whose ops move to the function under construction; and lists of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Operation, SSAValue

from compiler import te
from compiler.dialects import te as dialect
from compiler.lowering.linalg_to_te.values import TeValues, refusal
from compiler.program.names import Names, spellings
from compiler.support.errors import TeError
from compiler.te.tensor import Tensor
from compiler.types.dtypes import row_of


def _placeholder(value: SSAValue, name: str, op: Operation) -> Tensor:
    """Return a te placeholder `name` of a tensor value's type. Raises LoweringError for an element type that is no
    dtype."""
    assert isinstance(value.type, TensorType)
    row = row_of(value.type.get_element_type())
    if row is None:
        raise refusal(op, f"is on elements of type {value.type.get_element_type()}, which is no dtype")
    return te.placeholder(value.type.get_shape(), row.name, name)


def build(op: Operation, values: TeValues, operands: Sequence[SSAValue], element: Callable[..., Tensor]) -> None:
    """Append the te ops that `element`, a function of te tensors, builds for the operands; record their result as that
    of `op`. Raises LoweringError if te refuses, and for an operand without a te value or of an element type that is no
    dtype."""
    inputs = [values.tensor(operand, op) for operand in operands]
    try:
        names = spellings([value.name_hint or "x" for value in inputs])
        leaves = [_placeholder(*pair, op) for pair in zip(inputs, map(Names().fresh, names), strict=True)]
        function = te.function("f", leaves, element(*leaves))
    except TeError as error:
        raise refusal(op, f"has no te form: {error}") from error
    values.tensors[op.results[0]] = inline(op, values, inputs, function.module.body.block.first_op)


def inline(op: Operation, values: TeValues, inputs: Sequence[SSAValue], function: Operation | None) -> SSAValue:
    """Move the ops of a te function of one result, which is left without them, into the function under construction,
    with `inputs` for its arguments and labels of computes that begin with the label of `op`; return the value of the
    result."""
    assert function is not None
    block = function.regions[0].block
    for argument, value in zip(block.args, inputs, strict=True):
        argument.name_hint = None
        argument.replace_all_uses_with(value)
    last = block.last_op
    assert last is not None
    for inner in [*block.ops][:-1]:
        inner.detach()
        if isinstance(inner, dialect.ComputeOp):
            suffix = "" if inner is last.operands[0].owner else f".{inner.label.data}"
            inner.properties["label"] = StringAttr(values.label(op, suffix))
        values.add(inner, op)
    return last.operands[0]


def numbers(op: Operation, values: TeValues, listed: Sequence[int], operands: Iterable[SSAValue]) -> list[int]:
    """Return `listed`, the integers of an op, with each dynamic entry replaced by the number of the next operand.
    Raises LoweringError for an operand whose number is unknown."""
    rest = iter(operands)
    known: list[int] = []
    for number in listed:
        literal = values.literals.get(next(rest)) if number == DYNAMIC_INDEX else IntegerAttr(number, 64)
        if not isinstance(literal, IntegerAttr):
            raise refusal(op, "has a size, an offset or a stride that is known at run time only: shapes are static")
        known.append(literal.value.data)
    return known


def static_list(op: Operation, values: TeValues, name: str) -> list[int]:
    """Return the integers of an op's property `static_NAME`, with its operands `NAME` in place of dynamic entries.
    Raises LoweringError for an operand whose number is unknown."""
    listed = op.properties[f"static_{name}"]
    assert isinstance(listed, DenseArrayBase)
    return numbers(op, values, [int(n) for n in listed.get_values()], getattr(op, name))
