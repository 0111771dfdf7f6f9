"""Elementwise functions, and arithmetic with numpy's broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, as_expr
from compiler.te.index import Index
from compiler.te.nn.common import Indices, accumulator, check_tensor, is_count, named
from compiler.te.sizes import Dim, dims_text, same
from compiler.te.tensor import Read, Tensor
from compiler.types.dtypes import has_sign, is_float

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cast",
    "ceil",
    "clamp",
    "cos",
    "cosh",
    "div",
    "equal",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "greater",
    "greater_equal",
    "hypot",
    "isinf",
    "isnan",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "maximum",
    "minimum",
    "mul",
    "neg",
    "not_equal",
    "pow",
    "reciprocal",
    "relu",
    "right_shift",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
    "trunc",
    "where",
]


MAX_POWER = 64
"""The largest constant exponent for which an integer power becomes products."""


class UnaryOperator(Protocol):
    """An elementwise operator of one tensor: it returns a new tensor of x's shape, called `name`."""

    def __call__(self, x: Tensor, name: str = ...) -> Tensor: ...


class BinaryOperator(Protocol):
    """The signature of an elementwise operator of two tensors, or of a tensor and a number; they broadcast."""

    def __call__(self, a: Tensor | float, b: Tensor | float, name: str = ...) -> Tensor: ...


def unary_op(operator: str, formula: str, scalar: Callable[[Expr], Expr], narrow: bool = True) -> UnaryOperator:
    """Return an elementwise operator of one tensor for a scalar function; `formula` is for its docstring. Unless
    `narrow`, floats below f32 are computed in f32 and rounded once."""

    @named(operator, f"Y[i...] = {formula} for x = X[i...], a tensor of any rank. Raises TeError for other arguments.")
    def build(x: Tensor, name: str = operator) -> Tensor:
        dtype = check_tensor(operator, x).dtype
        calc_dtype = dtype if narrow or not is_float(dtype) else accumulator(dtype)

        def element(*i: Index) -> Expr:
            value = scalar(e.cast(x[i], calc_dtype))
            return e.cast(value, dtype) if calc_dtype != dtype else value

        return compute(x.dims, element, name)

    return build


relu = unary_op("relu", "max(x, 0)", lambda x: e.maximum(x, 0))
exp = unary_op("exp", "exp(x)", e.exp)
log = unary_op("log", "log(x)", e.log)
sqrt = unary_op("sqrt", "sqrt(x)", e.sqrt)
rsqrt = unary_op("rsqrt", "1 / sqrt(x)", e.rsqrt)
sin = unary_op("sin", "sin(x)", e.sin)
cos = unary_op("cos", "cos(x)", e.cos)
erf = unary_op("erf", "erf(x)", e.erf)
erfc = unary_op("erfc", "1 - erf(x), without cancellation for large x,", e.erfc, narrow=False)
floor = unary_op("floor", "the greatest integer not above x", e.floor)
round = unary_op("round", "the nearest integer, ties to even,", e.round)
ceil = unary_op("ceil", "the least integer not below x", e.ceil)
trunc = unary_op("trunc", "x rounded towards zero", e.trunc)
exp2 = unary_op("exp2", "2^x", e.exp2, narrow=False)
expm1 = unary_op("expm1", "exp(x) - 1, without cancellation near 0,", e.expm1, narrow=False)
log2 = unary_op("log2", "log2(x)", e.log2, narrow=False)
log10 = unary_op("log10", "log10(x)", e.log10, narrow=False)
log1p = unary_op("log1p", "log(1 + x), without cancellation near 0,", e.log1p, narrow=False)
tan = unary_op("tan", "tan(x)", e.tan, narrow=False)
asin = unary_op("asin", "asin(x)", e.asin, narrow=False)
acos = unary_op("acos", "acos(x)", e.acos, narrow=False)
atan = unary_op("atan", "atan(x)", e.atan, narrow=False)
sinh = unary_op("sinh", "sinh(x)", e.sinh, narrow=False)
cosh = unary_op("cosh", "cosh(x)", e.cosh, narrow=False)
asinh = unary_op("asinh", "asinh(x)", e.asinh, narrow=False)
acosh = unary_op("acosh", "acosh(x)", e.acosh, narrow=False)
atanh = unary_op("atanh", "atanh(x)", e.atanh, narrow=False)
reciprocal = unary_op("reciprocal", "1 / x", lambda x: 1.0 / x, narrow=False)
sign = unary_op("sign", "the sign, 1 or -1, with 0 and NaN unchanged,", lambda x: _sign(x))
isnan = unary_op("isnan", "(x is NaN), an i1,", lambda x: e.not_equal(x, x))
isinf = unary_op("isinf", "(x is infinite), an i1,", lambda x: e.equal(e.abs(x), math.inf))
bitwise_not = unary_op("bitwise_not", "~x (logical not of an i1)", lambda x: ~x)
abs = unary_op("abs", "|x|", e.abs)
neg = unary_op("neg", "-x", lambda x: -x)
square = unary_op("square", "x * x", lambda x: x * x)
tanh = unary_op("tanh", "tanh(x)", e.tanh, narrow=False)
sigmoid = unary_op("sigmoid", "1 / (1 + exp(-x))", e.sigmoid, narrow=False)


