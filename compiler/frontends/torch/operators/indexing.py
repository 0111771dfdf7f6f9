"""Reads at data-dependent indices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.frontends.torch.operators.elements import dimension, read, wide_dtype
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.gather import gather as te_gather
from compiler.te.index import Index
from compiler.te.nn.elementwise import read_at
from compiler.te.tensor import TableRead, Tensor, reduce_axis
from compiler.types.dtypes import INDICES

MAX_BAG_ROWS = 256
"""The most rows of all bags together, each compared with the ends of each bag: with more, torch's loop is faster."""


@operator("embedding")
def embedding(call: Call, weight: Tensor, indices: Tensor, *options: object) -> Tensor:
    """The weight's row at each index, along a new last dimension. options: torch's padding index and settings of
    gradients, which have no effect."""
    return nn.embedding(indices, weight, name=call.name)


@operator("index_select")
def index_select(call: Call, x: Tensor, dim: int, indices: Tensor) -> Tensor:
    """The slices of x at a vector of indices along a dimension; x itself without dimensions."""
    if not x.rank:
        return x
    return nn.gather(x, indices, dimension(dim, x.rank), name=call.name)


@operator("gather")
def gather(call: Call, x: Tensor, dim: int, indices: Tensor, sparse_grad: bool = False) -> Tensor:
    """x[..., indices[i], ...] for each index i of the result, with indices[i] in place of i[dim]. `sparse_grad`, a
    setting of gradients, has no effect."""
    axis = dimension(dim, x.rank)

    def element(*i: Index) -> TableRead:
        return x.at(*i[:axis], indices[i], *i[axis + 1 :])

    return te_gather(call.shape, element, call.name)


_GRID_MODES = ("linear", "nearest", "cubic")
_GRID_PADDINGS = ("zeros", "border", "reflection")


@operator("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(call: Call, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    """Sample images [N, C, (D,) H, W] at the coordinates in a grid [N, (D,) H, W, 2 or 3]; -1 and 1 are the ends of an
    extent, or with `align_corners` the centres of its outermost elements. mode: 0 linear, 1 nearest, 2 cubic. padding:
    0 zeros, 1 border, 2 reflection."""
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
    """The sum, mean or maximum (mode 0, 1, 2) of the weight's rows in each bag, times per_sample_weights, 0 for an
    empty bag; and None for three results that gradients need. Bag b is indices[offsets[b] : offsets[b + 1]] without
    `padding_idx`, or all of these if that is negative; without include_last_offset the last bag has the remaining
    indices. scale_grad_by_freq and sparse, settings of gradients, have no effect. Raises Unsupported for more than
    MAX_BAG_ROWS indices."""
    count, bags = indices.shape[0], call.shape[0]
    if count > MAX_BAG_ROWS:
        raise Unsupported(f"bags of {count} rows together; up to {MAX_BAG_ROWS} are compared")
    rows, calc_dtype = nn.embedding(indices, weight, name=f"{call.name}.rows"), wide_dtype(weight.dtype)
    k = reduce_axis(count, "k")

    def in_bag(b: Index) -> Expr:
        position = e.cast(k, offsets.dtype)
        end = offsets[b + 1] if include_last_offset else e.select(b + 1 <= bags - 1, offsets[b + 1], count)
        is_inside = (position >= offsets[b]) & (position < end)
        return is_inside if padding_idx < 0 else is_inside & e.not_equal(indices[k], padding_idx)

    def element(b: Index, d: Index) -> Reduce:
        value = e.cast(rows[k, d], calc_dtype)
        value = value if per_sample_weights is None else value * e.cast(per_sample_weights[k], calc_dtype)
        if mode == 2:
            return e.max(e.select(in_bag(b), value, e.const(-math.inf, calc_dtype)), axis=k)
        return e.sum(e.select(in_bag(b), value, e.const(0, calc_dtype)), axis=k)

    total = compute(call.shape, element, f"{call.name}.total")
    counted = compute((bags,), lambda b: e.sum(e.cast(in_bag(b), calc_dtype), axis=k), f"{call.name}.count")

    def bag(b: Index, d: Index) -> Expr:
        value: Expr = total[b, d]
        value = value / counted[b] if mode == 1 else value
        return e.cast(value if mode == 0 else e.select(counted[b] > 0.0, value, e.const(0, calc_dtype)), call.dtype)

    return compute(call.shape, bag, call.name), None, None, None


def wrap_indices(indices: Tensor, size: int, name: str) -> Tensor:
    """Cast indices to i64, with the extent `size` added to negative ones."""

    def element(*i: Index) -> Expr:
        value = e.cast(read(indices, i, indices.dtype), "i64")
        return e.select(value < 0, value + size, value)

    return compute(indices.shape, element, name)


@operator("index.Tensor")
def index(call: Call, x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Elements at index tensors, which broadcast and whose dimensions replace the indexed ones, or come first if these
    are not adjacent; negative ones count from the end, None keeps a dimension. Raises Unsupported for masks."""
    padded_indices = [*indices, *[None] * (x.rank - len(indices))]
    by_dimension = {d: t for d, t in enumerate(padded_indices) if t is not None}
    if any(t.dtype not in INDICES for t in by_dimension.values()):
        raise Unsupported("an index by truth values: the shape depends on them")
    wrapped = {d: wrap_indices(t, x.shape[d], f"{call.name}.at{d}") for d, t in by_dimension.items()}
    rank = max(t.rank for t in wrapped.values())
    is_adjacent = sorted(wrapped) == list(range(min(wrapped), max(wrapped) + 1))
    first = min(wrapped) if is_adjacent else 0

    def element(*i: Index) -> TableRead:
        table_index, plain_index = i[first : first + rank], [*i[:first], *i[first + rank :]]
        position = [read_at(wrapped[d], table_index) if d in wrapped else plain_index.pop(0) for d in range(x.rank)]
        return x.at(*position)

    return te_gather(call.shape, element, call.name)
