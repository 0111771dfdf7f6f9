"""argmax and argmin, and their combiner."""

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
from compiler.types.dtypes import is_float, limits

LAST_INDEX = 2**63 - 1
"""The greatest i64, after the index of any element."""


def argmax(x: Tensor, axis: int = -1, keepdims: bool = False, last: bool = False, name: str = "argmax") -> Tensor:
    """Y[i...] = the index k, an i64, of the greatest X[i..., k, ...] along one axis; NaN counts as greatest.

    The axis is dropped, or kept with extent 1. Ties go to the first index, or with `last` the last. Raises TeError for
    other arguments.
    """
    return _arg_extremum("argmax", lambda a, b: a > b, x, axis, keepdims, last, name)


def argmin(x: Tensor, axis: int = -1, keepdims: bool = False, last: bool = False, name: str = "argmin") -> Tensor:
    """Y[i...] = the index k, an i64, of the least X[i..., k, ...] along one axis; NaN counts as least.

    The axis is dropped, or kept with extent 1. Ties go to the first index, or with `last` the last. Raises TeError for
    other arguments.
    """
    return _arg_extremum("argmin", lambda a, b: a < b, x, axis, keepdims, last, name)


def _arg_extremum(
    operator: str,
    is_better: Callable[[Expr, Expr], Expr],
    x: Tensor,
    axis: int,
    keepdims: bool,
    last: bool,
    name: str,
) -> Tensor:
    dim = check_axis(operator, check_tensor(operator, x), axis)
    check_flag(operator, "keepdims", keepdims)
    check_flag(operator, "last", last)
    k = reduce_axis(x.shape[dim], f"k{dim}")
    result_dims = [d for d in range(x.rank) if keepdims or d != dim]
    identity = extremum_identity(x.dtype, lowest=operator == "argmax")
    pick = combiner(extremum_combine(is_better, x.dtype, last), (identity, -1 if last else LAST_INDEX))

    def element(*i: Index) -> tuple[Reduce, ...]:
        coordinates = dict(zip(result_dims, i, strict=True)) | {dim: k}
        return reduce(pick, (x[tuple(coordinates[d] for d in range(x.rank))], e.cast(k, "i64")), axis=k)

    shape = [1 if d == dim else x.shape[d] for d in result_dims]
    _, index = compute(shape, element, name, axes=[f"i{d}" for d in result_dims])
    return index


def extremum_combine(is_better: Callable[[Expr, Expr], Expr], dtype: str, last: bool = False) -> Combine:
    """Return a combiner of (value, index) pairs, values of a dtype, that selects the better value; NaN is best, ties go
    to the first index, or with `last` to the last."""

    def combine(current: tuple[Expr, ...], added: tuple[Expr, ...]) -> tuple[Expr, Expr]:
        (v, i), (w, j) = current, added
        wins, ties = is_better(w, v), e.equal(v, w)
        if is_float(dtype):
            added_is_nan, is_nan = e.not_equal(w, w), e.not_equal(v, v)
            wins, ties = wins | (added_is_nan & ~is_nan), ties | (added_is_nan & is_nan)
        take = wins | (ties & (j > i if last else j < i))
        return e.select(take, w, v), e.select(take, j, i)

    return combine


def extremum_identity(dtype: str, lowest: bool) -> float:
    """Return the identity of max (`lowest`) or min: a dtype's least or greatest value, infinite for floats."""
    if is_float(dtype):
        return -math.inf if lowest else math.inf
    low, high = limits(dtype)
    return low if lowest else high
