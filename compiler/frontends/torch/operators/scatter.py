"""Writes at data-dependent indices: each element compares its position with the targets of all candidate writes."""

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
    dimension,
    fill,
    flatten,
    per_dim,
    pointwise,
    read,
    reshape,
    to_dtype,
    wide_dtype,
    zero_of,
)
from compiler.frontends.torch.operators.indexing import wrap_indices
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.gather import gather as te_gather
from compiler.te.index import Axis, Index
from compiler.te.tensor import TableRead, Tensor, reduce_axis
from compiler.types.dtypes import INDICES, is_float, limits

MAX_WRITES = 256
"""The most candidate writes compared for each element: with more, torch's loop is faster."""
Position: TypeAlias = Sequence[Index]


@dataclass(frozen=True)
class Writes:
    """The candidate writes to each element of a tensor, numbered by an axis k.

    count: their number. targets: maps an element's index and k to an i1, true if write k is to that element. value:
    maps both to the value of write k. table: reads the value of the write whose number a tensor has for each element.
    """

    count: int
    targets: Callable[[Position, Axis], Expr]
    value: Callable[[Position, Axis], Expr]
    table: Callable[[Position, Tensor], TableRead]


def _write(call: Call, x: Tensor, writes: Writes, reduce: str | None, include_self: bool = True) -> Tensor:
    """Compute x after writes that replace its elements (None), or are combined by `reduce` ("sum", "mean", "prod",
    "amax", "amin"), with `include_self` also with x's element; elements without a write are x's. Raises Unsupported for
    more than MAX_WRITES candidates."""
    if writes.count > MAX_WRITES:
        raise Unsupported(f"a scatter of {writes.count} elements for each place; up to {MAX_WRITES} are compared")
    k = reduce_axis(writes.count, "k")
    if reduce is None:
        return _overwrite(call, x, writes, k)
    calc_dtype = wide_dtype(call.dtype)
    neutral = _neutral(reduce, calc_dtype)
    combine = {"sum": e.sum, "mean": e.sum, "prod": e.prod, "amax": e.max, "amin": e.min}[reduce]

    def total_of(*i: Index) -> Reduce:
        return combine(e.select(writes.targets(i, k), e.cast(writes.value(i, k), calc_dtype), neutral), axis=k)

    def count_of(*i: Index) -> Reduce:
        return e.sum(e.cast(writes.targets(i, k), "i64"), axis=k)

    total = compute(x.shape, total_of, f"{call.name}.landed")
    if include_self and reduce != "mean":
        return pointwise(call, lambda a, b: _combine(reduce, a, b), x, total)
    count = compute(x.shape, count_of, f"{call.name}.count")

    def element(*i: Index) -> Expr:
        current: Expr = e.cast(x[i], calc_dtype)
        sums: Expr = total[i]
        number: Expr = count[i]
        if reduce == "mean":
            sums = sums + current if include_self else sums
            number = number + 1 if include_self else number
            divisor = e.cast(e.maximum(number, 1), calc_dtype)
            sums = sums / divisor if is_float(calc_dtype) else sums // divisor
        return e.cast(e.select(count[i] > 0, sums, current), call.dtype)

    return compute(x.shape, element, call.name)


def _overwrite(call: Call, x: Tensor, writes: Writes, k: Axis) -> Tensor:
    """Compute the value of the last write to each element of x; the element itself without a write."""

    def last_write(*i: Index) -> Reduce:
        return e.max(e.select(writes.targets(i, k), e.cast(k, "i64"), e.const(-1, "i64")), axis=k)

    numbers = compute(x.shape, last_write, f"{call.name}.last")
    values = te_gather(x.shape, lambda *i: writes.table(i, numbers), f"{call.name}.landed")
    return compute(x.shape, lambda *i: e.select(numbers[i] >= 0, e.cast(values[i], call.dtype), x[i]), call.name)


def _neutral(reduce: str, dtype: str) -> Expr:
    if reduce in ("amax", "amin"):
        low, high = (-math.inf, math.inf) if is_float(dtype) else limits(dtype)
        return e.const(low if reduce == "amax" else high, dtype)
    return e.const(int(reduce == "prod"), dtype)


def _combine(reduce: str, a: Expr, b: Expr) -> Expr:
    if reduce == "prod":
        return a * b
    return a + b if reduce == "sum" else e.maximum(a, b) if reduce == "amax" else e.minimum(a, b)


def _window_and_writes(call: Call, x: Tensor, dim: int, index: Tensor, source: Operand) -> tuple[Tensor, Writes]:
    """Return the part of x in which scatter writes, x[:n] for each extent n of `index` and all of x along `dim`, and
    the writes to it: each value has its own index along `dim`."""
    d = dimension(dim, x.rank)
    window = tuple(x.shape[d] if n == d else size for n, size in enumerate(index.shape))
    window_tensor = x if window == x.shape else nn.slice(x, [0] * x.rank, list(window), name=f"{call.name}.window")
    values = source if isinstance(source, Tensor) else fill(index.shape, source, x.dtype, f"{call.name}.value")
    return window_tensor, _writes_along(d, index.shape[d], lambda i, k: index[(*i[:d], k, *i[d + 1 :])], values)


