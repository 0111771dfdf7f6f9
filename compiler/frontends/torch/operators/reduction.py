"""Sums, products, extremes, argmax, variances and norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.frontends.torch.operators.elements import dimension, dimensions, pointwise, result, to_dtype, wide_dtype
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.expr import Expr
from compiler.te.nn.normalisation import moments
from compiler.te.nn.reduction import reduce_dims
from compiler.te.tensor import Tensor

Dims: TypeAlias = int | Sequence[int] | None
"""Dimensions; None for all."""


def _reduce(
    call: Call,
    combine: e.Reduction,
    x: Tensor,
    dims: Sequence[int],
    keep: bool,
    dtype: str,
    value: Callable[[Expr], Expr] = lambda v: v,
    label: str = "reduced",
) -> Tensor:
    """Reduce value(element), computed in a dtype, over dimensions, dropped or with `keep` kept with extent 1; for a
    tensor without dimensions return value(x). `label` ends the tensor's name."""
    if not x.rank:
        return pointwise(Call(f"{call.name}.{label}", ((),), (dtype,), dtype), value, x)
    name = f"{call.name}.{label}"
    return reduce_dims(x.shape, dims, keep, lambda i, axes: combine(value(e.cast(x[i], dtype)), axes), name)


def _register_reduction(combine: e.Reduction, *names: str) -> None:
    """Register operators for a reduction over dimensions, by default all."""

    def convert(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: object = None) -> Tensor:
        return _reduce_to_result(call, combine, x, dim, keepdim)

    operator(*names)(convert)


def _reduce_to_result(call: Call, combine: e.Reduction, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    combined = _reduce(call, combine, x, dimensions(dim, x.rank), keepdim, wide_dtype(call.dtype))
    return to_dtype(combined, call.dtype, call.name)


_register_reduction(e.sum, "sum.dim_IntList", "sum")
_register_reduction(e.prod, "prod", "prod.dim_int")
_register_reduction(e.max, "amax", "max")
_register_reduction(e.min, "amin", "min")


@operator("mean.dim", "mean")
def mean(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False, dtype: object = None) -> Tensor:
    """The mean over dimensions, None or an empty list for all; they are dropped, or with `keepdim` have extent 1. The
    result's dtype is the call's; `dtype` is not read."""
    dims = dimensions(dim, x.rank)
    total = _reduce(call, e.sum, x, dims, keepdim, wide_dtype(call.dtype))
    inverse_count = 1.0 / math.prod(x.shape[d] for d in dims)
    return pointwise(call, lambda v: v * inverse_count, total)


def _arg_extreme(call: Call, select: Callable[..., Tensor], x: Tensor, dim: int, keepdim: bool) -> Tensor:
    if not x.rank:
        return pointwise(Call(call.name, ((),), ("i64",), "i64"), lambda: 0)
    numbers = to_dtype(x, wide_dtype(x.dtype), f"{call.name}.wide")
    return select(numbers, dimension(dim, x.rank), keepdim, name=f"{call.name}.place")


def _register_extreme(side: str, combine: e.Reduction, select: Callable[..., Tensor]) -> None:
    """Register `{side}.dim`, extremes along a dimension and their first indices, and `arg{side}`, the indices only."""

    def extreme(call: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        return _reduce_to_result(call, combine, x, [dim], keepdim), _arg_extreme(call, select, x, dim, keepdim)

    def arg_extreme(call: Call, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if dim is not None:
            return _arg_extreme(call, select, x, dim, keepdim)
        flat = nn.reshape(x, (-1,), f"{call.name}.flat")
        return nn.reshape(_arg_extreme(call, select, flat, 0, False), call.shape, call.name)

    operator(f"{side}.dim")(extreme)
    operator(f"arg{side}")(arg_extreme)


_register_extreme("max", e.max, nn.argmax)
_register_extreme("min", e.min, nn.argmin)


def _register_truth(name: str, combine: e.Reduction) -> None:
    """Register `any` or `all` over dimensions, by default all: elements other than zero are true."""

    def convert(call: Call, x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        truths = to_dtype(x, "i1", f"{call.name}.truth")
        truth = _reduce(call, combine, truths, dimensions(dim, x.rank), keepdim, "i8")
        return to_dtype(truth, call.dtype, call.name)

    operator(name, f"{name}.dim", f"{name}.dims")(convert)


_register_truth("any", e.max)
_register_truth("all", e.min)


def _moments(call: Call, x: Tensor, dims: Sequence[int], correction: float | None) -> tuple[Tensor, Tensor]:
    """Return variance, with divisor count - correction (default 1), and mean over dimensions, kept with extent 1.
    Raises Unsupported for a divisor that is not positive."""
    correction = 1.0 if correction is None else correction
    count, calc_dtype = math.prod(x.shape[d] for d in dims), wide_dtype(x.dtype)
    if count <= correction:
        raise Unsupported("a variance of no more elements than its correction")
    statistics = moments(x, dims, call.name)
    squares, factor = statistics.square_sum, 1.0 / (count - correction)
    inner = Call(call.name, (squares.shape,), (calc_dtype,), calc_dtype)
    return pointwise(inner, lambda v: v * factor, squares, name=f"{call.name}.variance"), statistics.mean


@operator("var.correction")
def var(call: Call, x: Tensor, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> Tensor:
    """The variance over dimensions, by default all, with divisor count - correction (default 1), in the call's shape;
    `keepdim` is not read. Raises Unsupported for a divisor that is not positive."""
    return result(call, _moments(call, x, dimensions(dim, x.rank), correction)[0])


@operator("var_mean.correction")
def var_mean(
    call: Call, x: Tensor, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """The variance, with divisor count - correction (default 1), and the mean over dimensions, by default all, in the
    call's shapes; `keepdim` is not read. Raises Unsupported for a divisor that is not positive."""
    variance, mean_value = _moments(call, x, dimensions(dim, x.rank), correction)
    return result(call, variance), result(call, mean_value, 1)


@operator("linalg_vector_norm")
def vector_norm(
    call: Call, x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, dtype: object = None
) -> Tensor:
    """(sum |x|^ord)^(1/ord) over dimensions, by default all; for +-inf max or min |x|, for 0 the non-zero count. Shape
    and dtype are the call's; `dtype` is not read."""
    dims, calc_dtype = dimensions(dim, x.rank), wide_dtype(call.dtype)
    if ord == 2:
        total = _reduce(call, e.sum, x, dims, keepdim, calc_dtype, lambda v: v * v)
        return pointwise(call, e.sqrt, total)
    if ord in (1, math.inf, -math.inf):
        norm = _reduce(call, e.sum if ord == 1 else e.max if ord > 0 else e.min, x, dims, keepdim, calc_dtype, e.abs)
        return to_dtype(norm, call.dtype, call.name)
    if ord == 0:
        count = _reduce(call, e.sum, x, dims, keepdim, calc_dtype, lambda v: e.cast(e.not_equal(v, 0), v.dtype))
        return to_dtype(count, call.dtype, call.name)
    total = _reduce(call, e.sum, x, dims, keepdim, calc_dtype, lambda v: e.pow(e.abs(v), ord))
    return pointwise(call, lambda v: e.pow(v, 1.0 / ord), total)
