"""tensor.extract_slice, insert_slice and pad: a compute each."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    TensorType,
)
from xdsl.ir import Operation

from compiler import te
from compiler.lowering.linalg_to_te.inlined import build, static_list
from compiler.lowering.linalg_to_te.values import Literal, TeValues, refusal
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor


def convert_pad(op: Operation, values: TeValues) -> None:
    """Append the compute of a tensor.pad by a constant or by a scalar from outside its region. Raises LoweringError for
    a value that the region computes, for a width of unknown number, and for an operand without a te value."""
    assert isinstance(op, tensor.PadOp)
    low, high = static_list(op, values, "low"), static_list(op, values, "high")
    yielded = op.region.block.last_op.operands[0]  # type: ignore[union-attr]
    owner = yielded.owner
    literal = owner.value if isinstance(owner, arith.ConstantOp) else values.literals.get(yielded)
    widths = list(zip(low, high, strict=True))
    if isinstance(literal, Literal):
        number = literal.value.data
        build(op, values, [op.source], lambda x: te.nn.pad(x, widths, number))
    elif owner is op.region.block or (isinstance(owner, Operation) and owner.parent is op.region.block):
        raise refusal(op, "pads with a value that its region computes")
    else:
        build(op, values, [op.source, yielded], lambda x, value: _padded(x, widths, value))


def _padded(x: Tensor, widths: Sequence[tuple[int, int]], value: Tensor) -> Tensor:
    """Return x padded by `widths`, (before, after) a dimension, with the element of `value`, a tensor of rank 0."""

    def read(*i: Index) -> Expr:
        moved = [index - low for index, (low, _) in zip(i, widths, strict=True)]
        bounds = zip(moved, x.shape, widths, strict=True)
        conditions = [c for m, size, (low, high) in bounds for c in ([m >= 0] * bool(low) + [m < size] * bool(high))]
        if not conditions:
            return x[tuple(moved)]
        inside = te.all_of(*conditions)
        return te.select(inside, te.select(inside, x[tuple(moved)], 0), value[()])

    return te.compute([size + low + high for size, (low, high) in zip(x.shape, widths, strict=True)], read)


def _kept(op: Operation, sizes: Sequence[int], shape: Sequence[int]) -> list[int | None]:
    """Return, for each dimension of a slice of `sizes`, its dimension in the rank-reduced `shape`; None for a dropped
    dimension of size 1. Of several ways the first dimension of size 1 that can stay does. Raises LoweringError if the
    shapes do not fit."""
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
    """Whether `shape` is `sizes` with some entries of 1 dropped."""
    if not shape:
        return all(size == 1 for size in sizes)
    if not sizes:
        return False
    return (sizes[0] == shape[0] and _fits(sizes[1:], shape[1:])) or (sizes[0] == 1 and _fits(sizes[1:], shape))


def _slice(op: Operation, values: TeValues) -> tuple[list[int], list[int], list[int]]:
    """Return a slice op's offsets, sizes and strides. Raises LoweringError for an operand of unknown number."""
    offsets, sizes, strides = (static_list(op, values, name) for name in ("offsets", "sizes", "strides"))
    return offsets, sizes, strides


def convert_extract_slice(op: Operation, values: TeValues) -> None:
    """Append the compute of a tensor.extract_slice; a slice of a tensor.empty is only recorded as empty. Raises
    LoweringError for sizes that do not fit its type, for an offset, size or stride of unknown number, and for an
    operand without a te value."""
    offsets, sizes, strides = _slice(op, values)
    kept = _kept(op, sizes, _sliced(op, sizes))
    shape = tuple(size for size, dim in zip(sizes, kept, strict=True) if dim is not None)
    if op.operands[0] in values.empty:
        values.empty[op.results[0]] = shape
        return

    def element(x: Tensor) -> Tensor:
        def read(*i: Index) -> Expr:
            steps = [0 if dim is None else i[dim] * strides[n] for n, dim in enumerate(kept)]
            return x[tuple(offset + step for offset, step in zip(offsets, steps, strict=True))]

        return te.compute(shape, read)

    build(op, values, op.operands[:1], element)


def _sliced(op: Operation, sizes: Sequence[int]) -> list[int]:
    """Return the shape of a slice's result type, with open entries replaced, in order, by the sizes other than 1, and
    by 1 after the last of them; the sizes if no dimension is dropped."""
    type = op.results[0].type
    assert isinstance(type, TensorType)
    if len(type.get_shape()) == len(sizes):
        return list(sizes)
    rest = iter([size for size in sizes if size != 1])
    return [next(rest, 1) if size == DYNAMIC_INDEX else size for size in type.get_shape()]


def convert_insert_slice(op: Operation, values: TeValues) -> None:
    """Append the compute of a tensor.insert_slice; inserted into a tensor.empty, the elements around the slice are 0.
    Raises LoweringError for sizes that do not fit the source, for an offset, size or stride of unknown number, and for
    an operand without a te value."""
    offsets, sizes, strides = _slice(op, values)
    shape = values.shape(op.operands[1], op)
    kept = _kept(op, sizes, values.shape(op.operands[0], op))
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

    is_whole = list(sizes) == list(shape) or op.operands[1] in values.empty  # undefined elements may be 0
    build(op, values, op.operands[: 1 if is_whole else 2], element)
