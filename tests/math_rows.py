"""The rows of docs/math.md: functions that expand-math expands, and operators, with the errors that they may have.

References are computed in a wider dtype than the rows: float64 for f32, the processor's long double for f64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

import compiler
from compiler import te
from compiler.te import nn
from compiler.te import scalar as e

Array = np.ndarray[Any, Any]
Reference: TypeAlias = Callable[[Array], Array]
Truth: TypeAlias = Callable[[Array], Array]
OnTensor: TypeAlias = Callable[[te.Tensor], te.Tensor]


@dataclass(frozen=True)
class Function:
    """A function of one number, and how far its results may be from the exact ones.

    body: the low-level ops that compute %y from %x (TYPE stands for the type), or an operator of te.nn; None for one
    that only torch has.
    bounds: the largest errors of f32 and f64, in units in the last place.
    special: inputs around which it changes course.
    where: the inputs on which the bounds hold; all where there is no `reason`, which names those on which they do not.
    torch, onnx: the same function of torch's, by an expression of x, F and torch, and of ONNX's, with attributes.
    """

    formula: str
    body: str | OnTensor | None
    reference: Reference
    bounds: tuple[int, int]
    special: tuple[float, ...] = ()
    where: Truth = field(default=lambda x: np.full(x.shape, True))
    reason: str = ""
    torch: str = ""
    onnx: tuple[str, dict[str, Any]] | None = None

    def bound(self, dtype: str) -> int:
        """The largest error allowed, in units in the last place."""
        return self.bounds[("f32", "f64").index(dtype)]


def _erf(x: Array) -> Array:
    """In float64 the C library's; 2 / sqrt pi e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...) in long double.

    The terms are all of one sign, so that nothing cancels.
    """
    if x.dtype == np.float64:
        return _of_library("erf", x)
    wide = np.clip(x, -7, 7)
    term, total = wide.copy(), wide.copy()
    for k in range(1, 240):
        term = term * (2 * wide * wide) / (2 * k + 1)
        total += term
        if np.all(np.abs(term) <= np.abs(total) * np.longdouble(2) ** -80):
            break
    return 2 / _ROOT_OF_PI * np.exp(-wide * wide) * total


_ROOT_OF_PI = np.sqrt(np.arccos(np.longdouble(-1)))


def _erfc(x: Array) -> Array:
    """In float64 the C library's; in long double 1 - erf x, or from 1 on the continued fraction.

    That is e^(-x^2) / sqrt pi / (x + 1/2 / (x + 1 / (x + 3/2 / (x + ...)))), with x^2 in two exact parts.
    """
    if x.dtype == np.float64:
        return _of_library("erfc", x)
    wide = np.clip(x, 1, 30)
    fraction = wide
    for k in range(400, 0, -1):
        fraction = wide + np.longdouble(k) / 2 / fraction
    high = wide.astype(np.float32).astype(np.longdouble)
    tail = np.exp(-high * high) * np.exp((high - wide) * (high + wide)) / (_ROOT_OF_PI * fraction)
    return np.where(x > 1, tail, 1 - _erf(np.minimum(x, 1)))


def _of_library(name: str, x: Array) -> Array:
    """A function of the C library's for double."""
    return np.asarray(_library(name, x.size)(x.ravel())).reshape(x.shape)


@cache
def _library(name: str, count: int) -> Any:
    x = te.placeholder((count,), "f64", name="X")
    return compiler.build(te.function(name, [x], [getattr(nn, name)(x)]), policy="strict")


def _op(name: str) -> str:
    return f"%y = math.{name} %x : TYPE"


_SIGMOID = """
      %one = arith.constant CONSTANT(1.0) : TYPE
      %m = arith.negf %x : TYPE
      %e = math.exp %m : TYPE
      %s = arith.addf %one, %e : TYPE
      %y = arith.divf %one, %s : TYPE"""


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _xlogx(x: Array) -> Array:
    return np.where(x == 0, x.dtype.type(0), x * np.log(x))


def _facts(x: Array) -> Any:
    """The limits of the dtype of the results, which is narrower than x where x is a reference's."""
    return np.finfo(x.dtype)


