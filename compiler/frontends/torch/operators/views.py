"""Operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from compiler.frontends.torch.operators.elements import converted, dimension, number, read, reshaped, zero
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor

End: TypeAlias = int | None
"""An end of a range; None for the end of the dimension."""


@operator("view", "reshape", "_unsafe_view", "squeeze.dims", "squeeze.dim", "squeeze", "unsqueeze", moves=True)
def view(call: Call, x: Tensor, *given: object) -> Tensor:
    """The elements in row-major order under another shape."""
    return reshaped(x, call.shape, call.name)


@operator("permute", moves=True)
def permute(call: Call, x: Tensor, dims: Sequence[int]) -> Tensor:
    """The dimensions in another order."""
    order = [dimension(d, x.rank) for d in dims]
    return x if order == sorted(order) else nn.transpose(x, order, call.name)


@operator("transpose.int", moves=True)
def transpose(call: Call, x: Tensor, first: int, second: int) -> Tensor:
    """Two dimensions exchanged."""
    order = list(range(x.rank))
    if order:
        a, b = dimension(first, x.rank), dimension(second, x.rank)
        order[a], order[b] = order[b], order[a]
    return permute(call, x, order)


@operator("t", moves=True)
def t(call: Call, x: Tensor) -> Tensor:
    """A matrix transposed."""
    return permute(call, x, list(range(x.rank))[::-1])


@operator("expand", moves=True)
def expand(call: Call, x: Tensor, size: Sequence[int], implicit: bool = False) -> Tensor:
    """Dimensions of extent 1 repeated."""
    return x if x.shape == call.shape else nn.broadcast_to(x, call.shape, call.name)


@operator("select.int", moves=True)
def select(call: Call, x: Tensor, dim: int, index: int) -> Tensor:
    """One position of a dimension."""
    along = dimension(dim, x.rank)
    place = index % x.shape[along]
    return compute(call.shape, lambda *i: x[(*i[:along], place, *i[along:])], call.name)


@operator("slice.Tensor", moves=True)
def slice(call: Call, x: Tensor, dim: int = 0, start: End = None, end: End = None, step: int = 1) -> Tensor:
    """Positions of a dimension, from start to end by a step."""
    along = dimension(dim, x.rank)
    first = range(x.shape[along])[start:end:step]
    if x.shape == call.shape:
        return x

    def element(*i: Index) -> Expr:
        return x[(*i[:along], i[along] * step + first.start, *i[along + 1 :])]

    return compute(call.shape, element, call.name)


def _cut(call: Call, x: Tensor, sizes: Sequence[int], along: int) -> tuple[Tensor, ...]:
    parts, start = [], 0
    for n, size in enumerate(sizes):
        starts, stops = [0] * x.rank, list(x.shape)
        starts[along], stops[along] = start, start + size
        parts.append(nn.slice(x, starts, stops, name=f"{call.name}.{n}"))
        start += size
    return tuple(parts)


@operator("split_with_sizes", moves=True)
def split_with_sizes(call: Call, x: Tensor, sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """A dimension cut into parts of given sizes."""
    return _cut(call, x, sizes, dimension(dim, x.rank))


@operator("split.Tensor", moves=True)
def split(call: Call, x: Tensor, size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """A dimension cut into parts of one size."""
    along = dimension(dim, x.rank)
    return _cut(call, x, [shape[along] for shape in call.shapes], along)


@operator("unbind.int", moves=True)
def unbind(call: Call, x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The positions of a dimension, one by one."""
    along = dimension(dim, x.rank)
    parts = _cut(call, x, [1] * x.shape[along], along)
    return tuple(nn.squeeze(part, along, f"{part.name}.one") for part in parts)


