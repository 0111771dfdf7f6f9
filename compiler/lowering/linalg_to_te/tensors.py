"""Ops of the dialect tensor, and linalg.softmax: te computes, built by the operators of te.nn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Operation, SSAValue

from compiler import te
from compiler.dialects import te as dialect
from compiler.dialects.dense import from_upstream
from compiler.dialects.upstream.linalg.special import SoftmaxOp
from compiler.lowering.linalg_to_te.pointwise import pointwise
from compiler.lowering.linalg_to_te.values import Literal, TeValues, refusal, static_shape
from compiler.program.names import Names, spellings
from compiler.support.errors import TeError
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor
from compiler.types.dtypes import row_of

DYNAMIC = -(1 << 63)
"""The number that stands for an operand in a static list."""
Handler = Callable[[Operation, TeValues], None]


def _placeholder(value: SSAValue, name: str, op: Operation) -> Tensor:
    """A te tensor in place of a value. Raises LoweringError for elements of no dtype."""
    assert isinstance(value.type, TensorType)
    row = row_of(value.type.get_element_type())
    if row is None:
        raise refusal(op, f"is on elements of type {value.type.get_element_type()}, which is no dtype")
    return te.placeholder(static_shape(value, op), row.name, name)


def build(op: Operation, values: TeValues, operands: Sequence[SSAValue], element: Callable[..., Tensor]) -> None:
    """Append the ops of a te tensor of operands; it is the result of `op`. Raises LoweringError for a TeError."""
    inputs = [values.tensor(operand, op) for operand in operands]
    try:
        names = spellings([value.name_hint or "x" for value in inputs])
        leaves = [_placeholder(*pair, op) for pair in zip(operands, map(Names().fresh, names), strict=True)]
        function = te.function("f", leaves, element(*leaves))
    except TeError as error:
        raise refusal(op, f"has no te form: {error}") from error
    values.tensors[op.results[0]] = inline(op, values, inputs, function.module.body.block.first_op)


def inline(op: Operation, values: TeValues, inputs: Sequence[SSAValue], function: Operation | None) -> SSAValue:
    """Move the ops of a te function of one result to the function under construction; return the result."""
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


def numbers(op: Operation, name: str) -> list[int]:
    """A static list of an op. Raises LoweringError if an entry is an operand."""
    listed = op.properties[name]
    assert isinstance(listed, DenseArrayBase)
    found = [int(number) for number in listed.get_values()]
    if DYNAMIC in found:
        raise refusal(op, f"has a value known at run time only in its {name.removeprefix('static_')}")
    return found


def _empty(op: Operation, values: TeValues) -> None:
    static_shape(op.results[0], op)
    values.empty.add(op.results[0])


def _cast(op: Operation, values: TeValues) -> None:
    if op.operands[0].type != op.results[0].type:
        raise refusal(op, f"converts {op.operands[0].type} to {op.results[0].type}: shapes are static")
    values.tensors[op.results[0]] = values.tensor(op.operands[0], op)


def _reshape(op: Operation, values: TeValues) -> None:
    if op.operands[0] in values.empty:
        values.empty.add(op.results[0])
        return
    shape = static_shape(op.results[0], op)
    build(op, values, op.operands[:1], lambda x: te.nn.reshape(x, shape))


def _concat(op: Operation, values: TeValues) -> None:
    dim = op.properties["dim"]
    assert isinstance(dim, IntegerAttr)
    build(op, values, op.operands, lambda *parts: te.nn.concat(parts, dim.value.data))


def _softmax(op: Operation, values: TeValues) -> None:
    assert isinstance(op, SoftmaxOp)
    build(op, values, [op.input], lambda x: te.nn.softmax(x, op.dimension.value.data))


def _pad(op: Operation, values: TeValues) -> None:
    assert isinstance(op, tensor.PadOp)
    low, high = numbers(op, "static_low"), numbers(op, "static_high")
    yielded = op.region.block.last_op.operands[0]  # type: ignore[union-attr]
    value = values.literals[yielded] if yielded in values.literals else _literal_of(yielded.owner)
    if value is None:
        raise refusal(op, "pads with a value that is no constant")
    number = value.value.data
    build(op, values, [op.source], lambda x: te.nn.pad(x, list(zip(low, high, strict=True)), number))


def _literal_of(owner: object) -> Literal | None:
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, Literal):
        return owner.value
    return None


def _kept(op: Operation, sizes: Sequence[int], shape: Sequence[int]) -> list[int | None]:
    """The dimension in a reduced shape of each dimension of a slice; None for a dropped one of size 1. Raises
    LoweringError if the shapes do not fit."""
    kept: list[int | None] = []
    position = 0
    for n, size in enumerate(sizes):
        rest = len(sizes) - n
        fits = position < len(shape) and shape[position] == size
        if fits and (size != 1 or rest == len(shape) - position or _fits(sizes[n + 1 :], shape[position + 1 :])):
            kept.append(position)
            position += 1
        elif size == 1:
            kept.append(None)
        else:
            break
    if len(kept) != len(sizes) or position != len(shape):
        raise refusal(op, f"has sizes {list(sizes)} for a tensor of shape {tuple(shape)}")
    return kept


def _fits(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether a shape is that of sizes, some of size 1 dropped."""
    if not shape:
        return all(size == 1 for size in sizes)
    if not sizes:
        return False
    return (sizes[0] == shape[0] and _fits(sizes[1:], shape[1:])) or (sizes[0] == 1 and _fits(sizes[1:], shape))


