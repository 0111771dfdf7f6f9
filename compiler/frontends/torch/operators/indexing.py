"""Reads at indices that a tensor holds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.frontends.torch.operators.elements import dimension, read, working
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.gather import gather as te_gather
from compiler.te.index import Index
from compiler.te.nn.elementwise import read_at
from compiler.te.tensor import TableRead, Tensor, reduce_axis
from compiler.types.elements import INDICES

BAGGED = 256
"""The most rows that are compared with the ends of each bag: beyond, torch's loop is faster."""


@operator("embedding")
def embedding(call: Call, weight: Tensor, indices: Tensor, *options: object) -> Tensor:
    """A row of the weight for each index."""
    return nn.embedding(indices, weight, name=call.name)


@operator("index_select")
def index_select(call: Call, x: Tensor, dim: int, indices: Tensor) -> Tensor:
    """Positions of a dimension that a vector lists."""
    if not x.rank:
        return x
    return nn.gather(x, indices, dimension(dim, x.rank), name=call.name)


@operator("gather")
def gather(call: Call, x: Tensor, dim: int, indices: Tensor, sparse_grad: bool = False) -> Tensor:
    """An index of its own for each element, along a dimension."""
    along = dimension(dim, x.rank)

    def element(*i: Index) -> TableRead:
        return x.at(*i[:along], indices[i], *i[along + 1 :])

    return te_gather(call.shape, element, call.name)


_GRID_MODES = ("linear", "nearest", "cubic")
_GRID_PADDINGS = ("zeros", "border", "reflection")


@operator("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(call: Call, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    """An image read at places that another tensor holds."""
    return nn.grid_sample(x, grid, _GRID_MODES[mode], _GRID_PADDINGS[padding], align_corners, name=call.name)


@operator("_embedding_bag_forward_only", "_embedding_bag")
def embedding_bag(
    call: Call,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor | None, ...]:
    """The sum, mean or maximum of the rows of each bag; what gradients need has no te form."""
    count, bags = indices.shape[0], call.shape[0]
    if count > BAGGED:
        raise Unsupported(f"bags of {count} rows together; up to {BAGGED} are compared")
    rows, wide = nn.embedding(indices, weight, name=f"{call.name}.rows"), working(weight.dtype)
    k = reduce_axis(count, "k")

    def inside(b: Index) -> Expr:
        place = e.cast(k, offsets.dtype)
        end = offsets[b + 1] if include_last_offset else e.select(b + 1 <= bags - 1, offsets[b + 1], count)
        meets = (place >= offsets[b]) & (place < end)
        return meets if padding_idx < 0 else meets & e.not_equal(indices[k], padding_idx)

    def element(b: Index, d: Index) -> Reduce:
        value = e.cast(rows[k, d], wide)
        value = value if per_sample_weights is None else value * e.cast(per_sample_weights[k], wide)
        if mode == 2:
            return e.max(e.select(inside(b), value, e.const(-math.inf, wide)), axis=k)
        return e.sum(e.select(inside(b), value, e.const(0, wide)), axis=k)

    total = compute(call.shape, element, f"{call.name}.total")
    counted = compute((bags,), lambda b: e.sum(e.cast(inside(b), wide), axis=k), f"{call.name}.count")

    def bag(b: Index, d: Index) -> Expr:
        value: Expr = total[b, d]
        value = value / counted[b] if mode == 1 else value
        return e.cast(value if mode == 0 else e.select(counted[b] > 0.0, value, e.const(0, wide)), call.dtype)

    return compute(call.shape, bag, call.name), None, None, None


def wrapped(indices: Tensor, size: int, name: str) -> Tensor:
    """Indices, those below zero counted from the end."""

    def element(*i: Index) -> Expr:
        value = e.cast(read(indices, i, indices.dtype), "i64")
        return e.select(value < 0, value + size, value)

    return compute(indices.shape, element, name)


@operator("index.Tensor")
def index(call: Call, x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Elements at tensors of indices, which are broadcast; their dimensions stand where the first one was."""
    given = [*indices, *[None] * (x.rank - len(indices))]
    by_dimension = {d: t for d, t in enumerate(given) if t is not None}
    if any(t.dtype not in INDICES for t in by_dimension.values()):
        raise Unsupported("an index by truth values: the shape depends on them")
    places = {d: wrapped(t, x.shape[d], f"{call.name}.at{d}") for d, t in by_dimension.items()}
    rank = max(t.rank for t in places.values())
    together = sorted(places) == list(range(min(places), max(places) + 1))
    first = min(places) if together else 0

    def element(*i: Index) -> TableRead:
        table_index, plain_index = i[first : first + rank], [*i[:first], *i[first + rank :]]
        at = [read_at(places[d], table_index) if d in places else plain_index.pop(0) for d in range(x.rank)]
        return x.at(*at)

    return te_gather(call.shape, element, call.name)
