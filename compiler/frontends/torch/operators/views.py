"""Views, slices, concatenation and other moves of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from compiler.frontends.torch.operators.elements import dimension, number, read, reshape, to_dtype, zero_of
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor

End: TypeAlias = int | None
"""A bound of a slice, or None."""


@operator("view", "reshape", "_unsafe_view", "squeeze.dims", "squeeze.dim", "squeeze", "unsqueeze", trivial=True)
def view(call: Call, x: Tensor, *given: object) -> Tensor:
    """Reshape to the call's shape, in row-major order; `given`, the operator's further arguments, is not read."""
    return reshape(x, call.shape, call.name)


@operator("permute", trivial=True)
def permute(call: Call, x: Tensor, dims: Sequence[int]) -> Tensor:
    """Permute the dimensions: dimension d of the result is dimension dims[d] of x."""
    order = [dimension(d, x.rank) for d in dims]
    return x if order == sorted(order) else nn.transpose(x, order, call.name)


@operator("transpose.int", trivial=True)
def transpose(call: Call, x: Tensor, first: int, second: int) -> Tensor:
    """Swap two dimensions."""
    order = list(range(x.rank))
    if order:
        a, b = dimension(first, x.rank), dimension(second, x.rank)
        order[a], order[b] = order[b], order[a]
    return permute(call, x, order)


@operator("t", trivial=True)
def t(call: Call, x: Tensor) -> Tensor:
    """Transpose a matrix."""
    return permute(call, x, list(range(x.rank))[::-1])


@operator("expand", trivial=True)
def expand(call: Call, x: Tensor, size: Sequence[int], implicit: bool = False) -> Tensor:
    """Broadcast to the call's shape: repeat dimensions of extent 1, and add leading ones. `size` and `implicit` are not
    read."""
    return x if x.shape == call.shape else nn.broadcast_to(x, call.shape, call.name)


@operator("select.int", trivial=True)
def select(call: Call, x: Tensor, dim: int, index: int) -> Tensor:
    """The slice at an index of a dimension, which is dropped; a negative index counts from the end."""
    axis = dimension(dim, x.rank)
    position = index % x.shape[axis]
    return compute(call.shape, lambda *i: x[(*i[:axis], position, *i[axis:])], call.name)


@operator("slice.Tensor", trivial=True)
def slice(call: Call, x: Tensor, dim: int = 0, start: End = None, end: End = None, step: int = 1) -> Tensor:
    """Slice one dimension as Python's start:end:step does."""
    axis = dimension(dim, x.rank)
    positions = range(x.shape[axis])[start:end:step]
    if x.shape == call.shape:
        return x

    def element(*i: Index) -> Expr:
        return x[(*i[:axis], i[axis] * step + positions.start, *i[axis + 1 :])]

    return compute(call.shape, element, call.name)


def _split(call: Call, x: Tensor, sizes: Sequence[int], axis: int) -> tuple[Tensor, ...]:
    pieces, start = [], 0
    for n, size in enumerate(sizes):
        starts, stops = [0] * x.rank, list(x.shape)
        starts[axis], stops[axis] = start, start + size
        pieces.append(nn.slice(x, starts, stops, name=f"{call.name}.{n}"))
        start += size
    return tuple(pieces)


