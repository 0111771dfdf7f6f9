"""Sums, products, extremes and where these are, variances and norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.frontends.torch.operators.elements import converted, dimension, dimensions, pointwise, shaped, working
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.expr import Expr
from compiler.te.nn.normalisation import moments
from compiler.te.nn.reduction import reduce_dims
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
    return reduce_dims(x.shape, along, keep, lambda at, axes: combine(value(e.cast(x[at], dtype)), axes), name)


def _enter_reduction(combine: e.Reduction, *names: str) -> None:
    """A reduction over dimensions, of all elements for None."""

    def convert(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: object = None) -> Tensor:
        return _reduced(call, combine, x, dim, keepdim)

    operator(*names)(convert)


def _reduced(call: Call, combine: e.Reduction, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    combined = _over(call, combine, x, dimensions(dim, x.rank), keepdim, working(call.dtype))
    return converted(combined, call.dtype, call.name)


_enter_reduction(e.sum, "sum.dim_IntList", "sum")
_enter_reduction(e.prod, "prod", "prod.dim_int")
_enter_reduction(e.max, "amax", "max")
_enter_reduction(e.min, "amin", "min")


@operator("mean.dim", "mean")
def mean(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: object = None) -> Tensor:
    """The mean over dimensions."""
    along = dimensions(dim, x.rank)
    total = _over(call, e.sum, x, along, keepdim, working(call.dtype))
    share = 1.0 / math.prod(x.shape[d] for d in along)
    return pointwise(call, lambda v: v * share, total)


def _place(call: Call, select: Callable[..., Tensor], x: Tensor, dim: int, keepdim: bool) -> Tensor:
    if not x.rank:
        return pointwise(Call(call.name, ((),), ("i64",), "i64"), lambda: 0)
    wide = converted(x, working(x.dtype), f"{call.name}.wide")
    return select(wide, dimension(dim, x.rank), keepdim, name=f"{call.name}.place")


def _enter_extreme(side: str, combine: e.Reduction, select: Callable[..., Tensor]) -> None:
    """The greatest or the least along a dimension, and where it is first."""

    def extreme(call: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        return _reduced(call, combine, x, [dim], keepdim), _place(call, select, x, dim, keepdim)

    def place(call: Call, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if dim is not None:
            return _place(call, select, x, dim, keepdim)
        flat = nn.reshape(x, (-1,), f"{call.name}.flat")
        return nn.reshape(_place(call, select, flat, 0, False), call.shape, call.name)

    operator(f"{side}.dim")(extreme)
    operator(f"arg{side}")(place)


_enter_extreme("max", e.max, nn.argmax)
_enter_extreme("min", e.min, nn.argmin)


def _enter_truth(name: str, combine: e.Reduction) -> None:
    """Whether any or all elements are not zero."""

    def convert(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        truths = converted(x, "i1", f"{call.name}.truth")
        truth = _over(call, combine, truths, dimensions(dim, x.rank), keepdim, "i8")
        return converted(truth, call.dtype, call.name)

    operator(name, f"{name}.dim", f"{name}.dims")(convert)


_enter_truth("any", e.max)
_enter_truth("all", e.min)


def _moments(call: Call, x: Tensor, along: Sequence[int], correction: float | None) -> tuple[Tensor, Tensor]:
    """Variance and mean over dimensions, kept with extent 1."""
    correction = 1.0 if correction is None else correction
    count, wide = math.prod(x.shape[d] for d in along), working(x.dtype)
    if count <= correction:
        raise Unsupported("a variance of no more elements than its correction")
    statistics = moments(x, along, call.name)
    kept, share = Call(call.name, (statistics.square_sum.shape,), (wide,), wide), 1.0 / (count - correction)
    return pointwise(kept, lambda v: v * share, statistics.square_sum, name=f"{call.name}.variance"), statistics.mean


@operator("var.correction")
def var(call: Call, x: Tensor, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> Tensor:
    """The variance over dimensions."""
    return shaped(call, _moments(call, x, dimensions(dim, x.rank), correction)[0])


@operator("var_mean.correction")
def var_mean(
    call: Call, x: Tensor, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Variance and mean over dimensions."""
    variance, middle = _moments(call, x, dimensions(dim, x.rank), correction)
    return shaped(call, variance), shaped(call, middle, 1)


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
