"""Norms, variances and truth over axes, in f32 of narrower floats and rounded once."""

from __future__ import annotations

import math

from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Axis, Index
from compiler.te.nn import formulas
from compiler.te.nn.common import Indices, accumulator, check_axes, check_flag, check_float, check_number, check_tensor
from compiler.te.nn.normalisation import moments
from compiler.te.nn.reduction import Axes, reduced
from compiler.te.tensor import Tensor


def norm(x: Tensor, p: float = 2, axis: Axes = None, keepdims: bool = False, name: str = "norm") -> Tensor:
    """Y = (sum of |X|^p)^(1/p) over the given axes (all by default); with p = inf or -inf the extremes of |X|.

    With p = 0 the number of elements that are not 0. x is of a float dtype. Raises TeError.
    Elsewhere: ONNX ReduceL1, ReduceL2; torch linalg.vector_norm.
    """
    along, wide = check_axes("norm", check_float("norm", x), axis), accumulator(x.dtype)
    check_flag("norm", "keepdims", keepdims)
    extreme = isinstance(p, float) and math.isinf(p)
    power = float(p) if extreme else check_number("norm", "p", p)
    combine = (e.max if power > 0 else e.min) if extreme else e.sum

    def powered(at: Indices) -> Expr:
        size = e.abs(e.cast(x[at], wide))
        if power == 0:
            return e.cast(e.not_equal(size, 0.0), wide)
        return size if extreme else formulas.power(size, power)

    total = reduced(x.shape, along, keepdims, lambda at, axes: combine(powered(at), axes), f"{name}.sum")

    def root(*i: Index) -> Expr:
        value: Expr = total[i]
        return e.cast(value if extreme or power == 0 else formulas.root(value, power), x.dtype)

    return compute(total.shape, root, name)


def var(x: Tensor, axis: Axes = None, correction: float = 1, keepdims: bool = False, name: str = "var") -> Tensor:
    """Y = the sum of (X - mean)^2 over the given axes, divided by the number of elements less the correction.

    That divisor is at least 0. x is of a float dtype. Raises TeError. Elsewhere: torch var.
    """
    return _spread("var", x, axis, correction, keepdims, False, name)


def std(x: Tensor, axis: Axes = None, correction: float = 1, keepdims: bool = False, name: str = "std") -> Tensor:
    """Y = the root of var. Raises TeError."""
    return _spread("std", x, axis, correction, keepdims, True, name)


def _spread(operator: str, x: Tensor, axis: Axes, correction: float, keepdims: bool, root: bool, name: str) -> Tensor:
    along = check_axes(operator, check_float(operator, x), axis)
    check_flag(operator, "keepdims", keepdims)
    count = math.prod(x.shape[d] for d in along)
    divisor = max(0.0, count - check_number(operator, "correction", correction))
    share = 1.0 / divisor if divisor else math.inf
    squares = moments(x, along, name).squares
    shown = [d for d in range(x.rank) if keepdims or d not in along]

    def element(*i: Index) -> Expr:
        at = dict(zip(shown, i, strict=True))
        value = squares[tuple(0 if d in along else at[d] for d in range(x.rank))] * share
        return e.cast(e.sqrt(value) if root else value, x.dtype)

    return compute([squares.shape[d] for d in shown], element, name)


def any(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "any") -> Tensor:
    """Y = whether any of the elements over the given axes (all by default) are not 0, an i1.

    Raises TeError.
    """
    return _truth("any", e.max, x, axis, keepdims, name)


def all(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "all") -> Tensor:
    """Y = whether all of the elements over the given axes (all by default) are not 0, an i1.

    Raises TeError.
    """
    return _truth("all", e.min, x, axis, keepdims, name)


def _truth(operator: str, combine: e.Reduction, x: Tensor, axis: Axes, keepdims: bool, name: str) -> Tensor:
    along = check_axes(operator, check_tensor(operator, x), axis)
    check_flag(operator, "keepdims", keepdims)

    def number(at: Indices, axes: tuple[Axis, ...]) -> Reduce:
        return combine(e.cast(e.cast(x[at], "i1"), "i32"), axes)

    numbers = reduced(x.shape, along, keepdims, number, f"{name}.number")
    return compute(numbers.shape, lambda *i: e.cast(numbers[i], "i1"), name)
