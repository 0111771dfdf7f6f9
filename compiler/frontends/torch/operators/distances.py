"""Distances of rows, binary search, histograms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from compiler.frontends.torch.operators.elements import Operand, fill, flatten, pointwise, read, to_dtype, wide_dtype
from compiler.frontends.torch.operators.reduction import vector_norm
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.constant import constant
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Index
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.dtypes import is_float

MAX_BOUNDS = 256
"""The most bounds of a search, or bins of a histogram, each compared with each number: with more, torch is faster."""


@operator("_cdist_forward")
def cdist(call: Call, x: Tensor, y: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    """The p-norm of x[..., i, :] - y[..., j, :] for each pair (i, j) of rows; batches broadcast. compute_mode, torch's
    choice of an algorithm, is ignored."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])

    def difference(*at: Index) -> Expr:
        *first, i, j, k = at
        left = read(x, (*first, i, k), wide_dtype(x.dtype))
        return left - read(y, (*first, j, k), wide_dtype(x.dtype))

    shape = (*batch, x.shape[-2], y.shape[-2], x.shape[-1])
    return _distance(call, compute(shape, difference, f"{call.name}.differences"), p)


def _distance(call: Call, differences: Tensor, p: float) -> Tensor:
    """The p-norm over the last dimension; for p = 0 the number of non-zero elements, NaN for a row with a NaN."""
    if p != 0:
        return vector_norm(call, differences, p, [-1])
    inner = Call(f"{call.name}.counted", (differences.shape,), (differences.dtype,), differences.dtype)
    non_zero = pointwise(inner, lambda v: e.select(e.equal(v, v), e.cast(e.not_equal(v, 0), v.dtype), v), differences)
    return vector_norm(call, non_zero, 1, [-1])