@operator("split_with_sizes", trivial=True)
def split_with_sizes(call: Call, x: Tensor, sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split a dimension into adjacent parts of the listed sizes."""
    return _split(call, x, sizes, dimension(dim, x.rank))


@operator("split.Tensor", trivial=True)
def split(call: Call, x: Tensor, size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a dimension into adjacent parts of one size; the last may be smaller. The sizes are those of the call's
    shapes; `size` is not read."""
    axis = dimension(dim, x.rank)
    return _split(call, x, [shape[axis] for shape in call.shapes], axis)


@operator("unbind.int", trivial=True)
def unbind(call: Call, x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Split into the slices along a dimension, which is dropped."""
    axis = dimension(dim, x.rank)
    slices = _split(call, x, [1] * x.shape[axis], axis)
    return tuple(nn.squeeze(slice_tensor, axis, f"{slice_tensor.name}.one") for slice_tensor in slices)


@operator("cat")
def cat(call: Call, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenate tensors along a dimension; tensors of another rank, which are empty, are skipped."""
    operands = [to_dtype(t, call.dtype, f"{call.name}.{n}") for n, t in enumerate(tensors) if t.rank == len(call.shape)]
    return nn.concat(operands, dimension(dim, len(call.shape)), call.name)


@operator("stack")
def stack(call: Call, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Stack tensors along a new dimension."""
    operands = [to_dtype(t, call.dtype, f"{call.name}.{n}") for n, t in enumerate(tensors)]
    return nn.stack(operands, dimension(dim, len(call.shape)), call.name)


@operator("flip", trivial=True)
def flip(call: Call, x: Tensor, dims: Sequence[int]) -> Tensor:
    """Reverse the order of elements along dimensions; x itself without any."""
    return nn.flip(x, [dimension(d, x.rank) for d in dims], call.name) if dims and x.rank else x


@operator("repeat")
def repeat(call: Call, x: Tensor, repeats: Sequence[int]) -> Tensor:
    """Tile the tensor `repeats` times along each dimension, with leading dimensions of extent 1 added as needed."""
    expanded = nn.reshape(x, (1,) * (len(repeats) - x.rank) + x.shape, f"{call.name}.raised")
    return nn.tile(expanded, list(repeats), call.name)


@operator("roll")
def roll(call: Call, x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """Rotate elements by shifts along dimensions. Raises Unsupported without dimensions: a roll of the flat tensor."""
    if not dims:
        raise Unsupported("a roll over all elements")
    shift_of = [0] * x.rank
    for shift, d in zip(shifts, dims, strict=True):
        shift_of[dimension(d, x.rank)] += shift

    rolled_dims = [d for d, n in enumerate(x.shape) if shift_of[d] % n]
    return nn.roll(x, [shift_of[d] for d in rolled_dims], rolled_dims, call.name)


@operator("constant_pad_nd")
def constant_pad_nd(call: Call, x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Pad with a number; negative widths crop. In `pad` the last dimension's two widths come first."""
    low_padding = [0] * x.rank
    for n in range(len(pad) // 2):
        low_padding[x.rank - 1 - n] = pad[2 * n]
    padded = x.padded(number(value, x.dtype).value)

    def element(*i: Index) -> Expr:
        return padded[tuple(index - first for index, first in zip(i, low_padding, strict=True))]

    return compute(call.shape, element, call.name)


@operator("diagonal", trivial=True)
def diagonal(call: Call, x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements on the diagonal i[dim2] - i[dim1] = offset, along a new last dimension; both dims are dropped."""
    first, second = dimension(dim1, x.rank), dimension(dim2, x.rank)

    def element(*i: Index) -> Expr:
        outer = list(i[:-1])
        diagonal_index = {first: i[-1] - min(offset, 0), second: i[-1] + max(offset, 0)}
        return x[tuple(diagonal_index[d] if d in diagonal_index else outer.pop(0) for d in range(x.rank))]

    return compute(call.shape, element, call.name)


@operator("unfold")
def unfold(call: Call, x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements of a dimension, `step` apart; their elements are in a new last dimension."""
    axis = dimension(dim, x.rank)

    def element(*i: Index) -> Expr:
        return x[(*i[:axis], i[axis] * step + i[-1], *i[axis + 1 : -1])]

    return compute(call.shape, element, call.name)


@operator("tril")
def tril(call: Call, x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements of each matrix with column - row <= diagonal, zero elsewhere."""
    return nn.tril(x, diagonal, call.name)


@operator("triu")
def triu(call: Call, x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements of each matrix with column - row >= diagonal, zero elsewhere."""
    return nn.triu(x, diagonal, call.name)


@operator("select_scatter")
def select_scatter(call: Call, x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    """x with the slice at an index of a dimension replaced by a source of that slice's shape."""
    axis = dimension(dim, x.rank)
    position = index % x.shape[axis]

    def element(*i: Index) -> Expr:
        value = read(source, (*i[:axis], *i[axis + 1 :]), x.dtype)
        return e.select(e.equal(i[axis], position), value, x[i])

    return compute(call.shape, element, call.name)


@operator("slice_scatter")
def slice_scatter(
    call: Call, x: Tensor, source: Tensor, dim: int = 0, start: End = None, end: End = None, step: int = 1
) -> Tensor:
    """x with the slice start:end:step of a dimension replaced by a source; x itself if the slice is empty."""
    axis = dimension(dim, x.rank)
    positions = range(x.shape[axis])[start:end:step]
    if not positions:
        return x

    def element(*i: Index) -> Expr:
        offset = i[axis] - positions.start
        inside = e.all_of(offset >= 0, offset < len(positions) * step, e.equal(offset % step, 0))
        value = e.select(inside, source[(*i[:axis], offset // step, *i[axis + 1 :])], zero_of(x))
        return e.select(inside, e.cast(value, x.dtype), x[i])

    return compute(call.shape, element, call.name)
