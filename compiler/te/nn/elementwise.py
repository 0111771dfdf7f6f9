"""Functions element by element, and arithmetic with numpy's broadcasting."""

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
from compiler.te.tensor import Read, Tensor
from compiler.types.elements import has_sign, is_float

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


MOST_FACTORS = 64
"""The greatest exponent that makes a product of an integer's power."""


class OnOne(Protocol):
    """An operator of one tensor, element by element."""

    def __call__(self, x: Tensor, name: str = ...) -> Tensor: ...


class OnTwo(Protocol):
    """An operator of two tensors, or of one and a number, broadcast as numpy does."""

    def __call__(self, a: Tensor | float, b: Tensor | float, name: str = ...) -> Tensor: ...


def mapped(operator: str, formula: str, scalar: Callable[[Expr], Expr], narrow: bool = True) -> OnOne:
    """An operator of one tensor; unless `narrow`, floats below f32 are computed in f32 and rounded once."""

    @named(operator, f"Y[i...] = {formula} of X[i...], for a tensor of any rank.")
    def build(x: Tensor, name: str = operator) -> Tensor:
        dtype = check_tensor(operator, x).dtype
        wide = dtype if narrow or not is_float(dtype) else accumulator(dtype)

        def element(*i: Index) -> Expr:
            value = scalar(e.cast(x[i], wide))
            return e.cast(value, dtype) if wide != dtype else value

        return compute(x.shape, element, name)

    return build


relu = mapped("relu", "max(x, 0)", lambda x: e.maximum(x, 0))
exp = mapped("exp", "exp(x)", e.exp)
log = mapped("log", "log(x)", e.log)
sqrt = mapped("sqrt", "sqrt(x)", e.sqrt)
rsqrt = mapped("rsqrt", "1 / sqrt(x)", e.rsqrt)
sin = mapped("sin", "sin(x)", e.sin)
cos = mapped("cos", "cos(x)", e.cos)
erf = mapped("erf", "erf(x)", e.erf)
erfc = mapped("erfc", "1 - erf(x), precise where that is small,", e.erfc, narrow=False)
floor = mapped("floor", "the greatest integer not above x", e.floor)
round = mapped("round", "the nearest integer, of two the even one", e.round)
ceil = mapped("ceil", "the least integer not below x", e.ceil)
trunc = mapped("trunc", "x without its fraction", e.trunc)
exp2 = mapped("exp2", "2^x", e.exp2, narrow=False)
expm1 = mapped("expm1", "exp(x) - 1, precise near 0,", e.expm1, narrow=False)
log2 = mapped("log2", "log2(x)", e.log2, narrow=False)
log10 = mapped("log10", "log10(x)", e.log10, narrow=False)
log1p = mapped("log1p", "log(1 + x), precise near 0,", e.log1p, narrow=False)
tan = mapped("tan", "tan(x)", e.tan, narrow=False)
asin = mapped("asin", "the inverse of the sine", e.asin, narrow=False)
acos = mapped("acos", "the inverse of the cosine", e.acos, narrow=False)
atan = mapped("atan", "the inverse of the tangent", e.atan, narrow=False)
sinh = mapped("sinh", "sinh(x)", e.sinh, narrow=False)
cosh = mapped("cosh", "cosh(x)", e.cosh, narrow=False)
asinh = mapped("asinh", "the inverse of the hyperbolic sine", e.asinh, narrow=False)
acosh = mapped("acosh", "the inverse of the hyperbolic cosine", e.acosh, narrow=False)
atanh = mapped("atanh", "the inverse of the hyperbolic tangent", e.atanh, narrow=False)
reciprocal = mapped("reciprocal", "1 / x", lambda x: 1.0 / x, narrow=False)
sign = mapped("sign", "1 above 0, -1 below, and x itself if it is 0 or NaN, for x", lambda x: _sign(x))
isnan = mapped("isnan", "whether x is NaN, an i1,", lambda x: e.not_equal(x, x))
isinf = mapped("isinf", "whether x is infinite, an i1,", lambda x: e.equal(e.abs(x), math.inf))
bitwise_not = mapped("bitwise_not", "all bits turned round, or not x for an i1,", lambda x: ~x)
abs = mapped("abs", "|x|", e.abs)
neg = mapped("neg", "-x", lambda x: -x)
square = mapped("square", "x * x", lambda x: x * x)
tanh = mapped("tanh", "tanh(x)", e.tanh, narrow=False)
sigmoid = mapped("sigmoid", "1 / (1 + exp(-x))", e.sigmoid, narrow=False)


