"""Distances of rows, and places among sorted numbers and bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from compiler.frontends.torch.operators.elements import Operand, converted, filled, flattened, pointwise, read, working
from compiler.frontends.torch.operators.reduction import vector_norm
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.constant import constant
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Index
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.elements import is_float

SEARCHED = 256
"""The most bounds that each number is compared with: beyond, torch's search is faster."""


@operator("_cdist_forward")
def cdist(call: Call, x: Tensor, y: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    """The p-norm of the difference of each row of x and each of y."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])

    def difference(*at: Index) -> Expr:
        *first, i, j, k = at
        left = read(x, (*first, i, k), working(x.dtype))
        return left - read(y, (*first, j, k), working(x.dtype))

    shape = (*batch, x.shape[-2], y.shape[-2], x.shape[-1])
    return _distance(call, compute(shape, difference, f"{call.name}.differences"), p)


def _distance(call: Call, differences: Tensor, p: float) -> Tensor:
    """The p-norm of rows; that of order 0, which counts what is not zero, is NaN where a row has one."""
    if p != 0:
        return vector_norm(call, differences, p, [-1])
    wide = Call(f"{call.name}.counted", (differences.shape,), (differences.dtype,), differences.dtype)
    counted = pointwise(wide, lambda v: e.select(e.equal(v, v), e.cast(e.not_equal(v, 0), v.dtype), v), differences)
    return vector_norm(call, counted, 1, [-1])


@operator("_pdist_forward")
def pdist(call: Call, x: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference of each two rows."""
    pairs = np.triu_indices(x.shape[0], 1)
    left, right = (
        nn.gather(x, constant(np.ascontiguousarray(rows), "i64", f"{call.name}.rows{n}"), 0, name=f"{call.name}.row{n}")
        for n, rows in enumerate(pairs)
    )
    wide = Call(f"{call.name}.differences", (left.shape,), (working(x.dtype),), working(x.dtype))
    return _distance(call, pointwise(wide, lambda a, b: a - b, left, right), p)


@operator("dist")
def dist(call: Call, x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference of two tensors."""
    shape, wide = np.broadcast_shapes(x.shape, y.shape), working(call.dtype)
    differences = Call(f"{call.name}.differences", (shape,), (wide,), wide)
    return vector_norm(call, pointwise(differences, lambda a, b: a - b, x, y), p)


def _place(call: Call, x: Tensor, bound: Callable[..., Expr], count: int, right: bool) -> Tensor:
    """How many bounds are not above, or not behind, each number; NaN stands behind all."""
    if count > SEARCHED:
        raise Unsupported(f"a search among {count} bounds; up to {SEARCHED} are compared")
    k = reduce_axis(count, "k")

    def element(*i: Index) -> Reduce:
        value, limit = x[i], bound(i, k)
        behind = limit > value if right else limit >= value
        return e.sum(e.cast(~behind, call.dtype), axis=k)

    return compute(call.shape, element, call.name)


@operator("bucketize.Tensor")
def bucketize(call: Call, x: Tensor, bounds: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bin of each number among sorted bounds."""
    common = converted(bounds, x.dtype, f"{call.name}.bounds")
    return _place(call, x, lambda i, k: common[k], bounds.shape[0], right)


@operator("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    call: Call,
    bounds: Tensor,
    x: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each number would be put in among sorted bounds, of each row."""
    values = x if isinstance(x, Tensor) else filled((), x, bounds.dtype, f"{call.name}.value")
    ordered = bounds if sorter is None else nn.take_along_axis(bounds, sorter, -1, name=f"{call.name}.sorted")
    ordered = converted(ordered, values.dtype, f"{call.name}.bounds")
    bound = (lambda i, k: ordered[k]) if bounds.rank == 1 else (lambda i, k: ordered[(*i[:-1], k)])
    return _place(call, values, bound, bounds.shape[-1], right or side == "right")


@operator("histogram.bins_tensor")
def histogram(
    call: Call, x: Tensor, edges: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """How many numbers, or how much weight, each bin has, the last one with its upper edge."""
    counts = _binned(call, x, lambda b: edges[b], edges.shape[0] - 1, weight)
    if not density:
        return converted(counts, call.dtype, call.name), edges
    total = nn.sum(counts, name=f"{call.name}.total")

    def element(b: Index) -> Expr:
        width = e.cast(edges[b + 1], counts.dtype) - e.cast(edges[b], counts.dtype)
        return e.cast(counts[b] / total[()] / width, call.dtype)

    return compute(counts.shape, element, call.name), edges


@operator("histogram.bin_ct")
def histogram_of_count(
    call: Call,
    x: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """The same of equal bins, between two numbers or the extremes of all."""
    return histogram(call, x, _edges(call, x, bins, range, 0.5), weight=weight, density=density)


@operator("histc")
def histc(call: Call, x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many numbers each of equal bins has, between two numbers or the extremes of all."""
    if not is_float(x.dtype):
        raise Unsupported("a histogram of integers")
    edges = _edges(call, x, bins, None if min == max else (min, max), 1.0)
    return converted(_binned(call, x, lambda b: edges[b], bins, None), call.dtype, call.name)


def _edges(call: Call, x: Tensor, bins: int, between: Sequence[float] | None, margin: float) -> Tensor:
    """Edges of equal bins, counted from both ends as torch's linspace does; of equal extremes a margin to both
    sides."""
    if between is None:
        flat = flattened(x, f"{call.name}.flat")
        low, high = nn.min(flat, name=f"{call.name}.low"), nn.max(flat, name=f"{call.name}.high")
    else:
        low, high = (
            filled((), n, x.dtype, f"{call.name}.{label}") for n, label in zip(between, ("low", "high"), strict=True)
        )

    def element(b: Index) -> Expr:
        first: Expr = low[()]
        last: Expr = high[()]
        level = e.equal(first, last)
        first, last = e.select(level, first - margin, first), e.select(level, last + margin, last)
        step = (last - first) * (1.0 / bins) if bins & (bins - 1) == 0 else (last - first) / float(bins)
        ahead = first + step * e.cast(b, x.dtype)
        behind = last - step * e.cast(bins - b, x.dtype)
        return e.select(e.cast(b, "i64") < (bins + 1) // 2, ahead, behind)

    return compute((bins + 1,), element, f"{call.name}.edges")


def _binned(call: Call, x: Tensor, edge: Callable[[Index], Expr], bins: int, weight: Tensor | None) -> Tensor:
    count, wide = math.prod(x.shape), working(call.dtype)
    flat = nn.reshape(x, (count,), f"{call.name}.numbers")
    shares = None if weight is None else nn.reshape(weight, (count,), f"{call.name}.weights")
    if bins > SEARCHED:
        raise Unsupported(f"a histogram of {bins} bins; up to {SEARCHED} are compared")
    k = reduce_axis(count, "k")

    def element(b: Index) -> Reduce:
        last = e.equal(e.cast(b, "i64"), e.const(bins - 1, "i64"))
        upper = edge(b + 1)
        inside = (flat[k] >= edge(b)) & ((flat[k] < upper) | (last & e.equal(flat[k], upper)))
        share = e.const(1, wide) if shares is None else e.cast(shares[k], wide)
        return e.sum(e.select(inside, share, e.const(0, wide)), axis=k)

    return compute((bins,), element, f"{call.name}.counts")
