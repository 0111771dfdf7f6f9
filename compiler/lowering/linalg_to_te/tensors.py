"""Ops of the dialect tensor, and linalg.softmax: te computes, built by the operators of te.nn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from xdsl.dialects import affine, tensor
from xdsl.dialects.bufferization import AllocTensorOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    TensorType,
)
from xdsl.ir import Operation, SSAValue

from compiler import te
from compiler.dialects import te as dialect
from compiler.dialects.dense import from_upstream
from compiler.dialects.upstream.affine import MaxOp
from compiler.dialects.upstream.linalg.packing import PackOp, UnpackOp
from compiler.dialects.upstream.linalg.special import SoftmaxOp
from compiler.lowering.linalg_to_te.inlined import build, numbers
from compiler.lowering.linalg_to_te.packing import convert_pack, convert_unpack
from compiler.lowering.linalg_to_te.pointwise import fold_affine, pointwise
from compiler.lowering.linalg_to_te.slices import convert_extract_slice, convert_insert_slice, convert_pad
from compiler.lowering.linalg_to_te.values import TeValues, refusal, static_shape
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor
from compiler.types.dtypes import row_of

Handler = Callable[[Operation, TeValues], None]


def _empty(op: Operation, values: TeValues) -> None:
    (result,) = op.results
    assert isinstance(op, tensor.EmptyOp | AllocTensorOp) and isinstance(result.type, TensorType)
    values.empty[result] = tuple(numbers(op, values, result.type.get_shape(), op.dynamic_sizes))


def _cast(op: Operation, values: TeValues) -> None:
    (source,), (result,) = op.operands, op.results
    shape = values.shape(source, op)
    if not isinstance(result.type, TensorType):
        raise refusal(op, f"converts a tensor of shape {shape} to {result.type}, which has no rank")
    if any(size not in (DYNAMIC_INDEX, known) for size, known in zip(result.type.get_shape(), shape, strict=True)):
        raise refusal(op, f"converts a tensor of shape {shape} to {result.type}")
    if source in values.empty:
        values.empty[result] = shape
    else:
        values.tensors[result] = values.tensor(source, op)


def _reshape(op: Operation, values: TeValues) -> None:
    source, result = op.operands[0], op.results[0]
    shape = _reshaped(op, values, values.shape(source, op))
    if source in values.empty:
        values.empty[result] = shape
    else:
        build(op, values, [source], lambda x: te.nn.reshape(x, shape))


def _reshaped(op: Operation, values: TeValues, source: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a reshape's result: for collapse_shape from the source's shape `source`, for expand_shape
    from the op's sizes, of which some are operands, else from the result's type. Raises LoweringError for a size that
    is unknown."""
    match op:
        case tensor.CollapseShapeOp():
            groups = [[int(dim.value.data) for dim in group] for group in op.reassociation]
            return tuple(prod(source[dim] for dim in group) for group in groups)
        case tensor.ExpandShapeOp():
            listed = [int(n) for n in op.static_output_shape.get_values()]
            return tuple(numbers(op, values, listed, op.dynamic_output_shape))
    return static_shape(op.results[0], op)


def _concat(op: Operation, values: TeValues) -> None:
    dim = op.properties["dim"]
    assert isinstance(dim, IntegerAttr)
    build(op, values, op.operands, lambda *parts: te.nn.concat(parts, dim.value.data))


def _softmax(op: Operation, values: TeValues) -> None:
    assert isinstance(op, SoftmaxOp)
    build(op, values, [op.input], lambda x: te.nn.softmax(x, op.dimension.value.data))


def _splat(op: Operation, values: TeValues) -> None:
    scalar, type = op.operands[0], op.results[0].type
    assert isinstance(type, TensorType)
    shape = numbers(op, values, type.get_shape(), op.operands[1:])
    if scalar in values.literals and row_of(scalar.type) is not None:
        values.tensors[op.results[0]] = values.splat(values.literals[scalar], shape, op)
        return
    broadcast(op, values, scalar, shape)


def broadcast(op: Operation, values: TeValues, scalar: SSAValue, shape: Sequence[int]) -> None:
    """Append a compute of a shape, all of whose elements are a scalar, as the result of `op`. Raises LoweringError for
    a scalar without a te value."""
    pointwise(op, values, [scalar], shape, lambda body, operands: operands[0])