def clamp(
    x: Tensor, low: Tensor | float | None = None, high: Tensor | float | None = None, name: str = "clamp"
) -> Tensor:
    """Y[i...] = min(max(X[i...], low), high), with numbers or tensors broadcast as numpy does; None for no bound."""
    bounds = [bound for bound in (low, high) if isinstance(bound, Tensor)]
    shape = check_tensor("clamp", x).shape
    for bound in bounds:
        shape = broadcast_shape("clamp", shape, bound)

    def element(*i: Index) -> Expr:
        value: Expr = read_at(x, i) if bounds else x[i]
        for bound, limited in ((low, e.maximum), (high, e.minimum)):
            if bound is not None:
                value = limited(value, read_at(bound, i) if isinstance(bound, Tensor) else bound)
        return value

    return compute(shape, element, name)


def cast(x: Tensor, dtype: str, saturate: bool = False, name: str = "cast") -> Tensor:
    """Y[i...] = X[i...] as another dtype: rounded to nearest even, truncated towards zero and saturated as integers.

    Integers wrap, or with `saturate` stay at the limits. Raises TeError.
    """
    return mapped("cast", "", lambda v: e.cast(v, dtype, saturate))(x, name)


def where(condition: Tensor, a: Tensor, b: Tensor, name: str = "where") -> Tensor:
    """C[i...] = A[i...] where the condition, an i1, holds, else B[i...], all three broadcast as numpy does."""
    for tensor in (condition, a, b):
        check_tensor("where", tensor)
    if condition.dtype != "i1":
        raise TeError(f"where: the condition '{condition.name}' is of {condition.dtype}, expected i1")
    if a.dtype != b.dtype:
        raise TeError(f"where: '{a.name}' is of {a.dtype}, '{b.name}' of {b.dtype}")
    shape = broadcast_shape("where", broadcast_shape("where", condition.shape, a), b)
    return compute(shape, lambda *i: e.select(read_at(condition, i), read_at(a, i), read_at(b, i)), name)


def broadcast_shape(operator: str, shape: tuple[int, ...], b: Tensor, name: str = "") -> tuple[int, ...]:
    """The shape that numpy broadcasts a shape, of a tensor of that name, and a tensor to. Raises TeError where they do
    not fit."""
    rank = max(len(shape), b.rank)
    left = (1,) * (rank - len(shape)) + shape
    right = (1,) * (rank - b.rank) + b.shape
    for m, n in zip(left, right, strict=True):
        if m != n and 1 not in (m, n):
            pairs = ((shape, b.shape, b.name), (b.shape, shape, name))
            hint = next((said for pair in pairs if (said := _aligned(*pair))), "")
            shown = f"'{name}' {shape}" if name else f"{shape}"
            raise TeError(f"{operator}: {shown} and '{b.name}' {b.shape} do not broadcast{hint}")
    return tuple(max(m, n) for m, n in zip(left, right, strict=True))


def _aligned(shape: tuple[int, ...], vector: tuple[int, ...], name: str) -> str:
    """How a vector, such as a bias, fits a shape along another axis than the last; empty where it fits none."""
    if not name or len(vector) != 1 or vector[0] not in shape:
        return ""
    axis = 1 if len(shape) > 1 and shape[1] == vector[0] else shape.index(vector[0])
    wanted = (*vector, *[1] * (len(shape) - axis - 1))
    return f", as numpy aligns the last axes; te.nn.reshape({name}, {wanted}) fits axis {axis}"


def read_at(x: Tensor, axes: Indices) -> Read:
    """The element of a tensor that is broadcast to an index."""
    last_axes = axes[len(axes) - x.rank :]
    return x[tuple(0 if size == 1 else axis for axis, size in zip(last_axes, x.shape, strict=True))]


