"""Norms, variances, any and all over axes; in f32 for narrower floats, rounded once."""

from __future__ import annotations

import math

from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Axis, Index
from compiler.te.nn import formulas
from compiler.te.nn.common import Indices, accumulator, check_axes, check_flag, check_float, check_number, check_tensor
from compiler.te.nn.normalisation import moments
from compiler.te.nn.reduction import Axes, reduce_dims
from compiler.te.tensor import Tensor


def norm(x: Tensor, p: float = 2, axis: Axes = None, keepdims: bool = False, name: str = "norm") -> Tensor:
    """Y = (sum of |X|^p)^(1/p) over axes (all by default); for p = inf or -inf the maximum or minimum of |X|.

    For p = 0, the number of non-zero elements. Axes are dropped, or with keepdims kept with extent 1. x is of a float
    dtype. Raises TeError for other arguments. Elsewhere: ONNX ReduceL1, ReduceL2; torch linalg.vector_norm.
    """
    dims, acc_dtype = check_axes("norm", check_float("norm", x), axis), accumulator(x.dtype)
    check_flag("norm", "keepdims", keepdims)
    is_extreme = isinstance(p, float) and math.isinf(p)
    power = float(p) if is_extreme else check_number("norm", "p", p)
    combine = (e.max if power > 0 else e.min) if is_extreme else e.sum

    def power_of(i: Indices) -> Expr:
        size = e.abs(e.cast(x[i], acc_dtype))
        if power == 0:
            return e.cast(e.not_equal(size, 0.0), acc_dtype)
        return size if is_extreme else formulas.power(size, power)

    total = reduce_dims(x.shape, dims, keepdims, lambda i, axes: combine(power_of(i), axes), f"{name}.sum")

    def root(*i: Index) -> Expr:
        value: Expr = total[i]
        return e.cast(value if is_extreme or power == 0 else formulas.root(value, power), x.dtype)

    return compute(total.shape, root, name)


def var(x: Tensor, axis: Axes = None, correction: float = 1, keepdims: bool = False, name: str = "var") -> Tensor:
    """Y = sum of (X - mean)^2 over axes (all by default), divided by max(0, number of elements - correction).

    Axes are dropped, or with keepdims kept with extent 1. x is of a float dtype. Raises TeError for other arguments.
    Elsewhere: torch var.
    """
    return _variance("var", x, axis, correction, keepdims, False, name)


def std(x: Tensor, axis: Axes = None, correction: float = 1, keepdims: bool = False, name: str = "std") -> Tensor:
    """Y = the square root of var, with the same arguments. Raises TeError for other arguments."""
    return _variance("std", x, axis, correction, keepdims, True, name)


def _variance(operator: str, x: Tensor, axis: Axes, correction: float, keepdims: bool, root: bool, name: str) -> Tensor:
    dims = check_axes(operator, check_float(operator, x), axis)
    check_flag(operator, "keepdims", keepdims)
    count = math.prod(x.shape[d] for d in dims)
    divisor = max(0.0, count - check_number(operator, "correction", correction))
    inverse_divisor = 1.0 / divisor if divisor else math.inf
    square_sum = moments(x, dims, name).square_sum
    result_dims = [d for d in range(x.rank) if keepdims or d not in dims]

    def element(*i: Index) -> Expr:
        coordinates = dict(zip(result_dims, i, strict=True))
        value = square_sum[tuple(0 if d in dims else coordinates[d] for d in range(x.rank))] * inverse_divisor
        return e.cast(e.sqrt(value) if root else value, x.dtype)

    return compute([square_sum.shape[d] for d in result_dims], element, name)


def any(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "any") -> Tensor:
    """Y = an i1, true if any element over the axes (all by default) is not 0.

    Axes are dropped, or with keepdims kept with extent 1. Raises TeError for other arguments.
    """
    return _truth_reduction("any", e.max, x, axis, keepdims, name)


def all(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "all") -> Tensor:
    """Y = an i1, true if all elements over the axes (all by default) are not 0.

    Axes are dropped, or with keepdims kept with extent 1. Raises TeError for other arguments.
    """
    return _truth_reduction("all", e.min, x, axis, keepdims, name)


def _truth_reduction(operator: str, combine: e.Reduction, x: Tensor, axis: Axes, keepdims: bool, name: str) -> Tensor:
    dims = check_axes(operator, check_tensor(operator, x), axis)
    check_flag(operator, "keepdims", keepdims)

    def number(at: Indices, axes: tuple[Axis, ...]) -> Reduce:
        return combine(e.cast(e.cast(x[at], "i1"), "i32"), axes)

    numbers = reduce_dims(x.shape, dims, keepdims, number, f"{name}.number")
    return compute(numbers.shape, lambda *i: e.cast(numbers[i], "i1"), name)
