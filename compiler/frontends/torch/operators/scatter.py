"""Writes at indices that a tensor holds: each place compares its index with those of all that may land there."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import and_
from typing import TypeAlias

import numpy as np

from compiler.frontends.torch.operators.elements import (
    Operand,
    converted,
    dimension,
    each,
    filled,
    flattened,
    pointwise,
    read,
    reshaped,
    working,
    zero,
)
from compiler.frontends.torch.operators.indexing import wrapped
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.gather import gather as te_gather
from compiler.te.index import Axis, Index
from compiler.te.tensor import TableRead, Tensor, reduce_axis
from compiler.types.elements import INDICES, is_float, limits

LANDED = 256
"""The most elements that are compared for each place: beyond, torch's loop is faster."""
At: TypeAlias = Sequence[Index]


@dataclass(frozen=True)
class Landing:
    """Elements that may land on a place.

    count: of them. meets: whether the k-th does. value: the k-th. table: the one at a place that a tensor holds.
    """

    count: int
    meets: Callable[[At, Axis], Expr]
    value: Callable[[At, Axis], Expr]
    table: Callable[[At, Tensor], TableRead]


def _landed(call: Call, x: Tensor, landing: Landing, reduce: str | None, include_self: bool = True) -> Tensor:
    """A tensor with elements of another one written to it, or combined with its own."""
    if landing.count > LANDED:
        raise Unsupported(f"a scatter of {landing.count} elements for each place; up to {LANDED} are compared")
    k = reduce_axis(landing.count, "k")
    if reduce is None:
        return _replaced(call, x, landing, k)
    wide = working(call.dtype)
    neutral = _neutral(reduce, wide)
    combine = {"sum": e.sum, "mean": e.sum, "prod": e.prod, "amax": e.max, "amin": e.min}[reduce]

    def combined(*i: Index) -> Reduce:
        return combine(e.select(landing.meets(i, k), e.cast(landing.value(i, k), wide), neutral), axis=k)

    def counted(*i: Index) -> Reduce:
        return e.sum(e.cast(landing.meets(i, k), "i64"), axis=k)

    total = compute(x.shape, combined, f"{call.name}.landed")
    if include_self and reduce != "mean":
        return pointwise(call, lambda a, b: _joined(reduce, a, b), x, total)
    count = compute(x.shape, counted, f"{call.name}.count")

    def element(*i: Index) -> Expr:
        own: Expr = e.cast(x[i], wide)
        sums: Expr = total[i]
        number: Expr = count[i]
        if reduce == "mean":
            sums = sums + own if include_self else sums
            number = number + 1 if include_self else number
            divisor = e.cast(e.maximum(number, 1), wide)
            sums = sums / divisor if is_float(wide) else sums // divisor
        return e.cast(e.select(count[i] > 0, sums, own), call.dtype)

    return compute(x.shape, element, call.name)


def _replaced(call: Call, x: Tensor, landing: Landing, k: Axis) -> Tensor:
    """The last element that lands on each place, or what is there."""

    def last(*i: Index) -> Reduce:
        return e.max(e.select(landing.meets(i, k), e.cast(k, "i64"), e.const(-1, "i64")), axis=k)

    places = compute(x.shape, last, f"{call.name}.last")
    landed = te_gather(x.shape, lambda *i: landing.table(i, places), f"{call.name}.landed")
    return compute(x.shape, lambda *i: e.select(places[i] >= 0, e.cast(landed[i], call.dtype), x[i]), call.name)


def _neutral(reduce: str, dtype: str) -> Expr:
    if reduce in ("amax", "amin"):
        low, high = (-math.inf, math.inf) if is_float(dtype) else limits(dtype)
        return e.const(low if reduce == "amax" else high, dtype)
    return e.const(int(reduce == "prod"), dtype)


def _joined(reduce: str, a: Expr, b: Expr) -> Expr:
    if reduce == "prod":
        return a * b
    return a + b if reduce == "sum" else e.maximum(a, b) if reduce == "amax" else e.minimum(a, b)


