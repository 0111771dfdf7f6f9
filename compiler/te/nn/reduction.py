"""Reductions over axes: sums and means in f32 of narrower floats, rounded once; the rest in their own dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import Protocol, TypeAlias

from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Reduce
from compiler.te.index import Axis, Index
from compiler.te.nn.common import (
    Indices,
    accumulator,
    check_axes,
    check_flag,
    check_float,
    check_tensor,
    named,
    result_dtype,
    rounded,
)
from compiler.te.tensor import Tensor, reduce_axis

Axes: TypeAlias = int | Sequence[int] | None
"""One dimension, several, or all of them."""


class ReductionOperator(Protocol):
    """A reduction of a tensor over the given axes, which are dropped or kept with extent 1."""

    def __call__(self, x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = ...) -> Tensor: ...


def reduced(
    shape: Sequence[int],
    along: Sequence[int],
    keep: bool,
    element: Callable[[Indices, tuple[Axis, ...]], Reduce],
    name: str,
) -> Tensor:
    """A tensor of a shape without the dimensions `along`, or with extent 1 there.

    `element` takes an index of the whole shape, in which reduce axes stand for those dimensions, and these axes; over
    no dimension it is reduced along an axis of extent 1.
    """
    axes = {d: reduce_axis(shape[d], f"k{d}") for d in along}
    over = tuple(axes.values()) or (reduce_axis(1, "k"),)
    shown = [d for d in range(len(shape)) if keep or d not in axes]

    def reduction(*i: Index) -> Reduce:
        place = dict(zip(shown, i, strict=True)) | axes
        return element(tuple(place[d] for d in range(len(shape))), over)

    return compute([1 if d in axes else shape[d] for d in shown], reduction, name, axes=[f"i{d}" for d in shown])


def _reduce(operator: str, combine: e.Reduction, sums: bool) -> ReductionOperator:
    @named(
        operator,
        f"The {operator} of a tensor over the given axes (all of them by default), kept with extent 1 or dropped."
        + (
            " Formed in f32 of narrower floats and rounded once; an i32 of narrower integers, a u32 of u16."
            if sums
            else ""
        ),
    )
    def build(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = operator) -> Tensor:
        check_tensor(operator, x)
        check_flag(operator, "keepdims", keepdims)
        wide = accumulator(x.dtype) if sums else x.dtype
        along = check_axes(operator, x, axis)
        wanted = result_dtype(operator, x.dtype, None) if sums else x.dtype
        label = name if wanted == wide else f"{name}.wide"
        wide_result = reduced(x.shape, along, keepdims, lambda at, axes: combine(e.cast(x[at], wide), axes), label)
        return rounded(wide_result, wanted, name)

    return build


sum = _reduce("sum", e.sum, sums=True)
prod = _reduce("prod", e.prod, sums=True)
max = _reduce("max", e.max, sums=False)
min = _reduce("min", e.min, sums=False)


def mean(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "mean") -> Tensor:
    """The mean over the given axes: their sum, divided by the number of elements; in f32 of narrower floats."""
    along, wide = check_axes("mean", check_float("mean", x), axis), accumulator(x.dtype)
    check_flag("mean", "keepdims", keepdims)
    total = reduced(x.shape, along, keepdims, lambda at, axes: e.sum(e.cast(x[at], wide), axes), f"{name}.sum")
    share = 1.0 / product(x.shape[d] for d in along)
    return compute(total.shape, lambda *i: e.cast(total[i] * share, x.dtype), name)
