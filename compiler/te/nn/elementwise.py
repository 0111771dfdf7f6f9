"""Activations, and arithmetic with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.errors import TeError
from compiler.te import expr as e
from compiler.te.nn.common import check_tensor, dims
from compiler.te.tensor import Tensor, compute

Scalar = Callable[[Any], e.Expr]


def _map(operator: str, formula: str, scalar: Scalar) -> Callable[..., Tensor]:
    def build(x: Tensor, name: str = operator) -> Tensor:
        check_tensor(operator, x)
        result: Tensor = compute(x.shape, lambda *i: scalar(x[i]), name, axes=dims(x.rank))
        return result

    build.__name__ = operator
    build.__doc__ = f"Y[i...] = {formula} of X[i...], for a tensor of any rank."
    return build


relu = _map("relu", "max(x, 0)", lambda x: e.maximum(x, 0))
exp = _map("exp", "exp(x)", e.exp)
log = _map("log", "log(x)", e.log)
sqrt = _map("sqrt", "sqrt(x)", e.sqrt)
tanh = _map("tanh", "tanh(x)", e.tanh)
sigmoid = _map("sigmoid", "1 / (1 + exp(-x))", e.sigmoid)
silu = _map("silu", "x / (1 + exp(-x))", lambda x: x * e.sigmoid(x))
gelu = _map("gelu", "x * (1 + erf(x / sqrt 2)) / 2", lambda x: 0.5 * x * (1.0 + e.erf(x * 0.5**0.5)))
neg = _map("neg", "-x", lambda x: -x)


def broadcast_shape(operator: str, a: Tensor, b: Tensor) -> tuple[int, ...]:
    """The shape that numpy broadcasts two shapes to. Raises TeError where they do not fit."""
    rank = max(a.rank, b.rank)
    left = (1,) * (rank - a.rank) + a.shape
    right = (1,) * (rank - b.rank) + b.shape
    for m, n in zip(left, right, strict=True):
        if m != n and 1 not in (m, n):
            raise TeError(f"{operator}: '{a.name}' {a.shape} and '{b.name}' {b.shape} do not broadcast")
    return tuple(max(m, n) for m, n in zip(left, right, strict=True))


def _at(x: Tensor, axes: tuple[Any, ...]) -> e.Expr:
    own = axes[len(axes) - x.rank :]
    return x[tuple(0 if size == 1 else axis for axis, size in zip(own, x.shape, strict=True))]


def _join(operator: str, formula: str, scalar: Callable[[Any, Any], e.Expr]) -> Callable[..., Tensor]:
    def build(a: Tensor, b: Tensor | float, name: str = operator) -> Tensor:
        check_tensor(operator, a)
        if isinstance(b, int | float):
            result: Tensor = compute(a.shape, lambda *i: scalar(a[i], b), name, axes=dims(a.rank))
            return result
        other = check_tensor(operator, b)
        shape = broadcast_shape(operator, a, other)
        result = compute(shape, lambda *i: scalar(_at(a, i), _at(other, i)), name, axes=dims(len(shape)))
        return result

    build.__name__ = operator
    build.__doc__ = f"C[i...] = {formula}, broadcast as numpy does; b may be a number. Raises TeError."
    return build


add = _join("add", "A + B", lambda a, b: a + b)
sub = _join("sub", "A - B", lambda a, b: a - b)
mul = _join("mul", "A * B", lambda a, b: a * b)
div = _join("div", "A / B", lambda a, b: a / b)
pow = _join("pow", "A to the power B", e.pow)
maximum = _join("maximum", "max(A, B)", e.maximum)
minimum = _join("minimum", "min(A, B)", e.minimum)