def _along(call: Call, x: Tensor, dim: int, index: Tensor, source: Operand) -> tuple[Tensor, Landing]:
    """The part of a tensor that scatter writes to, and what lands there: an index of its own for each element."""
    d = dimension(dim, x.rank)
    window = tuple(x.shape[d] if n == d else size for n, size in enumerate(index.shape))
    part = x if window == x.shape else nn.slice(x, [0] * x.rank, list(window), name=f"{call.name}.window")
    values = source if isinstance(source, Tensor) else filled(index.shape, source, x.dtype, f"{call.name}.value")
    return part, _landing(d, index.shape[d], lambda i, k: index[(*i[:d], k, *i[d + 1 :])], values)


def _landing(d: int, count: int, index: Callable[[At, Axis], Expr], values: Tensor) -> Landing:
    """What lands along a dimension, at an index: an element of some values at the same place otherwise."""
    return Landing(
        count,
        lambda i, k: e.equal(e.cast(index(i, k), "i64"), e.cast(i[d], "i64")),
        lambda i, k: values[(*i[:d], k, *i[d + 1 :])],
        lambda i, places: values.at(*i[:d], places[tuple(i)], *i[d + 1 :]),
    )


def _scattered(
    call: Call, x: Tensor, dim: int, index: Tensor, source: Operand, reduce: str | None, include_self: bool = True
) -> Tensor:
    if not x.rank or not index.rank:
        flat, indices = _with_rank(x, f"{call.name}.flat"), _with_rank(index, f"{call.name}.index")
        values = _with_rank(source, f"{call.name}.source") if isinstance(source, Tensor) else source
        inner = Call(f"{call.name}.one", (flat.shape,), call.dtypes, call.common)
        return nn.reshape(_scattered(inner, flat, dim, indices, values, reduce, include_self), call.shape, call.name)
    part, landing = _along(call, x, dim, index, source)
    if part is x:
        return _landed(call, x, landing, reduce, include_self)
    inner = Call(f"{call.name}.part", (part.shape,), call.dtypes, call.common)
    written = _landed(inner, part, landing, reduce, include_self)

    def element(*i: Index) -> Expr:
        inside = e.all_of(*(index <= size - 1 for index, size in zip(i, part.shape, strict=True)))
        return e.select(inside, e.select(inside, written[i], zero(x)), x[i])

    return compute(x.shape, element, call.name)