def _writes_along(d: int, count: int, index: Callable[[Position, Axis], Expr], values: Tensor) -> Writes:
    """Describe `count` writes along dimension d for each position i: write k puts the element of `values` at i, with k
    as coordinate d, to i with index(i, k) as coordinate d."""
    return Writes(
        count,
        lambda i, k: e.equal(e.cast(index(i, k), "i64"), e.cast(i[d], "i64")),
        lambda i, k: values[(*i[:d], k, *i[d + 1 :])],
        lambda i, places: values.at(*i[:d], places[tuple(i)], *i[d + 1 :]),
    )


def _scatter(
    call: Call, x: Tensor, dim: int, index: Tensor, source: Operand, reduce: str | None, include_self: bool = True
) -> Tensor:
    if not x.rank or not index.rank:
        flat, indices = _with_rank(x, f"{call.name}.flat"), _with_rank(index, f"{call.name}.index")
        values = _with_rank(source, f"{call.name}.source") if isinstance(source, Tensor) else source
        inner = Call(f"{call.name}.one", (flat.shape,), call.dtypes, call.common)
        return nn.reshape(_scatter(inner, flat, dim, indices, values, reduce, include_self), call.shape, call.name)
    window, writes = _window_and_writes(call, x, dim, index, source)
    if window is x:
        return _write(call, x, writes, reduce, include_self)
    inner = Call(f"{call.name}.part", (window.shape,), call.dtypes, call.common)
    window_result = _write(inner, window, writes, reduce, include_self)

    def element(*i: Index) -> Expr:
        inside = e.all_of(*(index <= size - 1 for index, size in zip(i, window.shape, strict=True)))
        return e.select(inside, e.select(inside, window_result[i], zero_of(x)), x[i])

    return compute(x.shape, element, call.name)