def _slice(op: Operation) -> tuple[list[int], list[int], list[int]]:
    """The offsets, sizes and strides of a slice."""
    offsets, sizes, strides = (numbers(op, f"static_{name}") for name in ("offsets", "sizes", "strides"))
    return offsets, sizes, strides


def _extract_slice(op: Operation, values: TeValues) -> None:
    offsets, sizes, strides = _slice(op)
    shape = static_shape(op.results[0], op)
    if op.operands[0] in values.empty:
        values.empty.add(op.results[0])
        return
    kept = _kept(op, sizes, shape)

    def element(x: Tensor) -> Tensor:
        def read(*i: Index) -> Expr:
            steps = [0 if dim is None else i[dim] * strides[n] for n, dim in enumerate(kept)]
            return x[tuple(offset + step for offset, step in zip(offsets, steps, strict=True))]

        return te.compute(shape, read)

    build(op, values, op.operands[:1], element)


def _insert_slice(op: Operation, values: TeValues) -> None:
    offsets, sizes, strides = _slice(op)
    shape = static_shape(op.results[0], op)
    kept = _kept(op, sizes, static_shape(op.operands[0], op))
    slices = list(zip(offsets, sizes, strides, strict=True))

    def element(source: Tensor, *dest: Tensor) -> Tensor:
        def read(*i: Index) -> Expr:
            conditions = []
            for index, (offset, size, stride), extent in zip(i, slices, shape, strict=True):
                conditions += [index >= offset] if offset else []
                conditions += [index < offset + (size - 1) * stride + 1] if offset + size * stride != extent else []
                conditions += [te.equal((index - offset) % stride, 0)] if stride != 1 else []
            moved = [index - offset if offset else index for index, (offset, _, _) in zip(i, slices, strict=True)]
            steps = [m if stride == 1 else m // stride for m, (_, _, stride) in zip(moved, slices, strict=True)]
            value = source[tuple(step for step, dim in zip(steps, kept, strict=True) if dim is not None)]
            if not conditions:
                return value
            inside = te.all_of(*conditions)
            return te.select(inside, te.select(inside, value, 0), dest[0][i] if dest else 0)

        return te.compute(shape, read)

    is_covering = list(sizes) == list(shape)
    if op.operands[1] in values.empty and not is_covering:
        raise refusal(op, "inserts into a tensor.empty, whose other elements are undefined")
    build(op, values, op.operands[: 1 if is_covering else 2], element)


def _splat(op: Operation, values: TeValues) -> None:
    (scalar,), type = op.operands, op.results[0].type
    shape = static_shape(op.results[0], op)
    if scalar in values.literals and row_of(scalar.type) is not None:
        values.tensors[op.results[0]] = values.splat(values.literals[scalar], type, op)
        return
    broadcast(op, values, scalar, shape)


def broadcast(op: Operation, values: TeValues, scalar: SSAValue, shape: Sequence[int]) -> None:
    """Append a compute of a shape whose elements are all a computed scalar; it is the result of `op`."""
    pointwise(op, values, [scalar], shape, lambda body, operands: operands[0])


def _from_elements(op: Operation, values: TeValues) -> None:
    shape = static_shape(op.results[0], op)
    literals = [values.literals.get(operand) for operand in op.operands]
    if len(op.operands) == 1:
        _splat(op, values)
    elif all(literal is not None for literal in literals):
        found = [literal.value.data for literal in literals if literal is not None]
        _constant(op, values, found)
    else:
        raise refusal(op, f"makes a tensor of shape {shape} of scalars that are no constants")


def _constant(op: Operation, values: TeValues, elements: Sequence[float]) -> None:
    type = op.results[0].type
    assert isinstance(type, TensorType)
    dense = DenseIntOrFPElementsAttr.from_list(type, list(elements))
    values.tensors[op.results[0]] = values.add(dialect.ConstantOp(from_upstream(dense)), op)


def _extract(op: Operation, values: TeValues) -> None:
    indices = [values.literals.get(index) for index in op.operands[1:]]
    if not all(isinstance(index, IntegerAttr) for index in indices):
        raise refusal(op, "reads at an index that is no constant: te gathers whole tensors")
    at = [index.value.data for index in indices if isinstance(index, IntegerAttr)]
    source = values.tensor(op.operands[0], op)
    if source in values.splats:
        values.literals[op.results[0]] = values.splats[source]
        return
    build(op, values, op.operands[:1], lambda x: te.compute((), lambda: x[tuple(at)]))


def _insert(op: Operation, values: TeValues) -> None:
    raise refusal(op, "writes one element: insert a slice of it, or compute the tensor by linalg.generic")


def _dim(op: Operation, values: TeValues) -> None:
    dim = values.literals.get(op.operands[1])
    shape = static_shape(op.operands[0], op)
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
    tensor.PadOp: _pad,
    tensor.ExtractSliceOp: _extract_slice,
    tensor.InsertSliceOp: _insert_slice,
    tensor.SplatOp: _splat,
    tensor.FromElementsOp: _from_elements,
    tensor.ExtractOp: _extract,
    tensor.InsertOp: _insert,
    tensor.DimOp: _dim,
    SoftmaxOp: _softmax,
}
"""Map each op to the function that appends its te form. Raises LoweringError for one without a form."""