def _with_rank(x: Tensor, name: str) -> Tensor:
    """A tensor; one without dimensions as a vector of one element."""
    return x if x.rank else nn.reshape(x, (1,), name)


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@operator("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(call: Call, x: Tensor, dim: int, index: Tensor, source: Operand, reduce: str | None = None) -> Tensor:
    """Elements written, added or multiplied along a dimension, each at an index of its own; written, the last stays."""
    return _scattered(call, x, dim, index, source, None if reduce is None else _REDUCTIONS[reduce])


@operator("scatter_add")
def scatter_add(call: Call, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Elements added along a dimension, each at an index of its own."""
    return _scattered(call, x, dim, index, source, "sum")


@operator("scatter_reduce.two")
def scatter_reduce(
    call: Call, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """Elements combined along a dimension, each at an index of its own."""
    return _scattered(call, x, dim, index, source, reduce, include_self)


@operator("index_reduce")
def index_reduce(
    call: Call, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """Positions of a dimension combined with others, which a vector lists."""
    if not x.rank:
        return _scattered(call, x, dim, index, source, reduce, include_self)
    d = dimension(dim, x.rank)
    table = flattened(index, f"{call.name}.index")
    return _landed(call, x, _landing(d, table.shape[0], lambda i, k: table[k], source), reduce, include_self)


@operator("index_put", "_unsafe_index_put")
def index_put(
    call: Call, x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Elements written, or added, at tensors of indices, which are broadcast; of several the last."""
    given = {d: t for d, t in enumerate(indices) if t is not None}
    if any(t.dtype not in INDICES for t in given.values()):
        return _masked(call, x, given, values, accumulate)
    places = {d: wrapped(t, x.shape[d], f"{call.name}.at{d}") for d, t in given.items()}
    shape = np.broadcast_shapes(*(t.shape for t in places.values()))
    rank, count = len(shape), math.prod(shape)
    flat = {d: _flat(t, shape, f"{call.name}.flat{d}") for d, t in places.items()}
    together = sorted(places) == list(range(min(places), max(places) + 1))
    first = min(places) if together else 0
    plain = [d for d in range(x.rank) if d not in places]
    whole = [x.shape[d] for d in plain[:first]] + list(shape) + [x.shape[d] for d in plain[first:]]
    spread = values if list(values.shape) == whole else nn.broadcast_to(values, tuple(whole), f"{call.name}.values")
    order = [*range(first, first + rank), *range(first), *range(first + rank, len(whole))]
    front = spread if order == sorted(order) else nn.transpose(spread, order, f"{call.name}.front")
    rows = nn.reshape(front, (count, *(x.shape[d] for d in plain)), f"{call.name}.rows")
    landing = Landing(
        count,
        lambda i, k: functools.reduce(and_, [e.equal(t[k], e.cast(i[d], "i64")) for d, t in flat.items()]),
        lambda i, k: rows[(k, *(i[d] for d in plain))],
        lambda i, last: rows.at(last[tuple(i)], *(i[d] for d in plain)),
    )
    return _landed(call, x, landing, "sum" if accumulate else None)


def _flat(t: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    spread = t if t.shape == shape else nn.broadcast_to(t, shape, f"{name}.spread")
    return nn.reshape(spread, (math.prod(shape),), name)


def _masked(call: Call, x: Tensor, given: dict[int, Tensor], values: Tensor, accumulate: bool) -> Tensor:
    """One number written wherever a mask holds."""
    if len(given) != 1 or math.prod(values.shape) != 1 or accumulate:
        raise Unsupported("an index by truth values: what is written where depends on them")
    first, mask = next(iter(given.items()))
    number = reshaped(values, (), f"{call.name}.number")

    def element(*i: Index) -> Expr:
        return e.select(read(mask, i[first : first + mask.rank], "i1"), number[()], x[i])

    return compute(x.shape, element, call.name)


@operator("put")
def put(call: Call, x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Elements written, or added, at indices of the flat tensor."""
    flat = nn.reshape(x, (-1,), f"{call.name}.flat")
    inner = Call(f"{call.name}.written", (flat.shape,), call.dtypes, call.common)
    at, values = (nn.reshape(t, (-1,), f"{call.name}.{label}") for t, label in ((index, "at"), (source, "values")))
    return nn.reshape(index_put(inner, flat, [at], values, accumulate), call.shape, call.name)


@operator("diagonal_scatter")
def diagonal_scatter(call: Call, x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The tensor, with a diagonal taken from another one."""
    first, second = dimension(dim1, x.rank), dimension(dim2, x.rank)

    def element(*i: Index) -> Expr:
        at = i[first] + min(offset, 0)
        others = [index for d, index in enumerate(i) if d not in (first, second)]
        holds = e.all_of(e.equal(i[second] - i[first], offset), at >= 0, at <= source.shape[-1] - 1)
        return e.select(holds, e.cast(e.select(holds, source[(*others, at)], zero(source)), x.dtype), x[i])

    return compute(x.shape, element, call.name)


@operator("max_pool2d_with_indices_backward")
def max_pool_backward(
    call: Call,
    gradient: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """The sum of the gradients of those windows whose greatest element each one is."""
    window, steps, borders, spread = (each(v or kernel, 2) for v in (kernel, stride, padding, dilation))
    taps = [reduce_axis(size, f"k{d}") for d, size in enumerate(window)]
    width, windows = x.shape[-1], gradient.shape[-2:]

    def element(*i: Index) -> Reduce:
        places, holds = [], []
        for d in range(2):
            moved = i[-2 + d] + borders[d] - taps[d] * spread[d]
            places.append(moved // steps[d])
            holds += [e.equal(moved % steps[d], 0)] if steps[d] > 1 else []
            holds += [places[d] >= 0, places[d] <= windows[d] - 1]
        inside = e.all_of(*holds)
        greatest = e.select(inside, indices[(*i[:-2], *places)], -1)
        value = e.select(inside, gradient[(*i[:-2], *places)], 0)
        own = e.cast(i[-2] * width + i[-1], "i64")
        return e.sum(e.select(e.equal(greatest, own), e.cast(value, wide), e.const(0, wide)), axis=taps)

    wide = working(call.dtype)
    return converted(compute(x.shape, element, f"{call.name}.sum"), call.dtype, call.name)