def _with_rank(x: Tensor, name: str) -> Tensor:
    """Reshape a tensor without dimensions to a vector; return others unchanged."""
    return x if x.rank else nn.reshape(x, (1,), name)


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@operator("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(call: Call, x: Tensor, dim: int, index: Tensor, source: Operand, reduce: str | None = None) -> Tensor:
    """x with source[i], or the number `source`, written (the last write counts), or with `reduce` "add" or "multiply"
    combined with x's element, at i with i[dim] replaced by index[i]. Raises Unsupported if `index` is longer than
    MAX_WRITES along `dim`."""
    return _scatter(call, x, dim, index, source, None if reduce is None else _REDUCTIONS[reduce])


@operator("scatter_add")
def scatter_add(call: Call, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """x with source[i] added at i with i[dim] replaced by index[i]. Raises Unsupported if `index` is longer than
    MAX_WRITES along `dim`."""
    return _scatter(call, x, dim, index, source, "sum")


@operator("scatter_reduce.two")
def scatter_reduce(
    call: Call, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """x with source[i] combined by `reduce` ("sum", "mean", "prod", "amax", "amin") at i with i[dim] replaced by
    index[i], with `include_self` also with x's element there. Raises Unsupported if `index` is longer than MAX_WRITES
    along `dim`."""
    return _scatter(call, x, dim, index, source, reduce, include_self)


@operator("index_reduce")
def index_reduce(
    call: Call, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """x with the source's slice k along a dimension combined by `reduce` ("prod", "mean", "amax", "amin") at slice
    index[k], with `include_self` also with x's elements there. Raises Unsupported for more than MAX_WRITES indices."""
    if not x.rank:
        return _scatter(call, x, dim, index, source, reduce, include_self)
    d = dimension(dim, x.rank)
    table = flatten(index, f"{call.name}.index")
    return _write(call, x, _writes_along(d, table.shape[0], lambda i, k: table[k], source), reduce, include_self)


@operator("index_put", "_unsafe_index_put")
def index_put(
    call: Call, x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """x with values written (the last one counts), or with `accumulate` added, at the positions that index tensors,
    broadcast together, select, negative ones counted from the end; the dimensions with None are kept whole. One mask of
    truth values takes a single value; raises Unsupported for several masks or values, for `accumulate` under a mask,
    and for more than MAX_WRITES positions."""
    index_tensors = {d: t for d, t in enumerate(indices) if t is not None}
    if any(t.dtype not in INDICES for t in index_tensors.values()):
        return _masked_fill(call, x, index_tensors, values, accumulate)
    targets = {d: wrap_indices(t, x.shape[d], f"{call.name}.at{d}") for d, t in index_tensors.items()}
    shape = np.broadcast_shapes(*(t.shape for t in targets.values()))
    rank, count = len(shape), math.prod(shape)
    flat = {d: _flat_index(t, shape, f"{call.name}.flat{d}") for d, t in targets.items()}
    is_adjacent = sorted(targets) == list(range(min(targets), max(targets) + 1))
    first = min(targets) if is_adjacent else 0
    plain = [d for d in range(x.rank) if d not in targets]
    full_shape = [x.shape[d] for d in plain[:first]] + list(shape) + [x.shape[d] for d in plain[first:]]
    if list(values.shape) != full_shape:
        values = nn.broadcast_to(values, tuple(full_shape), f"{call.name}.values")
    order = [*range(first, first + rank), *range(first), *range(first + rank, len(full_shape))]
    if order != sorted(order):
        values = nn.transpose(values, order, f"{call.name}.front")
    rows = nn.reshape(values, (count, *(x.shape[d] for d in plain)), f"{call.name}.rows")
    writes = Writes(
        count,
        lambda i, k: functools.reduce(and_, [e.equal(t[k], e.cast(i[d], "i64")) for d, t in flat.items()]),
        lambda i, k: rows[(k, *(i[d] for d in plain))],
        lambda i, last: rows.at(last[tuple(i)], *(i[d] for d in plain)),
    )
    return _write(call, x, writes, "sum" if accumulate else None)


def _flat_index(t: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    broadcast_index = t if t.shape == shape else nn.broadcast_to(t, shape, f"{name}.spread")
    return nn.reshape(broadcast_index, (math.prod(shape),), name)


def _masked_fill(call: Call, x: Tensor, masks: dict[int, Tensor], values: Tensor, accumulate: bool) -> Tensor:
    """x with a single value written where the mask over some of x's dimensions is true. Raises Unsupported for several
    masks or values, and for accumulation."""
    if len(masks) != 1 or math.prod(values.shape) != 1 or accumulate:
        raise Unsupported("an index by truth values: what is written where depends on them")
    first, mask = next(iter(masks.items()))
    number = reshape(values, (), f"{call.name}.number")

    def element(*i: Index) -> Expr:
        return e.select(read(mask, i[first : first + mask.rank], "i1"), number[()], x[i])

    return compute(x.shape, element, call.name)


@operator("put")
def put(call: Call, x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """x with values written (the last one counts), or with `accumulate` added, at row-major indices into the flat
    tensor. Raises Unsupported for more than MAX_WRITES indices."""
    flat = nn.reshape(x, (-1,), f"{call.name}.flat")
    inner = Call(f"{call.name}.written", (flat.shape,), call.dtypes, call.common)
    indices, values = (nn.reshape(t, (-1,), f"{call.name}.{label}") for t, label in ((index, "at"), (source, "values")))
    return nn.reshape(index_put(inner, flat, [indices], values, accumulate), call.shape, call.name)


@operator("diagonal_scatter")
def diagonal_scatter(call: Call, x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """x with the diagonal i[dim2] - i[dim1] = offset replaced by a source, whose last dimension runs along it."""
    first, second = dimension(dim1, x.rank), dimension(dim2, x.rank)

    def element(*i: Index) -> Expr:
        position = i[first] + min(offset, 0)
        outer = [index for d, index in enumerate(i) if d not in (first, second)]
        on_diagonal = e.all_of(e.equal(i[second] - i[first], offset), position >= 0, position <= source.shape[-1] - 1)
        value = e.select(on_diagonal, source[(*outer, position)], zero_of(source))
        return e.select(on_diagonal, e.cast(value, x.dtype), x[i])

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
    """The gradient of max_pool2d for x: sum the gradients of the windows whose index in `indices` is the element's.
    `ceil_mode` is not read: `gradient` has an element for each window."""
    window, steps, pads, dilations = (per_dim(v or kernel, 2) for v in (kernel, stride, padding, dilation))
    taps = [reduce_axis(size, f"k{d}") for d, size in enumerate(window)]
    width, windows = x.shape[-1], gradient.shape[-2:]

    def element(*i: Index) -> Reduce:
        output_index, conditions = [], []
        for d in range(2):
            offset = i[-2 + d] + pads[d] - taps[d] * dilations[d]
            output_index.append(offset // steps[d])
            conditions += [e.equal(offset % steps[d], 0)] if steps[d] > 1 else []
            conditions += [output_index[d] >= 0, output_index[d] <= windows[d] - 1]
        inside = e.all_of(*conditions)
        argmax = e.select(inside, indices[(*i[:-2], *output_index)], -1)
        value = e.select(inside, gradient[(*i[:-2], *output_index)], 0)
        position = e.cast(i[-2] * width + i[-1], "i64")
        return e.sum(e.select(e.equal(argmax, position), e.cast(value, calc_dtype), e.const(0, calc_dtype)), axis=taps)

    calc_dtype = wide_dtype(call.dtype)
    return to_dtype(compute(x.shape, element, f"{call.name}.sum"), call.dtype, call.name)