def joined(operator: str, formula: str, scalar: Callable[[Expr, Expr | float], Expr], narrow: bool = True) -> OnTwo:
    """An operator of two tensors, or of one and a number; unless `narrow`, floats below f32 are computed in f32."""

    @named(operator, f"C[i...] = {formula}, broadcast as numpy does; a or b may be a number. Raises TeError.")
    def build(a: Tensor | float, b: Tensor | float, name: str = operator) -> Tensor:
        dtype = check_tensor(operator, b if isinstance(a, int | float) else a).dtype
        wide = dtype if narrow or not is_float(dtype) else accumulator(dtype)

        def element(left: Expr, right: Expr | float) -> Expr:
            right = e.cast(right, wide) if isinstance(right, Expr) and right.dtype == dtype else right
            value = scalar(e.cast(left, wide), right)
            return e.cast(value, dtype) if wide != dtype else value

        if isinstance(b, int | float):
            first = check_tensor(operator, a)
            return compute(first.shape, lambda *i: element(first[i], b), name)
        second = check_tensor(operator, b)
        if isinstance(a, int | float):
            return compute(second.shape, lambda *i: element(as_expr(a, wide), second[i]), name)
        shape = broadcast_shape(operator, a.shape, second, a.name)
        return compute(shape, lambda *i: element(read_at(a, i), read_at(second, i)), name)

    return build


def _sign(x: Expr) -> Expr:
    below = -1 if has_sign(x.dtype) else 0
    return e.select(x > 0, e.const(1, x.dtype), e.select(x < 0, e.const(below, x.dtype), x))


def _pow(a: Expr, b: Expr | float) -> Expr:
    """The power; a whole one of an integer that is known is a product."""
    if is_float(a.dtype) or isinstance(b, Expr) or not is_count(b) or b > MOST_FACTORS:
        return e.pow(a, b)
    result_so_far, square, left = e.const(1, a.dtype), a, int(b)
    product: Expr | None = None
    while left:
        if left & 1:
            product = square if product is None else product * square
        left >>= 1
        square = square * square if left else square
    return result_so_far if product is None else product


def _hypot(a: Expr, b: Expr | float) -> Expr:
    """The greater side times the root of 1 + the square of the ratio, which does not overflow before the result."""
    right = e.abs(as_expr(b, a.dtype))
    longer, shorter = e.maximum(e.abs(a), right), e.minimum(e.abs(a), right)
    ratio = shorter / longer
    length = longer * e.sqrt(ratio * ratio + 1.0)
    length = e.select(e.equal(longer, 0.0), longer, length)
    return e.select(e.equal(e.abs(a), math.inf) | e.equal(right, math.inf), e.const(math.inf, a.dtype), length)


add = joined("add", "A + B", lambda a, b: a + b)
sub = joined("sub", "A - B", lambda a, b: a - b)
mul = joined("mul", "A * B", lambda a, b: a * b)
div = joined("div", "A / B", lambda a, b: a / b)
pow = joined("pow", "A to the power B; integers wrap, and a negative B gives 1 / A truncated", _pow)
atan2 = joined("atan2", "the angle of the point (B, A), in [-pi, pi]", e.atan2, narrow=False)
hypot = joined("hypot", "the root of A^2 + B^2", _hypot, narrow=False)
bitwise_and = joined("bitwise_and", "A and B, bit by bit, of integers or i1", lambda a, b: a & b)
bitwise_or = joined("bitwise_or", "A or B, bit by bit, of integers or i1", lambda a, b: a | b)
bitwise_xor = joined("bitwise_xor", "A or B but not both, bit by bit, of integers or i1", lambda a, b: a ^ b)
left_shift = joined("left_shift", "A * 2^B, of integers; 0 where B is negative", lambda a, b: a << b)
right_shift = joined(
    "right_shift", "A / 2^B rounded down, of integers; 0 or -1 where B is negative", lambda a, b: a >> b
)
maximum = joined("maximum", "max(A, B)", e.maximum)
minimum = joined("minimum", "min(A, B)", e.minimum)


def _compare(operator: str, formula: str, scalar: Callable[[Expr, Expr | float], Expr]) -> OnTwo:
    build = joined(operator, formula, scalar)
    build.__doc__ = (
        f"C[i...] = whether {formula}, an i1, broadcast as numpy does; a or b may be a number. Raises TeError."
    )
    return build


equal = _compare("equal", "A = B", e.equal)
not_equal = _compare("not_equal", "A and B differ", e.not_equal)
less = _compare("less", "A < B", lambda a, b: a < b)
less_equal = _compare("less_equal", "A <= B", lambda a, b: a <= b)
greater = _compare("greater", "A > B", lambda a, b: a > b)
greater_equal = _compare("greater_equal", "A >= B", lambda a, b: a >= b)