@operator("_pdist_forward")
def pdist(call: Call, x: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of x[i] - x[j] for each pair i < j of a matrix's rows, as a vector in the order of (i, j)."""
    pairs = np.triu_indices(x.shape[0], 1)
    left, right = (
        nn.gather(x, constant(np.ascontiguousarray(rows), "i64", f"{call.name}.rows{n}"), 0, name=f"{call.name}.row{n}")
        for n, rows in enumerate(pairs)
    )
    differences_call = Call(f"{call.name}.differences", (left.shape,), (wide_dtype(x.dtype),), wide_dtype(x.dtype))
    return _distance(call, pointwise(differences_call, lambda a, b: a - b, left, right), p)


@operator("dist")
def dist(call: Call, x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    """The p-norm of x - y over all elements, with broadcasting."""
    shape, calc_dtype = np.broadcast_shapes(x.shape, y.shape), wide_dtype(call.dtype)
    differences = Call(f"{call.name}.differences", (shape,), (calc_dtype,), calc_dtype)
    return vector_norm(call, pointwise(differences, lambda a, b: a - b, x, y), p)


def _search(call: Call, x: Tensor, bound: Callable[..., Expr], count: int, right: bool) -> Tensor:
    """Count for each element of x the values bound(index, k), k < count, below it, or with `right` those not above it;
    for a NaN the count is `count`. Raises Unsupported for more than MAX_BOUNDS values."""
    if count > MAX_BOUNDS:
        raise Unsupported(f"a search among {count} bounds; up to {MAX_BOUNDS} are compared")
    k = reduce_axis(count, "k")

    def element(*i: Index) -> Reduce:
        value, bound_value = x[i], bound(i, k)
        is_after = bound_value > value if right else bound_value >= value
        return e.sum(e.cast(~is_after, call.dtype), axis=k)

    return compute(call.shape, element, call.name)


@operator("bucketize.Tensor")
def bucketize(call: Call, x: Tensor, bounds: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of sorted bounds below each element of x; with `right`, of those not above it. The result's dtype is
    the call's; `out_int32` is not read. Raises Unsupported for more than MAX_BOUNDS bounds."""
    typed_bounds = to_dtype(bounds, x.dtype, f"{call.name}.bounds")
    return _search(call, x, lambda i, k: typed_bounds[k], bounds.shape[0], right)


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
    """The number of bounds below each element of x, or not above it with `right` or side="right". Bounds are a vector,
    or rows for the rows of x; they are sorted, or else `sorter` has the indices that sort them. The result's dtype is
    the call's; `out_int32` is not read. Raises Unsupported for more than MAX_BOUNDS bounds."""
    values = x if isinstance(x, Tensor) else fill((), x, bounds.dtype, f"{call.name}.value")
    ordered = bounds if sorter is None else nn.take_along_axis(bounds, sorter, -1, name=f"{call.name}.sorted")
    ordered = to_dtype(ordered, values.dtype, f"{call.name}.bounds")
    bound = (lambda i, k: ordered[k]) if bounds.rank == 1 else (lambda i, k: ordered[(*i[:-1], k)])
    return _search(call, values, bound, bounds.shape[-1], right or side == "right")


@operator("histogram.bins_tensor")
def histogram(
    call: Call, x: Tensor, edges: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """The count of elements, or sum of weights, in each bin, and the edges; the last bin includes its upper edge. With
    `density` counts are divided by their sum and by the bin's width. Raises Unsupported for more than MAX_BOUNDS bins.
    """
    counts = _binned(call, x, lambda b: edges[b], edges.shape[0] - 1, weight)
    if not density:
        return to_dtype(counts, call.dtype, call.name), edges
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
    """`histogram` for `bins` bins of equal width, in a range or, for None, between x's extremes, with the same weights
    and density. Raises Unsupported for more than MAX_BOUNDS bins."""
    return histogram(call, x, _edges(call, x, bins, range, 0.5), weight=weight, density=density)


@operator("histc")
def histc(call: Call, x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The number of elements in each of equal bins from min to max, or if these are equal, between x's extremes. Raises
    Unsupported for integers and for more than MAX_BOUNDS bins."""
    if not is_float(x.dtype):
        raise Unsupported("a histogram of integers")
    edges = _edges(call, x, bins, None if min == max else (min, max), 1.0)
    return to_dtype(_binned(call, x, lambda b: edges[b], bins, None), call.dtype, call.name)


def _edges(call: Call, x: Tensor, bins: int, limits: Sequence[float] | None, margin: float) -> Tensor:
    """The bins + 1 edges of equal bins between two limits (None: x's extremes), computed from the nearer end as in
    torch's linspace; if the limits are equal, each is moved outwards by `margin`."""
    if limits is None:
        flat = flatten(x, f"{call.name}.flat")
        low, high = nn.min(flat, name=f"{call.name}.low"), nn.max(flat, name=f"{call.name}.high")
    else:
        low, high = (
            fill((), n, x.dtype, f"{call.name}.{label}") for n, label in zip(limits, ("low", "high"), strict=True)
        )

    def element(b: Index) -> Expr:
        first: Expr = low[()]
        last: Expr = high[()]
        is_degenerate = e.equal(first, last)
        first, last = e.select(is_degenerate, first - margin, first), e.select(is_degenerate, last + margin, last)
        step = (last - first) * (1.0 / bins) if bins & (bins - 1) == 0 else (last - first) / float(bins)
        from_low = first + step * e.cast(b, x.dtype)
        from_high = last - step * e.cast(bins - b, x.dtype)
        return e.select(e.cast(b, "i64") < (bins + 1) // 2, from_low, from_high)

    return compute((bins + 1,), element, f"{call.name}.edges")


def _binned(call: Call, x: Tensor, edge: Callable[[Index], Expr], bins: int, weight: Tensor | None) -> Tensor:
    count, calc_dtype = math.prod(x.shape), wide_dtype(call.dtype)
    flat = nn.reshape(x, (count,), f"{call.name}.numbers")
    weights = None if weight is None else nn.reshape(weight, (count,), f"{call.name}.weights")
    if bins > MAX_BOUNDS:
        raise Unsupported(f"a histogram of {bins} bins; up to {MAX_BOUNDS} are compared")
    k = reduce_axis(count, "k")

    def element(b: Index) -> Reduce:
        is_last = e.equal(e.cast(b, "i64"), e.const(bins - 1, "i64"))
        upper = edge(b + 1)
        inside = (flat[k] >= edge(b)) & ((flat[k] < upper) | (is_last & e.equal(flat[k], upper)))
        element_weight = e.const(1, calc_dtype) if weights is None else e.cast(weights[k], calc_dtype)
        return e.sum(e.select(inside, element_weight, e.const(0, calc_dtype)), axis=k)

    return compute((bins,), element, f"{call.name}.counts")
