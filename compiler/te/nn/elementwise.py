"""Activations, and arithmetic with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from compiler.elements import is_float
from compiler.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.common import Indices, accumulator, check_float, check_tensor, named
from compiler.te.tensor import Tensor

__all__ = [
    "abs",
    "add",
    "cast",
    "clamp",
    "cos",
    "div",
    "elu",
    "equal",
    "erf",
    "exp",
    "floor",
    "gelu",
    "greater",
    "greater_equal",
    "hardswish",
    "leaky_relu",
    "less",
    "less_equal",
    "log",
    "maximum",
    "minimum",
    "mul",
    "neg",
    "not_equal",
    "pow",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "silu",
    "sin",
    "softplus",
    "sqrt",
    "square",
    "sub",
    "tanh",
    "where",
]


class OnOne(Protocol):
    """An operator of one tensor, element by element."""

    def __call__(self, x: Tensor, name: str = ...) -> Tensor: ...


class OnTwo(Protocol):
    """An operator of a tensor and another, or a number, broadcast as numpy does."""

    def __call__(self, a: Tensor, b: Tensor | float, name: str = ...) -> Tensor: ...


def _map(operator: str, formula: str, scalar: Callable[[Expr], Expr], narrow: bool = True) -> OnOne:
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


relu = _map("relu", "max(x, 0)", lambda x: e.maximum(x, 0))
exp = _map("exp", "exp(x)", e.exp)
log = _map("log", "log(x)", e.log)
sqrt = _map("sqrt", "sqrt(x)", e.sqrt)
rsqrt = _map("rsqrt", "1 / sqrt(x)", e.rsqrt)
sin = _map("sin", "sin(x)", e.sin)
cos = _map("cos", "cos(x)", e.cos)
erf = _map("erf", "erf(x)", e.erf)
floor = _map("floor", "the greatest integer not above x", e.floor)
round = _map("round", "the nearest integer, of two the even one", e.round)
abs = _map("abs", "|x|", e.abs)
neg = _map("neg", "-x", lambda x: -x)
square = _map("square", "x * x", lambda x: x * x)
tanh = _map("tanh", "tanh(x)", e.tanh, narrow=False)
sigmoid = _map("sigmoid", "1 / (1 + exp(-x))", e.sigmoid, narrow=False)
silu = _map("silu", "x / (1 + exp(-x))", lambda x: x * e.sigmoid(x), narrow=False)
gelu = _map("gelu", "x * (1 + erf(x / sqrt 2)) / 2", lambda x: 0.5 * x * (1.0 + e.erf(x * 0.5**0.5)), narrow=False)
softplus = _map(
    "softplus",
    "log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))",
    lambda x: e.maximum(x, 0.0) + e.log(1.0 + e.exp(-e.abs(x))),
    narrow=False,
)
hardswish = _map(
    "hardswish",
    "x * min(max(x + 3, 0), 6) / 6",
    lambda x: x * e.minimum(e.maximum(x + 3.0, 0.0), 6.0) * (1.0 / 6.0),
    narrow=False,
)


def leaky_relu(x: Tensor, slope: float = 0.01, name: str = "leaky_relu") -> Tensor:
    """Y[i...] = X[i...], or slope * X[i...] where that is below 0."""
    return _map("leaky_relu", "", lambda v: e.select(v < 0.0, v * slope, v), narrow=False)(
        check_float("leaky_relu", x), name
    )


def elu(x: Tensor, alpha: float = 1.0, name: str = "elu") -> Tensor:
    """Y[i...] = X[i...], or alpha * (exp(X[i...]) - 1) where that is below 0."""
    return _map("elu", "", lambda v: e.select(v < 0.0, (e.exp(v) - 1.0) * alpha, v), narrow=False)(
        check_float("elu", x), name
    )


def clamp(x: Tensor, low: float, high: float, name: str = "clamp") -> Tensor:
    """Y[i...] = min(max(X[i...], low), high), for two numbers of x's dtype."""
    return _map("clamp", "", lambda v: e.minimum(e.maximum(v, low), high))(x, name)


