"""Reductions over axes: sums and means in f32 for narrower floats, rounded once; extremes in x's dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import Protocol, TypeAlias

from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Axis, Index
from compiler.te.nn.common import (
    Indices,
    accumulator,
    astype,
    check_axes,
    check_flag,
    check_float,
    check_tensor,
    named,
    result_dtype,
)
from compiler.te.sizes import Dim
from compiler.te.tensor import Tensor, reduce_axis

Axes: TypeAlias = int | Sequence[int] | None
"""One dimension or several; None for all."""


def inverse_of(extents: Sequence[Dim], dtype: str) -> Expr | float:
    """The inverse of the product of extents: a number or, if some are sizes, an expression of `dtype`, a float."""
    count = product(extent for extent in extents if isinstance(extent, int))
    inverse: Expr | float = 1.0 / count
    for extent in extents:
        if not isinstance(extent, int):
            inverse = e.const(inverse, dtype) if isinstance(inverse, float) else inverse
            inverse = inverse / e.cast(extent, dtype)
    return inverse


class ReductionOperator(Protocol):
    """An operator that reduces a tensor over axes (None: all); they are dropped, or with `keepdims` have extent 1."""

    def __call__(self, x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = ...) -> Tensor: ...


def reduce_dims(
    shape: Sequence[Dim],
    dims: Sequence[int],
    keep: bool,
    element: Callable[[Indices, tuple[Axis, ...]], Reduce],
    name: str,
) -> Tensor:
    """Reduce over the dimensions `dims` of a shape; they are dropped, or with `keep` have extent 1.

    `element` maps an index of the full shape, with reduce axes in `dims`, and these axes to a reduction. For empty
    `dims` the only axis has extent 1.
    """
    axes = {d: reduce_axis(shape[d], f"k{d}") for d in dims}
    reduce_axes = tuple(axes.values()) or (reduce_axis(1, "k"),)
    result_dims = [d for d in range(len(shape)) if keep or d not in axes]

    def reduction(*i: Index) -> Reduce:
        coordinates = dict(zip(result_dims, i, strict=True)) | axes
        return element(tuple(coordinates[d] for d in range(len(shape))), reduce_axes)

    return compute(
        [1 if d in axes else shape[d] for d in result_dims], reduction, name, axes=[f"i{d}" for d in result_dims]
    )


def _reduce(operator: str, combine: e.Reduction, sums: bool) -> ReductionOperator:
    @named(
        operator,
        f"The {operator} of a tensor over axes (all by default), dropped, or kept with extent 1. Raises TeError."
        + (" In f32 for narrower floats, rounded once; of narrower integers an i32, of u16 a u32." if sums else ""),
    )
    def build(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = operator) -> Tensor:
        check_tensor(operator, x)
        check_flag(operator, "keepdims", keepdims)
        acc_dtype = accumulator(x.dtype) if sums else x.dtype
        dims = check_axes(operator, x, axis)
        out_dtype = result_dtype(operator, x.dtype, None) if sums else x.dtype
        label = name if out_dtype == acc_dtype else f"{name}.wide"
        reduction = reduce_dims(x.dims, dims, keepdims, lambda i, axes: combine(e.cast(x[i], acc_dtype), axes), label)
        return astype(reduction, out_dtype, name)

    return build


sum = _reduce("sum", e.sum, sums=True)
prod = _reduce("prod", e.prod, sums=True)
max = _reduce("max", e.max, sums=False)
min = _reduce("min", e.min, sums=False)


def mean(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "mean") -> Tensor:
    """The mean of a float tensor over axes (all by default), dropped, or kept with extent 1. Raises TeError for other
    arguments. In f32 for narrower floats, rounded once."""
    dims, acc_dtype = check_axes("mean", check_float("mean", x), axis), accumulator(x.dtype)
    check_flag("mean", "keepdims", keepdims)
    total = reduce_dims(x.dims, dims, keepdims, lambda i, axes: e.sum(e.cast(x[i], acc_dtype), axes), f"{name}.sum")
    inverse_count = inverse_of([x.dims[d] for d in dims], acc_dtype)
    return compute(total.dims, lambda *i: e.cast(total[i] * inverse_count, x.dtype), name)
