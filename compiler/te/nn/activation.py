"""Activations; floats narrower than f32 are computed in f32 and rounded once."""

from __future__ import annotations

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn import formulas
from compiler.te.nn.common import accumulator, check_float, check_number
from compiler.te.nn.elementwise import broadcast_shape, read_at, unary_op
from compiler.te.tensor import Tensor

__all__ = [
    "celu",
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "leaky_relu",
    "mish",
    "prelu",
    "selu",
    "silu",
    "softplus",
    "softsign",
    "threshold",
]


silu = unary_op("silu", "x / (1 + exp(-x))", lambda x: x * e.sigmoid(x), narrow=False)
softplus = unary_op("softplus", "log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))", formulas.softplus, narrow=False)
hardswish = unary_op(
    "hardswish",
    "x * min(max(x + 3, 0), 6) / 6",
    lambda x: x * e.minimum(e.maximum(x + 3.0, 0.0), 6.0) * (1.0 / 6.0),
    narrow=False,
)
softsign = unary_op("softsign", "x / (1 + |x|)", lambda x: x / (1.0 + e.abs(x)), narrow=False)
mish = unary_op("mish", "x * tanh(log(1 + exp(x)))", formulas.mish, narrow=False)
selu = unary_op(
    "selu",
    "1.0507 * (x if x > 0 else 1.6733 * (exp(x) - 1))",
    lambda x: formulas.elu(x, formulas.SELU_ALPHA, formulas.SELU),
    narrow=False,
)


def gelu(x: Tensor, approximate: str = "none", name: str = "gelu") -> Tensor:
    """Y[i...] = x * (1 + erf(x / sqrt 2)) / 2 for x = X[i...] of a float dtype.

    With `approximate="tanh"`, x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2. Raises TeError for other
    arguments. Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
    """
    if not isinstance(approximate, str) or approximate not in ("none", "tanh"):
        raise TeError(f"gelu: unknown approximation {approximate!r} (there are none, tanh)")
    formula = formulas.gelu if approximate == "none" else formulas.gelu_tanh
    return unary_op("gelu", "", formula, narrow=False)(x, name)


def leaky_relu(x: Tensor, slope: float = 0.01, name: str = "leaky_relu") -> Tensor:
    """Y[i...] = X[i...] if X[i...] >= 0 else slope * X[i...], of a float dtype. Raises TeError for other arguments."""
    return unary_op("leaky_relu", "", lambda v: e.select(v < 0.0, v * slope, v), narrow=False)(
        check_float("leaky_relu", x), name
    )


def elu(x: Tensor, alpha: float = 1.0, name: str = "elu") -> Tensor:
    """Y[i...] = X[i...] if X[i...] > 0 else alpha * (exp(X[i...]) - 1), of a float dtype. Raises TeError for other
    arguments."""
    factor = check_number("elu", "alpha", alpha)
    return unary_op("elu", "", lambda v: formulas.elu(v, factor), narrow=False)(check_float("elu", x), name)


def celu(x: Tensor, alpha: float = 1.0, name: str = "celu") -> Tensor:
    """Y[i...] = X[i...] if X[i...] > 0 else alpha * (exp(X[i...] / alpha) - 1), of a float dtype. Raises TeError for
    other arguments."""
    if check_number("celu", "alpha", alpha) == 0:
        raise TeError("celu: alpha is 0")
    return unary_op("celu", "", lambda v: formulas.celu(v, alpha), narrow=False)(check_float("celu", x), name)


def hardsigmoid(x: Tensor, alpha: float = 1 / 6, beta: float = 0.5, name: str = "hardsigmoid") -> Tensor:
    """Y[i...] = min(max(alpha * X[i...] + beta, 0), 1), of a float dtype. Raises TeError for other arguments."""
    slope, offset = check_number("hardsigmoid", "alpha", alpha), check_number("hardsigmoid", "beta", beta)
    operator = unary_op("hardsigmoid", "", lambda v: e.minimum(e.maximum(v * slope + offset, 0.0), 1.0), narrow=False)
    return operator(check_float("hardsigmoid", x), name)


def threshold(x: Tensor, least: float = 1.0, otherwise: float = 0.0, name: str = "threshold") -> Tensor:
    """Y[i...] = X[i...] if X[i...] > least else otherwise, of any dtype of numbers. Raises TeError for other arguments.

    Elsewhere: torch threshold; ONNX ThresholdedRelu.
    """
    return unary_op("threshold", "", lambda v: e.select(v > least, v, otherwise))(x, name)


def prelu(x: Tensor, slope: Tensor, name: str = "prelu") -> Tensor:
    """Y[i...] = X[i...] if X[i...] >= 0 else slope[i...] * X[i...], with broadcasting; float dtypes. Raises TeError for
    other arguments."""
    acc_dtype = accumulator(check_float("prelu", x).dtype)
    if check_float("prelu", slope).dtype != x.dtype:
        raise TeError(f"prelu: '{x.name}' is of {x.dtype}, '{slope.name}' of {slope.dtype}")

    def element(*i: Index) -> Expr:
        value = e.cast(read_at(x, i), acc_dtype)
        return e.cast(e.select(value < 0.0, value * e.cast(read_at(slope, i), acc_dtype), value), x.dtype)

    return compute(broadcast_shape("prelu", x.dims, slope), element, name)