def _from_elements(op: Operation, values: TeValues) -> None:
    shape = static_shape(op.results[0], op)
    literals = [values.literals[operand] for operand in op.operands if operand in values.literals]
    if len(op.operands) == 1:
        _splat(op, values)
    elif len(literals) == len(op.operands):
        _constant(op, values, [literal.value.data for literal in literals])
    else:
        build(op, values, op.operands, lambda *elements: te.compute(shape, partial(_element, elements, shape)))


def _element(elements: Sequence[Tensor], shape: Sequence[int], *i: Index) -> Expr:
    """Return the element at index i of a tensor of a shape, whose elements are the tensors of rank 0 `elements`, in
    row-major order."""
    position = sum((index * prod(shape[dim + 1 :]) for dim, index in enumerate(i)), start=0 * i[0])
    value: Expr = elements[-1][()]
    for number, element in reversed(list(enumerate(elements[:-1]))):
        value = te.select(te.equal(position, number), element[()], value)
    return value


def _constant(op: Operation, values: TeValues, elements: Sequence[float]) -> None:
    type = op.results[0].type
    assert isinstance(type, TensorType)
    dense = DenseIntOrFPElementsAttr.from_list(type, list(elements))
    values.tensors[op.results[0]] = values.add(dialect.ConstantOp(from_upstream(dense)), op)


def _extract(op: Operation, values: TeValues) -> None:
    at = _constant_index(op, values, op.operands[1:])
    source = values.tensor(op.operands[0], op)
    if source in values.splats:
        values.literals[op.results[0]] = values.splats[source]
        return
    build(op, values, op.operands[:1], lambda x: te.compute((), lambda: x[tuple(at)]))


def _insert(op: Operation, values: TeValues) -> None:
    at, shape = _constant_index(op, values, op.operands[2:]), values.shape(op.operands[1], op)

    def element(scalar: Tensor, *dest: Tensor) -> Tensor:
        def read(*i: Index) -> Expr:
            if not i:
                return scalar[()]
            is_inserted = te.all_of(*(te.equal(index, number) for index, number in zip(i, at, strict=True)))
            return te.select(is_inserted, scalar[()], dest[0][i] if dest else 0)

        return te.compute(shape, read)

    is_whole = not shape or op.operands[1] in values.empty  # undefined elements may be 0
    build(op, values, op.operands[: 1 if is_whole else 2], element)


def _constant_index(op: Operation, values: TeValues, indices: Sequence[SSAValue]) -> list[int]:
    """Return the numbers of an index. Raises LoweringError if one is unknown or no integer."""
    numbers = [values.literals.get(index) for index in indices]
    if not all(isinstance(number, IntegerAttr) for number in numbers):
        raise refusal(op, "is at an index that is no constant: use tensor.extract in a linalg.generic")
    return [number.value.data for number in numbers if isinstance(number, IntegerAttr)]


def _alloc(op: Operation, values: TeValues) -> None:
    assert isinstance(op, AllocTensorOp)
    if op.copy is not None:
        values.tensors[op.tensor] = values.tensor(op.copy, op)
    else:
        _empty(op, values)


def _dim(op: Operation, values: TeValues) -> None:
    dim = values.literals.get(op.operands[1])
    shape = values.shape(op.operands[0], op)
    if not isinstance(dim, IntegerAttr) or not 0 <= dim.value.data < len(shape):
        raise refusal(op, "reads the extent of a dimension that is no constant below the rank")
    values.literals[op.results[0]] = IntegerAttr(shape[dim.value.data], IndexType())


HANDLERS: dict[type[Operation], Handler] = {
    tensor.EmptyOp: _empty,
    tensor.CastOp: _cast,
    tensor.CollapseShapeOp: _reshape,
    tensor.ExpandShapeOp: _reshape,
    tensor.ReshapeOp: _reshape,
    tensor.ConcatOp: _concat,
    tensor.PadOp: convert_pad,
    tensor.ExtractSliceOp: convert_extract_slice,
    tensor.InsertSliceOp: convert_insert_slice,
    tensor.SplatOp: _splat,
    tensor.FromElementsOp: _from_elements,
    tensor.ExtractOp: _extract,
    tensor.InsertOp: _insert,
    tensor.DimOp: _dim,
    PackOp: convert_pack,
    UnpackOp: convert_unpack,
    AllocTensorOp: _alloc,
    SoftmaxOp: _softmax,
    **dict.fromkeys((affine.ApplyOp, affine.MinOp, MaxOp), fold_affine),
}
"""Map each op to the function that appends its te form. Raises LoweringError for one without a form."""
