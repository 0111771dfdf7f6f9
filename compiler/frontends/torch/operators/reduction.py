"""Sums, products, extremes and where these are, variances and norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.frontends.torch.operators.elements import converted, dimension, dimensions, pointwise, working
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.expr import Expr
from compiler.te.nn.normalisation import moments
from compiler.te.nn.reduction import reduced
from compiler.te.tensor import Tensor

Dims: TypeAlias = int | Sequence[int] | None
"""Dimensions, all of them for None."""


def _over(
    call: Call,
    combine: e.Reduction,
    x: Tensor,
    along: Sequence[int],
    keep: bool,
    dtype: str,
    value: Callable[[Expr], Expr] = lambda v: v,
    label: str = "reduced",
) -> Tensor:
    """Values of elements, in a dtype, combined over dimensions."""
    if not x.rank:
        return pointwise(Call(f"{call.name}.{label}", ((),), (dtype,), dtype), value, x)
    name = f"{call.name}.{label}"
    return reduced(x.shape, along, keep, lambda at, axes: combine(value(e.cast(x[at], dtype)), axes), name)


@operator("sum.dim_IntList", "sum")
def sum(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: object = None) -> Tensor:
    """The sum over dimensions."""
    total = _over(call, e.sum, x, dimensions(dim, x.rank), keepdim, working(call.dtype))
    return converted(total, call.dtype, call.name)


@operator("mean.dim", "mean")
def mean(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: object = None) -> Tensor:
    """The mean over dimensions."""
    along = dimensions(dim, x.rank)
    total = _over(call, e.sum, x, along, keepdim, working(call.dtype))
    share = 1.0 / math.prod(x.shape[d] for d in along)
    return pointwise(call, lambda v: v * share, total)


@operator("prod", "prod.dim_int")
def prod(call: Call, x: Tensor, dim: int | None = None, keepdim: bool = False, dtype: object = None) -> Tensor:
    """The product over a dimension, or of all elements."""
    total = _over(call, e.prod, x, dimensions(dim, x.rank), keepdim, working(call.dtype))
    return converted(total, call.dtype, call.name)


@operator("amax", "max")
def amax(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The greatest over dimensions."""
    greatest = _over(call, e.max, x, dimensions(dim, x.rank), keepdim, working(call.dtype))
    return converted(greatest, call.dtype, call.name)


@operator("amin", "min")
def amin(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The least over dimensions."""
    smallest = _over(call, e.min, x, dimensions(dim, x.rank), keepdim, working(call.dtype))
    return converted(smallest, call.dtype, call.name)


@operator("max.dim")
def max_dim(call: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The greatest along a dimension, and where it is first."""
    return amax(call, x, [dim], keepdim), _place(call, nn.argmax, x, dim, keepdim)


@operator("min.dim")
def min_dim(call: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The least along a dimension, and where it is first."""
    return amin(call, x, [dim], keepdim), _place(call, nn.argmin, x, dim, keepdim)


def _place(call: Call, select: Callable[..., Tensor], x: Tensor, dim: int, keepdim: bool) -> Tensor:
    if not x.rank:
        return pointwise(Call(call.name, ((),), ("i64",), "i64"), lambda: 0)
    wide = converted(x, working(x.dtype), f"{call.name}.wide")
    return select(wide, dimension(dim, x.rank), keepdim, name=f"{call.name}.place")


def _argument(call: Call, select: Callable[..., Tensor], x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    if dim is not None:
        return _place(call, select, x, dim, keepdim)
    flat = nn.reshape(x, (-1,), f"{call.name}.flat")
    return nn.reshape(_place(call, select, flat, 0, False), call.shape, call.name)


@operator("argmax")
def argmax(call: Call, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the greatest is first."""
    return _argument(call, nn.argmax, x, dim, keepdim)


@operator("argmin")
def argmin(call: Call, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the least is first."""
    return _argument(call, nn.argmin, x, dim, keepdim)


def _truth(call: Call, combine: e.Reduction, x: Tensor, dim: int | Sequence[int] | None, keepdim: bool) -> Tensor:
    truths = converted(x, "i1", f"{call.name}.truth")
    reduced = _over(call, combine, truths, dimensions(dim, x.rank), keepdim, "i8")
    return converted(reduced, call.dtype, call.name)


@operator("any", "any.dim", "any.dims")
def any(call: Call, x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether one element is not zero."""
    return _truth(call, e.max, x, dim, keepdim)


@operator("all", "all.dim", "all.dims")
def all(call: Call, x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether no element is zero."""
    return _truth(call, e.min, x, dim, keepdim)


def _moments(call: Call, x: Tensor, along: Sequence[int], correction: float) -> tuple[Tensor, Tensor]:
    """Variance and mean over dimensions, kept with extent 1."""
    count, wide = math.prod(x.shape[d] for d in along), working(x.dtype)
    if count <= correction:
        raise Unsupported("a variance of no more elements than its correction")
    of_x = moments(x, along, call.name)
    kept, share = Call(call.name, (of_x.squares.shape,), (wide,), wide), 1.0 / (count - correction)
    return pointwise(kept, lambda v: v * share, of_x.squares, name=f"{call.name}.variance"), of_x.middle


def _correction(given: float | None) -> float:
    return 1.0 if given is None else given


def _shown(call: Call, kept: Tensor, position: int) -> Tensor:
    shape = call.shapes[position]
    shaped = kept if kept.shape == shape else nn.reshape(kept, shape, f"{call.name}.{position}.shaped")
    return converted(shaped, call.dtypes[position], f"{call.name}.{position}")


@operator("var.correction")
def var(call: Call, x: Tensor, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> Tensor:
    """The variance over dimensions."""
    return _shown(call, _moments(call, x, dimensions(dim, x.rank), _correction(correction))[0], 0)


@operator("var_mean.correction")
def var_mean(
    call: Call, x: Tensor, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Variance and mean over dimensions."""
    variance, middle = _moments(call, x, dimensions(dim, x.rank), _correction(correction))
    return _shown(call, variance, 0), _shown(call, middle, 1)


@operator("linalg_vector_norm")
def vector_norm(
    call: Call, x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, dtype: object = None
) -> Tensor:
    """The norm over dimensions, of any order."""
    along, wide = dimensions(dim, x.rank), working(call.dtype)
    if ord == 2:
        total = _over(call, e.sum, x, along, keepdim, wide, lambda v: v * v)
        return pointwise(call, e.sqrt, total)
    if ord in (1, math.inf, -math.inf):
        norm = _over(call, e.sum if ord == 1 else e.max if ord > 0 else e.min, x, along, keepdim, wide, e.abs)
        return converted(norm, call.dtype, call.name)
    if ord == 0:
        count = _over(call, e.sum, x, along, keepdim, wide, lambda v: e.cast(e.not_equal(v, 0), v.dtype))
        return converted(count, call.dtype, call.name)
    total = _over(call, e.sum, x, along, keepdim, wide, lambda v: e.pow(e.abs(v), ord))
    return pointwise(call, lambda v: e.pow(v, 1.0 / ord), total)
