"""Where the greatest and the least elements are."""

from __future__ import annotations

import math
from collections.abc import Callable

from compiler.te import scalar as e
from compiler.te.combiner import Combine, combiner, reduce
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Index
from compiler.te.nn.common import check_axis, check_flag, check_tensor
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.elements import is_float, limits

LAST = 2**63 - 1
"""A place behind all others."""


def argmax(x: Tensor, axis: int = -1, keepdims: bool = False, last: bool = False, name: str = "argmax") -> Tensor:
    """Y[i...] = the least k, an i64, at which X[i..., k, ...] is greatest along one axis; NaN counts as such.

    The axis is dropped, or kept with extent 1. Ties go to the first, or the last. Raises TeError.
    """
    return _selected("argmax", lambda a, b: a > b, x, axis, keepdims, last, name)


def argmin(x: Tensor, axis: int = -1, keepdims: bool = False, last: bool = False, name: str = "argmin") -> Tensor:
    """Y[i...] = the least k, an i64, at which X[i..., k, ...] is least along one axis; NaN counts as such.

    The axis is dropped, or kept with extent 1. Ties go to the first, or the last. Raises TeError.
    """
    return _selected("argmin", lambda a, b: a < b, x, axis, keepdims, last, name)


def _selected(
    operator: str,
    better: Callable[[Expr, Expr], Expr],
    x: Tensor,
    axis: int,
    keepdims: bool,
    last: bool,
    name: str,
) -> Tensor:
    along = check_axis(operator, check_tensor(operator, x), axis)
    check_flag(operator, "keepdims", keepdims)
    check_flag(operator, "last", last)
    k = reduce_axis(x.shape[along], f"k{along}")
    shown = [d for d in range(x.rank) if keepdims or d != along]
    worst_value = worst(x.dtype, lowest=operator == "argmax")
    pick = combiner(best(better, x.dtype, last), (worst_value, -1 if last else LAST))

    def element(*i: Index) -> tuple[Reduce, ...]:
        at = dict(zip(shown, i, strict=True)) | {along: k}
        return reduce(pick, (x[tuple(at[d] for d in range(x.rank))], e.cast(k, "i64")), axis=k)

    shape = [1 if d == along else x.shape[d] for d in shown]
    _, place = compute(shape, element, name, axes=[f"i{d}" for d in shown])
    return place


def best(better: Callable[[Expr, Expr], Expr], dtype: str, last: bool = False) -> Combine:
    """The better of two values with its place; NaN is best, and of equals the first, or the last."""

    def combine(current: tuple[Expr, ...], added: tuple[Expr, ...]) -> tuple[Expr, Expr]:
        (v, i), (w, j) = current, added
        wins, ties = better(w, v), e.equal(v, w)
        if is_float(dtype):
            nan, is_nan = e.not_equal(w, w), e.not_equal(v, v)
            wins, ties = wins | (nan & ~is_nan), ties | (nan & is_nan)
        take = wins | (ties & (j > i if last else j < i))
        return e.select(take, w, v), e.select(take, j, i)

    return combine


def worst(dtype: str, lowest: bool) -> float:
    """The least, or the greatest, value of a dtype."""
    if is_float(dtype):
        return -math.inf if lowest else math.inf
    low, high = limits(dtype)
    return low if lowest else high