def clamp(
    x: Tensor, low: Tensor | float | None = None, high: Tensor | float | None = None, name: str = "clamp"
) -> Tensor:
    """Y[i...] = min(max(X[i...], low), high) with broadcasting; a bound is a tensor, a number or None (no bound).
    Raises TeError for two dtypes, and for shapes that do not broadcast."""
    bounds = [bound for bound in (low, high) if isinstance(bound, Tensor)]
    shape = check_tensor("clamp", x).dims
    for bound in bounds:
        shape = broadcast_shape("clamp", shape, bound)

    def element(*i: Index) -> Expr:
        value: Expr = read_at(x, i) if bounds else x[i]
        for bound, limit in ((low, e.maximum), (high, e.minimum)):
            if bound is not None:
                value = limit(value, read_at(bound, i) if isinstance(bound, Tensor) else bound)
        return value

    return compute(shape, element, name)


def cast(x: Tensor, dtype: str, saturate: bool = False, name: str = "cast") -> Tensor:
    """Y[i...] = X[i...] converted to a dtype: rounded to nearest even; float to integer truncates and saturates.

    NaN becomes 0. Integer to integer wraps, or with `saturate` saturates; all but 0 is true as an i1. Raises TeError
    for other arguments.
    """
    return unary_op("cast", "", lambda v: e.cast(v, dtype, saturate))(x, name)


def where(condition: Tensor, a: Tensor, b: Tensor, name: str = "where") -> Tensor:
    """C[i...] = A[i...] if condition[i...] else B[i...], with broadcasting; the condition is an i1. Raises TeError for
    a condition of another dtype, if the dtypes of A and B differ, and for shapes that do not broadcast."""
    for tensor in (condition, a, b):
        check_tensor("where", tensor)
    if condition.dtype != "i1":
        raise TeError(f"where: the condition '{condition.name}' is of {condition.dtype}, expected i1")
    if a.dtype != b.dtype:
        raise TeError(f"where: '{a.name}' is of {a.dtype}, '{b.name}' of {b.dtype}")
    shape = broadcast_shape("where", broadcast_shape("where", condition.dims, a), b)
    return compute(shape, lambda *i: e.select(read_at(condition, i), read_at(a, i), read_at(b, i)), name)


def broadcast_shape(operator: str, shape: tuple[Dim, ...], b: Tensor, name: str = "") -> tuple[Dim, ...]:
    """Return the broadcast of `shape` with b's shape, as numpy has it; a size broadcasts with itself or 1. Raises
    TeError, which names `operator` and the tensor of `shape` by `name` if it has one, if they do not broadcast."""
    rank = max(len(shape), b.rank)
    left = (1,) * (rank - len(shape)) + shape
    right = (1,) * (rank - b.rank) + b.dims
    for m, n in zip(left, right, strict=True):
        if not same(m, n) and 1 not in (m, n):
            pairs = ((shape, b.dims, b.name), (b.dims, shape, name))
            hint = next(filter(None, (_reshape_hint(*pair) for pair in pairs)), "")
            shown = f"'{name}' {dims_text(shape)}" if name else dims_text(shape)
            raise TeError(f"{operator}: {shown} and '{b.name}' {dims_text(b.dims)} do not broadcast{hint}")
    return tuple(n if m == 1 else m for m, n in zip(left, right, strict=True))


def _reshape_hint(shape: tuple[Dim, ...], vector: tuple[Dim, ...], name: str) -> str:
    """Return a hint to reshape a vector, such as a bias, that fits an axis of `shape` other than the last; else ""."""
    if not name or len(vector) != 1 or not isinstance(vector[0], int) or vector[0] not in shape:
        return ""
    axis = 1 if len(shape) > 1 and shape[1] == vector[0] else shape.index(vector[0])
    fitting_shape = (*vector, *[1] * (len(shape) - axis - 1))
    return f", as numpy aligns the last axes; te.nn.reshape({name}, {fitting_shape}) fits axis {axis}"


def read_at(x: Tensor, axes: Indices) -> Read:
    """Read a tensor at the index of a shape to which it broadcasts."""
    last_axes = axes[len(axes) - x.rank :]
    return x[tuple(0 if size == 1 else axis for axis, size in zip(last_axes, x.dims, strict=True))]