def _normal_power(x: Array) -> Array:
    """Where e^x is a normal number."""
    return x > np.log(_facts(x).tiny)


def _numbers(x: Array) -> Array:
    return ~np.isnan(x)


_TAIL = "where e^x is subnormal, its digits are missing, as in torch"
_CUTS = (2 / 3, 0.5**0.5, 4 / 3, 2**0.5)

FUNCTIONS: dict[str, Function] = {
    "exp": Function("e^x", _op("exp"), np.exp, (1, 1), (88.72284, -87.33655, -103.972, 709.7827, -708.3964, -745.133)),
    "exp2": Function("2^x", _op("exp2"), np.exp2, (1, 1), (128.0, -126.0, -149.0, -150.0, 1024.0, -1022.0, -1075.0)),
    "expm1": Function("e^x - 1", _op("expm1"), np.expm1, (2, 2), (88.72284, -17.3, 709.7827, -37.4, 0.34657, -0.34657)),
    "log": Function("log x", _op("log"), np.log, (1, 1), _CUTS),
    "log2": Function("log x to the base 2", _op("log2"), np.log2, (2, 2), _CUTS),
    "log10": Function("log x to the base 10", _op("log10"), np.log10, (2, 2), _CUTS),
    "log1p": Function("log (1 + x)", _op("log1p"), np.log1p, (2, 2), (-1.0, -1 / 3, 1 / 3, 0.5**0.5 - 1, 2**0.5 - 1)),
    "tanh": Function("tanh x", _op("tanh"), np.tanh, (3, 3), (9.01, 19.06, 0.17329, 0.54931)),
    "erf": Function("erf x", _op("erf"), _erf, (2, 2), (1.0, 3.92, 4.2, 5.86, 6.0)),
    "erfc": Function("1 - erf x", _op("erfc"), _erfc, (4, 4), (0.5, 9.19, 10.05, 26.5, 27.22)),
    "sin": Function("sin x", _op("sin"), np.sin, (2, 2), (2.0**16, 2.0**30, *(n * np.pi / 4 for n in range(1, 20)))),
    "cos": Function("cos x", _op("cos"), np.cos, (2, 2), (2.0**16, 2.0**30, *(n * np.pi / 4 for n in range(1, 20)))),
    "rsqrt": Function("1 / sqrt x", _op("rsqrt"), lambda x: 1 / np.sqrt(x), (2, 2)),
    "sigmoid": Function(
        *("1 / (1 + e^-x)", _SIGMOID, _sigmoid, (3, 3), (-87.0, 17.0, -708.0, 37.0)),
        where=_normal_power,
        reason="where the result is subnormal it is 0: e^-x overflows",
    ),
}
"""What has a polynomial; rsqrt and sigmoid are made of such."""


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _mish(x: Array) -> Array:
    return x * np.tanh(_softplus(x))


def _elu(x: Array, alpha: float = 1.0, scale: float = 1.0, over: float = 1.0) -> Array:
    below = np.expm1(np.where(x > 0, 0, x) / over) * alpha
    return np.where(x > 0, x, below) * x.dtype.type(scale)


def _gelu(x: Array) -> Array:
    return x * _erfc(-x * np.sqrt(x.dtype.type(0.5))) / 2


def _gelu_tanh(x: Array) -> Array:
    root = np.sqrt(2 / np.arccos(x.dtype.type(-1)))
    return x * _sigmoid(2 * root * (x + x.dtype.type(0.044715) * x * x * x))


def _with(x: te.Tensor, value: float) -> te.Tensor:
    """A tensor of the same shape, of one number."""
    return te.compute(x.shape, lambda *i: e.const(value, x.dtype), "other")


def _of_pair(operator: Callable[..., te.Tensor], x: te.Tensor) -> te.Tensor:
    """An operator over the pairs (x, 0); the first of its two results, or its only one."""
    pair = te.compute((*x.shape, 2), lambda i, j: e.select(e.equal(j, 0), x[i], 0.0), "pair")
    y = operator(pair)
    return y if y.rank == 1 else te.compute(x.shape, lambda i: y[i, 0], "first")