def cast(x: Tensor, dtype: str, saturate: bool = False, name: str = "cast") -> Tensor:
    """Y[i...] = X[i...] as another dtype: rounded to nearest even, truncated towards zero and saturated as integers.

    Integers wrap, or with `saturate` stay at the limits. Raises TeError.
    """
    return _map("cast", "", lambda v: e.cast(v, dtype, saturate))(x, name)


def where(condition: Tensor, a: Tensor, b: Tensor, name: str = "where") -> Tensor:
    """C[i...] = A[i...] where the condition, an i1, holds, else B[i...], all three broadcast as numpy does."""
    for tensor in (condition, a, b):
        check_tensor("where", tensor)
    if condition.dtype != "i1":
        raise TeError(f"where: the condition '{condition.name}' is of {condition.dtype}, expected i1")
    if a.dtype != b.dtype:
        raise TeError(f"where: '{a.name}' is of {a.dtype}, '{b.name}' of {b.dtype}")
    shape = broadcast_shape("where", broadcast_shape("where", condition.shape, a), b)
    return compute(shape, lambda *i: e.select(_at(condition, i), _at(a, i), _at(b, i)), name)


def broadcast_shape(operator: str, shape: tuple[int, ...], b: Tensor) -> tuple[int, ...]:
    """The shape that numpy broadcasts a shape and a tensor to. Raises TeError where they do not fit."""
    rank = max(len(shape), b.rank)
    left = (1,) * (rank - len(shape)) + shape
    right = (1,) * (rank - b.rank) + b.shape
    for m, n in zip(left, right, strict=True):
        if m != n and 1 not in (m, n):
            raise TeError(f"{operator}: {shape} and '{b.name}' {b.shape} do not broadcast")
    return tuple(max(m, n) for m, n in zip(left, right, strict=True))


def _at(x: Tensor, axes: Indices) -> Expr:
    own = axes[len(axes) - x.rank :]
    return x[tuple(0 if size == 1 else axis for axis, size in zip(own, x.shape, strict=True))]


def _join(operator: str, formula: str, scalar: Callable[[Expr, Expr | float], Expr]) -> OnTwo:
    @named(operator, f"C[i...] = {formula}, broadcast as numpy does; b may be a number. Raises TeError.")
    def build(a: Tensor, b: Tensor | float, name: str = operator) -> Tensor:
        check_tensor(operator, a)
        if isinstance(b, int | float):
            return compute(a.shape, lambda *i: scalar(a[i], b), name)
        other = check_tensor(operator, b)
        shape = broadcast_shape(operator, a.shape, other)
        return compute(shape, lambda *i: scalar(_at(a, i), _at(other, i)), name)

    return build


add = _join("add", "A + B", lambda a, b: a + b)
sub = _join("sub", "A - B", lambda a, b: a - b)
mul = _join("mul", "A * B", lambda a, b: a * b)
div = _join("div", "A / B", lambda a, b: a / b)
pow = _join("pow", "A to the power B", e.pow)
maximum = _join("maximum", "max(A, B)", e.maximum)
minimum = _join("minimum", "min(A, B)", e.minimum)


def _compare(operator: str, formula: str, scalar: Callable[[Expr, Expr | float], Expr]) -> OnTwo:
    build = _join(operator, formula, scalar)
    build.__doc__ = f"C[i...] = whether {formula}, an i1, broadcast as numpy does; b may be a number. Raises TeError."
    return build


equal = _compare("equal", "A = B", e.equal)
not_equal = _compare("not_equal", "A and B differ", e.not_equal)
less = _compare("less", "A < B", lambda a, b: a < b)
less_equal = _compare("less_equal", "A <= B", lambda a, b: a <= b)
greater = _compare("greater", "A > B", lambda a, b: a > b)
greater_equal = _compare("greater_equal", "A >= B", lambda a, b: a >= b)