def binary_op(
    operator: str, formula: str, scalar: Callable[[Expr, Expr | float], Expr], narrow: bool = True
) -> BinaryOperator:
    """Return a broadcasting elementwise operator for a scalar function; `formula` is for its docstring. Unless
    `narrow`, floats below f32 are computed in f32 and rounded once."""

    @named(operator, f"C[i...] = {formula}, broadcast as numpy does; a or b may be a number. Raises TeError.")
    def build(a: Tensor | float, b: Tensor | float, name: str = operator) -> Tensor:
        dtype = check_tensor(operator, b if isinstance(a, int | float) else a).dtype
        calc_dtype = dtype if narrow or not is_float(dtype) else accumulator(dtype)

        def element(left: Expr, right: Expr | float) -> Expr:
            right = e.cast(right, calc_dtype) if isinstance(right, Expr) and right.dtype == dtype else right
            value = scalar(e.cast(left, calc_dtype), right)
            return e.cast(value, dtype) if calc_dtype != dtype else value

        if isinstance(b, int | float):
            first = check_tensor(operator, a)
            return compute(first.dims, lambda *i: element(first[i], b), name)
        second = check_tensor(operator, b)
        if isinstance(a, int | float):
            return compute(second.dims, lambda *i: element(as_expr(a, calc_dtype), second[i]), name)
        shape = broadcast_shape(operator, a.dims, second, a.name)
        return compute(shape, lambda *i: element(read_at(a, i), read_at(second, i)), name)

    return build


def _sign(x: Expr) -> Expr:
    below = -1 if has_sign(x.dtype) else 0
    return e.select(x > 0, e.const(1, x.dtype), e.select(x < 0, e.const(below, x.dtype), x))


def _pow(a: Expr, b: Expr | float) -> Expr:
    """a^b; a constant exponent up to MAX_POWER of an integer becomes products by squaring."""
    if is_float(a.dtype) or isinstance(b, Expr) or not is_count(b) or b > MAX_POWER:
        return e.pow(a, b)
    unit, square, exponent = e.const(1, a.dtype), a, int(b)
    product: Expr | None = None
    while exponent:
        if exponent & 1:
            product = square if product is None else product * square
        exponent >>= 1
        square = square * square if exponent else square
    return unit if product is None else product


def _hypot(a: Expr, b: Expr | float) -> Expr:
    """longer * sqrt(1 + (shorter / longer)^2), which overflows only if the result does."""
    right = e.abs(as_expr(b, a.dtype))
    longer, shorter = e.maximum(e.abs(a), right), e.minimum(e.abs(a), right)
    ratio = shorter / longer
    length = longer * e.sqrt(ratio * ratio + 1.0)
    length = e.select(e.equal(longer, 0.0), longer, length)
    return e.select(e.equal(e.abs(a), math.inf) | e.equal(right, math.inf), e.const(math.inf, a.dtype), length)


add = binary_op("add", "A + B", lambda a, b: a + b)
sub = binary_op("sub", "A - B", lambda a, b: a - b)
mul = binary_op("mul", "A * B", lambda a, b: a * b)
div = binary_op("div", "A / B", lambda a, b: a / b)
pow = binary_op("pow", "A to the power B; integers wrap, and a negative B yields 1 / A^-B truncated", _pow)
atan2 = binary_op("atan2", "the angle of the point (x = B, y = A), in [-pi, pi]", e.atan2, narrow=False)
hypot = binary_op("hypot", "sqrt(A^2 + B^2)", _hypot, narrow=False)
bitwise_and = binary_op("bitwise_and", "bitwise A and B, of integers or i1", lambda a, b: a & b)
bitwise_or = binary_op("bitwise_or", "bitwise A or B, of integers or i1", lambda a, b: a | b)
bitwise_xor = binary_op("bitwise_xor", "bitwise A xor B, of integers or i1", lambda a, b: a ^ b)
left_shift = binary_op("left_shift", "A * 2^B, of integers; 0 for negative B", lambda a, b: a << b)
right_shift = binary_op("right_shift", "floor(A / 2^B), of integers; 0 or -1 for negative B", lambda a, b: a >> b)
maximum = binary_op("maximum", "max(A, B)", e.maximum)
minimum = binary_op("minimum", "min(A, B)", e.minimum)


def _compare(operator: str, formula: str, scalar: Callable[[Expr, Expr | float], Expr]) -> BinaryOperator:
    build = binary_op(operator, formula, scalar)
    build.__doc__ = f"C[i...] = ({formula}), an i1, broadcast as numpy does; a or b may be a number. Raises TeError."
    return build


equal = _compare("equal", "A == B", e.equal)
not_equal = _compare("not_equal", "A != B", e.not_equal)
less = _compare("less", "A < B", lambda a, b: a < b)
less_equal = _compare("less_equal", "A <= B", lambda a, b: a <= b)
greater = _compare("greater", "A > B", lambda a, b: a > b)
greater_equal = _compare("greater_equal", "A >= B", lambda a, b: a >= b)