@operator("cat")
def cat(call: Call, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one behind the other."""
    parts = [converted(t, call.dtype, f"{call.name}.{n}") for n, t in enumerate(tensors) if t.rank == len(call.shape)]
    return nn.concat(parts, dimension(dim, len(call.shape)), call.name)


@operator("stack")
def stack(call: Call, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors side by side along a new dimension."""
    parts = [converted(t, call.dtype, f"{call.name}.{n}") for n, t in enumerate(tensors)]
    return nn.stack(parts, dimension(dim, len(call.shape)), call.name)


@operator("flip", moves=True)
def flip(call: Call, x: Tensor, dims: Sequence[int]) -> Tensor:
    """Dimensions in reverse order."""
    return nn.flip(x, [dimension(d, x.rank) for d in dims], call.name) if dims and x.rank else x


@operator("repeat")
def repeat(call: Call, x: Tensor, repeats: Sequence[int]) -> Tensor:
    """The tensor side by side, so many times in each dimension."""
    raised = nn.reshape(x, (1,) * (len(repeats) - x.rank) + x.shape, f"{call.name}.raised")
    return nn.tile(raised, list(repeats), call.name)


@operator("roll")
def roll(call: Call, x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """Positions moved along dimensions, the last ones to the front."""
    if not dims:
        raise Unsupported("a roll over all elements")
    moved = [0] * x.rank
    for shift, d in zip(shifts, dims, strict=True):
        moved[dimension(d, x.rank)] += shift

    turned = [d for d, n in enumerate(x.shape) if moved[d] % n]
    return nn.roll(x, [moved[d] for d in turned], turned, call.name)


@operator("constant_pad_nd")
def constant_pad_nd(call: Call, x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """The tensor in a border of a number; a negative border cuts."""
    before = [0] * x.rank
    for n in range(len(pad) // 2):
        before[x.rank - 1 - n] = pad[2 * n]
    source = x.padded(number(value, x.dtype).value)

    def element(*i: Index) -> Expr:
        return source[tuple(index - first for index, first in zip(i, before, strict=True))]

    return compute(call.shape, element, call.name)


@operator("diagonal", moves=True)
def diagonal(call: Call, x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements whose indices in two dimensions differ by an offset."""
    first, second = dimension(dim1, x.rank), dimension(dim2, x.rank)

    def element(*i: Index) -> Expr:
        plain_index = list(i[:-1])
        at = {first: i[-1] - min(offset, 0), second: i[-1] + max(offset, 0)}
        return x[tuple(at[d] if d in at else plain_index.pop(0) for d in range(x.rank))]

    return compute(call.shape, element, call.name)


@operator("unfold")
def unfold(call: Call, x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Windows of a dimension, their elements in a new last one."""
    along = dimension(dim, x.rank)

    def element(*i: Index) -> Expr:
        return x[(*i[:along], i[along] * step + i[-1], *i[along + 1 : -1])]

    return compute(call.shape, element, call.name)


@operator("tril")
def tril(call: Call, x: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of each matrix, zero elsewhere."""
    return nn.tril(x, diagonal, call.name)


@operator("triu")
def triu(call: Call, x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of each matrix, zero elsewhere."""
    return nn.triu(x, diagonal, call.name)


@operator("select_scatter")
def select_scatter(call: Call, x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    """The tensor, with one position of a dimension taken from another one."""
    along = dimension(dim, x.rank)
    place = index % x.shape[along]

    def element(*i: Index) -> Expr:
        new = read(source, (*i[:along], *i[along + 1 :]), x.dtype)
        return e.select(e.equal(i[along], place), new, x[i])

    return compute(call.shape, element, call.name)


@operator("slice_scatter")
def slice_scatter(
    call: Call, x: Tensor, source: Tensor, dim: int = 0, start: End = None, end: End = None, step: int = 1
) -> Tensor:
    """The tensor, with positions of a dimension taken from another one."""
    along = dimension(dim, x.rank)
    taken = range(x.shape[along])[start:end:step]
    if not taken:
        return x

    def element(*i: Index) -> Expr:
        at = i[along] - taken.start
        inside = e.all_of(at >= 0, at < len(taken) * step, e.equal(at % step, 0))
        new = e.select(inside, source[(*i[:along], at // step, *i[along + 1 :])], zero(x))
        return e.select(inside, e.cast(new, x.dtype), x[i])

    return compute(call.shape, element, call.name)