def _over_twice(operator: Callable[..., te.Tensor], x: te.Tensor) -> te.Tensor:
    """An operator over the pairs (x, x); the first of its two results, or its only one."""
    pair = te.compute((*x.shape, 2), lambda i, j: x[i], "pair")
    y = operator(pair)
    return y if y.rank == 1 else te.compute(x.shape, lambda i: y[i, 0], "first")


def _squares(x: Array) -> Array:
    """Where the square of x is a normal number."""
    limits = _facts(x)
    size = np.abs(x)
    return (size > 1.1 * np.sqrt(limits.tiny)) & (size < 0.7 * np.sqrt(limits.max))


def _bce(value: float, logits: bool, x: te.Tensor) -> te.Tensor:
    return nn.bce_loss(x, _with(x, value), "none", logits)


_PAIR = "torch.stack([x, torch.zeros_like(x)], 1)"
_CANCELS = "left of -1 the 1 of 1 + erf takes the digits, as in torch and onnxruntime"
_SUM = "where the sum of exponentials is 1 and a little, its logarithm has no more digits than that, as in torch"
_OVERFLOW = "where x^2 overflows or is subnormal, as in torch"
_BCE = "F.binary_cross_entropy_with_logits(x, torch.{}_like(x), reduction='none')"

OPERATORS: dict[str, Function] = {
    "tan": Function("tan x", nn.tan, np.tan, (2, 2), torch="torch.tan(x)", onnx=("Tan", {})),
    "asin": Function("asin x", nn.asin, np.arcsin, (2, 2), torch="torch.asin(x)", onnx=("Asin", {})),
    "acos": Function("acos x", nn.acos, np.arccos, (2, 2), torch="torch.acos(x)", onnx=("Acos", {})),
    "atan": Function("atan x", nn.atan, np.arctan, (2, 2), torch="torch.atan(x)", onnx=("Atan", {})),
    "sinh": Function("sinh x", nn.sinh, np.sinh, (3, 3), (89.4, 710.4), torch="torch.sinh(x)", onnx=("Sinh", {})),
    "cosh": Function("cosh x", nn.cosh, np.cosh, (3, 3), (89.4, 710.4), torch="torch.cosh(x)", onnx=("Cosh", {})),
    "asinh": Function("asinh x", nn.asinh, np.arcsinh, (3, 3), torch="torch.asinh(x)", onnx=("Asinh", {})),
    "acosh": Function("acosh x", nn.acosh, np.arccosh, (3, 3), torch="torch.acosh(x)", onnx=("Acosh", {})),
    "atanh": Function("atanh x", nn.atanh, np.arctanh, (3, 3), torch="torch.atanh(x)", onnx=("Atanh", {})),
    "reciprocal": Function("1 / x", nn.reciprocal, lambda x: 1 / x, (1, 1), torch="1 / x", onnx=("Reciprocal", {})),
    "pow": Function(
        "x^1.5", lambda x: nn.pow(x, 1.5), lambda x: np.power(x, x.dtype.type(1.5)), (1, 1), torch="x**1.5"
    ),
    "atan2": Function(
        "atan2 (x, 1)", lambda x: nn.atan2(x, _with(x, 1.0)), np.arctan, (2, 2), torch="x.atan2(torch.ones_like(x))"
    ),
    "hypot": Function(
        *("sqrt (x^2 + (3/4 x)^2)", lambda x: nn.hypot(x, nn.mul(x, 0.75)), lambda x: np.abs(x) * 1.25, (3, 3)),
        torch="torch.hypot(x, x * 0.75)",
        where=lambda x: ~(np.abs(x) < 1e3 * _facts(x).tiny),
        reason="where 3/4 x is subnormal and rounded",
    ),
    "silu": Function(
        *("x / (1 + e^-x)", nn.silu, lambda x: x * _sigmoid(x), (4, 4)),
        torch="F.silu(x)",
        where=_normal_power,
        reason="where e^x is subnormal the result is 0, as in torch",
    ),
    "softplus": Function(
        "log (1 + e^x)", nn.softplus, _softplus, (2, 2), (-20.0, -104.0, -745.0), torch="F.softplus(x, 1, 1e9)"
    ),
    "logsigmoid": Function(
        *("-log (1 + e^-x)", None, lambda x: -_softplus(-x), (2, 2)),
        torch="F.logsigmoid(x)",
        where=lambda x: _normal_power(-x),
        reason="where e^-x is subnormal: it becomes 0, not -0",
    ),
    "softsign": Function(*("x / (1 + |x|)", nn.softsign, lambda x: x / (1 + np.abs(x)), (2, 2)), torch="F.softsign(x)"),
    "mish": Function(
        *("x tanh (log (1 + e^x))", nn.mish, _mish, (4, 4), (-20.0, 20.0)),
        torch="F.mish(x)",
        onnx=("Mish", {}),
        where=_normal_power,
        reason=_TAIL,
    ),
    "elu": Function("x, e^x - 1 below 0", nn.elu, _elu, (2, 2), torch="F.elu(x)", onnx=("Elu", {})),
    "selu": Function(
        *("1.0507 (x, 1.6733 (e^x - 1) below 0)", nn.selu),
        partial(_elu, alpha=1.6732632423543772, scale=1.0507009873554805),
        (3, 3),
        torch="F.selu(x)",
    ),
    "celu": Function(
        *("x, 3/2 (e^(2/3 x) - 1) below 0", lambda x: nn.celu(x, 1.5), partial(_elu, alpha=1.5, over=1.5), (3, 3)),
        torch="F.celu(x, 1.5)",
        onnx=("Celu", {"alpha": 1.5}),
    ),
    "gelu": Function(
        *("x (1 + erf (x / sqrt 2)) / 2", nn.gelu, _gelu, (4, 4), (-1.0,)),
        torch="F.gelu(x)",
        onnx=("Gelu", {}),
        where=lambda x: x > -1,
        reason=_CANCELS,
    ),
    "gelu_tanh": Function(
        *("x (1 + tanh (0.7979 (x + 0.0447 x^3))) / 2", lambda x: nn.gelu(x, "tanh"), _gelu_tanh, (4, 4)),
        torch="F.gelu(x, approximate='tanh')",
        onnx=("Gelu", {"approximate": "tanh"}),
        where=lambda x: x > -1,
        reason="left of -1 the exponent's rounding counts as often as it is large: 40 units at -5, torch none",
    ),
    "hardsigmoid": Function(
        *("min (max (x + 3, 0), 6) / 6", None, lambda x: np.clip(x + 3, 0, 6) / 6, (2, 2), (-3.0,)),
        torch="F.hardsigmoid(x)",
    ),
    "hardswish": Function(
        *("x min (max (x + 3, 0), 6) / 6", nn.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, (3, 3), (-3.0,)),
        torch="F.hardswish(x)",
        where=lambda x: ~(x > _facts(x).max / 7) & ~(np.abs(x) < 2 * _facts(x).tiny),
        reason="where 6 x overflows or x / 2 is subnormal, as in torch",
    ),
    "logit": Function(
        *("log (x / (1 - x))", None, lambda x: np.log(x) - np.log1p(-x), (4, 4)),
        torch="torch.logit(x)",
        where=lambda x: ~(np.abs(x - 0.5) < 0.25),
        reason="about 1/2, where it is 0, the quotient is rounded first, as in torch",
    ),
    "tanhshrink": Function(
        *("x - tanh x", None, lambda x: x - np.tanh(x), (4, 4)),
        torch="F.tanhshrink(x)",
        where=lambda x: ~(np.abs(x) < 2),
        reason="towards 0 the terms cancel; torch's tanh is exact there to half a unit, ours to 2.4",
    ),
    "logaddexp": Function(
        "log (e^x + e^0)", None, _softplus, (2, 2), (-20.0,), torch="torch.logaddexp(x, torch.zeros_like(x))"
    ),
    "xlogy": Function(*("x log x, 0 at 0", None, _xlogx, (3, 3), (1.0,), _numbers), torch="torch.xlogy(x, x)"),
    "xlog1py": Function(
        *("x log (1 + x)", None, lambda x: x * np.log1p(x), (3, 3), (), _numbers), torch="torch.special.xlog1py(x, x)"
    ),
    "ndtr": Function(
        *("(1 + erf (x / sqrt 2)) / 2", None, lambda x: _erfc(-x * np.sqrt(x.dtype.type(0.5))) / 2, (4, 4)),
        torch="torch.special.ndtr(x)",
        where=lambda x: x > -1,
        reason=_CANCELS,
    ),
    "sinc": Function(
        *("sin (pi x) / (pi x)", None, lambda x: np.sinc(x), (4, 4)),
        torch="torch.sinc(x)",
        where=lambda x: np.abs(x) < 0.5,
        reason="pi x is rounded first: of large x the angle is another one, as in torch",
    ),
    "huber_loss": Function(
        *("x^2 / 2, |x| - 1/2 from 1 on", None, lambda x: np.where(np.abs(x) < 1, x * x / 2, np.abs(x) - 0.5), (2, 2)),
        torch="F.huber_loss(x, torch.zeros_like(x), reduction='none')",
    ),
    "bce_of_1": Function(
        *("log (1 + e^-x)", partial(_bce, 1.0, True), lambda x: _softplus(-x), (3, 3)),
        torch=_BCE.format("ones"),
        where=lambda x: np.abs(x) < 1e30,
        reason="x - x at infinity",
    ),
    "bce_of_0": Function(
        *("log (1 + e^x)", partial(_bce, 0.0, True), _softplus, (3, 3)),
        where=lambda x: np.abs(x) < 1e30,
        reason="0 x at infinity; torch's has (1 - 0) x - log sigmoid x, which cancels",
    ),
    "bce_loss": Function(
        *("-log (1 - x)", partial(_bce, 0.0, False), lambda x: np.minimum(-np.log1p(-x), 100), (2, 2)),
        torch="F.binary_cross_entropy(x.clamp(0, 1), torch.zeros_like(x), reduction='none')",
        where=lambda x: (x > 0) & (x < 1),
        reason="x is a probability",
    ),
    "softmax": Function(
        *("e^x / (e^x + e^0)", partial(_of_pair, nn.softmax), _sigmoid, (4, 4)),
        torch=f"F.softmax({_PAIR}, 1)[:, 0]",
        where=lambda x: _normal_power(x) & (x < 1e30),
        reason=_TAIL,
    ),
    "log_softmax": Function(
        *("log (e^x / (e^x + e^0))", partial(_of_pair, nn.log_softmax), lambda x: -_softplus(-x), (4, 4)),
        torch=f"F.log_softmax({_PAIR}, 1)[:, 0]",
        where=lambda x: (x < 0) & (x > -1e30),
        reason=_SUM,
    ),
    "logsumexp": Function(
        *("log (e^x + e^0)", partial(_of_pair, nn.logsumexp), _softplus, (4, 4)),
        torch=f"torch.logsumexp({_PAIR}, 1)",
        where=lambda x: x > 0,
        reason=_SUM,
    ),
    "norm": Function(
        *("sqrt (x^2 + x^2)", partial(_over_twice, lambda x: nn.norm(x, 2, 1))),
        lambda x: np.abs(x) * np.sqrt(x.dtype.type(2)),
        (2, 2),
        torch="torch.linalg.vector_norm(torch.stack([x, x], 1), dim=1)",
        where=_squares,
        reason=_OVERFLOW,
    ),
    "normalize": Function(
        *("x / sqrt (x^2 + x^2)", partial(_over_twice, nn.lp_normalize)),
        lambda x: np.sign(x) * np.sqrt(x.dtype.type(0.5)),
        (3, 3),
        torch="F.normalize(torch.stack([x, x], 1), dim=1, eps=0.0)[:, 0]",
        where=_squares,
        reason=_OVERFLOW,
    ),
}
"""Operators that are made of several functions, or that call the C library."""
ROWS = FUNCTIONS | OPERATORS
