"""Scalar formulas without cancellation, for te.nn and the front ends."""

from __future__ import annotations

import math

from compiler.te import scalar as e
from compiler.te.expr import Expr

SELU, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
_TANH = (2.0 / math.pi) ** 0.5
_MISH_LINEAR_FROM = 20.0
"""From here on tanh(log(1 + e^x)) rounds to 1, in f32 and in f64."""


def softplus(x: Expr) -> Expr:
    """log(1 + e^x)."""
    return e.maximum(x, 0.0) + e.log1p(e.exp(-e.abs(x)))


def mish(x: Expr) -> Expr:
    """x tanh(log(1 + e^x)) = x n / (n + 2), where n = (1 + e^x)^2 - 1 = e^x (e^x + 2)."""
    power = e.exp(e.minimum(x, _MISH_LINEAR_FROM))
    n = power * (power + 2.0)
    return x * (n / (n + 2.0))


def elu(x: Expr, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Expr:
    """scale * (x if x > 0 else alpha * (e^(x * input_scale) - 1))."""
    above = x if scale == 1 else x * scale
    below = e.expm1(x if input_scale == 1 else x * input_scale)
    return e.select(x > 0.0, above, below if alpha * scale == 1 else below * (alpha * scale))


def celu(x: Expr, alpha: float) -> Expr:
    """x if x > 0 else alpha * (e^(x / alpha) - 1)."""
    return e.select(x > 0.0, x, e.expm1(x / alpha) * alpha)


def gelu(x: Expr) -> Expr:
    """x (1 + erf(x / sqrt 2)) / 2; below -1 the sum cancels, as in torch."""
    return 0.5 * x * (1.0 + e.erf(x * 0.5**0.5))


def gelu_tanh(x: Expr) -> Expr:
    """x (1 + tanh u) / 2 = x sigmoid(2 u), where u = sqrt(2 / pi) (x + 0.044715 x^3)."""
    return x * e.sigmoid((x + x * x * x * 0.044715) * (2.0 * _TANH))


def power(x: Expr, p: float) -> Expr:
    """x^p for x >= 0; a square is a product."""
    return x if p == 1 else x * x if p == 2 else e.pow(x, p)


def root(x: Expr, p: float) -> Expr:
    """x^(1/p) for x >= 0."""
    return x if p == 1 else e.sqrt(x) if p == 2 else e.pow(x, 1.0 / p)
