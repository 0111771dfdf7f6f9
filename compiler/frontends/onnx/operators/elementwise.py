"""Arithmetic, activations, comparisons, casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import numpy as np

from compiler.frontends.onnx.table import Handler, Node, Refused, Value, handler, handles, register, register_each
from compiler.frontends.onnx.types import DTYPE_OF, type_name
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn import formulas
from compiler.te.nn.common import accumulator, astype
from compiler.te.nn.elementwise import broadcast_shape, read_at, unary_op
from compiler.te.tensor import Tensor
from compiler.types.dtypes import DTYPES, is_float

register(
    __name__,
    {
        "Abs": handler(nn.abs),
        "Acos": handler(nn.acos),
        "Acosh": handler(nn.acosh),
        "Asin": handler(nn.asin),
        "Asinh": handler(nn.asinh),
        "Atan": handler(nn.atan),
        "Atanh": handler(nn.atanh),
        "BitwiseNot": handler(nn.bitwise_not),
        "Ceil": handler(nn.ceil),
        "Celu": handler(nn.celu, alpha=1.0),
        "Cos": handler(nn.cos),
        "Cosh": handler(nn.cosh),
        "Elu": handler(nn.elu, alpha=1.0),
        "Exp": handler(nn.exp),
        "Floor": handler(nn.floor),
        "Gelu": handler(nn.gelu, approximate="none"),
        "HardSigmoid": handler(nn.hardsigmoid, alpha=0.2, beta=0.5),
        "IsNaN": handler(nn.isnan),
        "LeakyRelu": handler(nn.leaky_relu, alpha=0.01),
        "Log": handler(nn.log),
        "Mish": handler(nn.mish),
        "Neg": handler(nn.neg),
        "Not": handler(nn.bitwise_not),
        "Reciprocal": handler(nn.reciprocal),
        "Relu": handler(nn.relu),
        "Round": handler(nn.round),
        "Sigmoid": handler(nn.sigmoid),
        "Sign": handler(nn.sign),
        "Sin": handler(nn.sin),
        "Sinh": handler(nn.sinh),
        "Softplus": handler(nn.softplus),
        "Softsign": handler(nn.softsign),
        "Sqrt": handler(nn.sqrt),
        "Tan": handler(nn.tan),
        "Tanh": handler(nn.tanh),
        "ThresholdedRelu": handler(nn.threshold, alpha=1.0),
        "Where": handler(nn.where, tensors=3),
    },
)


def operands(node: Node) -> tuple[Tensor, Tensor | float]:
    """Return the first two inputs; the second as a number if it is a constant of one element, no bool, and its rank is
    at most the first's."""
    number = node.number(1)
    left = node.tensor(0)
    fits = number is not None and not isinstance(number, bool) and len(node.value(1).shape) <= left.rank
    return left, number if fits and number is not None else node.tensor(1)


def _binary(function: Callable[..., Tensor]) -> Handler:
    return lambda node: function(*operands(node), name=node.name)


register_each(
    {
        "Add": nn.add,
        "And": nn.bitwise_and,
        "BitwiseAnd": nn.bitwise_and,
        "BitwiseOr": nn.bitwise_or,
        "BitwiseXor": nn.bitwise_xor,
        "Equal": nn.equal,
        "Greater": nn.greater,
        "GreaterOrEqual": nn.greater_equal,
        "Less": nn.less,
        "LessOrEqual": nn.less_equal,
        "Mul": nn.mul,
        "Or": nn.bitwise_or,
        "Sub": nn.sub,
        "Xor": nn.bitwise_xor,
    },
    _binary,
)


@handles("Div")
def div(node: Node) -> Tensor:
    """The quotient, elementwise with broadcasting; for integers truncated towards zero."""
    left, right = operands(node)
    return (nn.div if is_float(left.dtype) else nn.trunc_divide)(left, right, name=node.name)


@handles("Mod")
def mod(node: Node) -> Tensor:
    """The remainder, with the sign of the divisor, or with `fmod` of the dividend."""
    return (nn.fmod if node.attribute("fmod", 0) else nn.remainder)(*operands(node), name=node.name)


@handles("Pow")
def pow(node: Node) -> Tensor:
    """Base to the power exponent, computed in a float dtype if either is a float (other than a constant whole
    exponent), and cast to the base's dtype."""
    base, exponent = operands(node)
    if isinstance(exponent, Tensor) and exponent.dtype != base.dtype:
        if is_float(exponent.dtype) and not is_float(base.dtype):
            power = nn.pow(nn.cast(base, exponent.dtype), exponent)
            return nn.cast(power, base.dtype, name=node.name)
        exponent = nn.cast(exponent, base.dtype)
    if isinstance(exponent, float | int):
        if exponent == 2:
            return nn.square(base, name=node.name)
        if not is_float(base.dtype) and exponent != int(exponent):
            return nn.cast(nn.pow(nn.cast(base, "f64"), exponent), base.dtype, name=node.name)
        exponent = float(exponent) if is_float(base.dtype) else int(exponent)
    return nn.pow(base, exponent, name=node.name)


@handles("BitShift")
def bit_shift(node: Node) -> Tensor:
    """Shift bits to the left or to the right, by the attribute `direction`."""
    shift = nn.left_shift if node.attribute("direction") == "LEFT" else nn.right_shift
    return shift(node.tensor(0), node.tensor(1), name=node.name)


def _variadic(function: Callable[..., Tensor]) -> Handler:
    return lambda node: reduce(partial(function, name=node.name), node.tensors())


register_each({"Max": nn.maximum, "Min": nn.minimum, "Sum": nn.add}, _variadic)


@handles("Mean")
def mean(node: Node) -> Tensor:
    """The elementwise mean of the inputs, with broadcasting; in f32 for narrower floats."""
    dtype = node.tensor(0).dtype
    total, *further_terms = (astype(operand, accumulator(dtype), f"{node.name}.wide") for operand in node.tensors())
    total = reduce(partial(nn.add, name=f"{node.name}.sum"), further_terms, total)
    return astype(nn.div(total, float(len(node.values)), name=node.name), dtype, node.name)


@handles("Erf")
def erf(node: Node) -> Tensor:
    """The error function; for integers its value in f64, truncated towards zero."""
    x = node.tensor(0)
    if is_float(x.dtype):
        return nn.erf(x, name=node.name)
    return nn.cast(nn.erf(nn.cast(x, "f64")), x.dtype, name=node.name)


@handles("Identity", "Dropout")
def identity(node: Node) -> list[Tensor]:
    """The input, and if used Dropout's mask, all true. Raises Refused for training mode unless the ratio is 0."""
    x = node.tensor(0)
    is_training = node.operator == "Dropout" and node.has(2) and bool(node.constant(2, "'training_mode'").any())
    if is_training and not (node.has(1) and node.number(1) == 0):
        raise Refused("in training mode its result is random")
    if not node.uses(1):
        return [x]
    return [x, compute(x.shape, lambda *i: e.const(True, "i1"), f"{node.name}.mask")]


@handles("Cast", "CastLike")
def cast(node: Node) -> Value:
    """Convert to the dtype `to`, for CastLike to the second input's; CastLike of a constant yields a constant. Raises
    Refused for a dtype that te lacks."""
    if node.operator == "CastLike":
        target = node.tensor(1).dtype
        operand = node.value(0)
        if not isinstance(operand, Tensor):
            return operand.astype(DTYPES[target].array)
    else:
        dtype = DTYPE_OF.get(node.attribute("to"))
        if dtype is None:
            raise Refused(f"it casts to {type_name(node.attribute('to'))}, a dtype that te lacks")
        target = dtype
    x = node.tensor(0)
    return x if x.dtype == target else nn.cast(x, target, name=node.name)


@handles("Clip")
def clip(node: Node) -> Tensor:
    """min(max(x, low), high); either bound may be omitted."""
    bounds: list[Tensor | float | None] = []
    for position in (1, 2):
        number = node.number(position) if node.has(position) else None
        bounds.append(node.optional(position) if number is None else number)
    if bounds == [None, None]:
        return node.tensor(0)
    low, high = bounds
    return nn.clamp(node.tensor(0), low, high, name=node.name)


@handles("IsInf")
def is_inf(node: Node) -> Tensor:
    """An i1, true for infinite elements of the signs that `detect_positive` and `detect_negative` enable."""
    infinity = float("inf")
    signs = [
        s for s, name in ((infinity, "detect_positive"), (-infinity, "detect_negative")) if node.attribute(name, 1)
    ]

    def truth(x: Expr) -> Expr:
        truths = [e.equal(x, sign) for sign in signs]
        return e.any_of(*truths) if len(truths) > 1 else truths[0] if truths else e.const(False, "i1")  # type: ignore[return-value]

    return unary_op("isinf", "", truth)(node.tensor(0), node.name)


@handles("PRelu")
def prelu(node: Node) -> Tensor:
    """x if x >= 0 else slope * x, with the slope broadcast."""
    x, slope = node.tensor(0), node.tensor(1)
    if is_float(x.dtype):
        return nn.prelu(x, slope, name=node.name)
    return nn.where(nn.less(x, 0), nn.mul(x, slope), x, name=node.name)


@handles("HardSwish")
def hard_swish(node: Node) -> Tensor:
    """x * min(max(x / 6 + 0.5, 0), 1); unlike x * min(max(x + 3, 0), 6) / 6 it does not overflow."""

    def gated(x: Expr) -> Expr:
        return x * e.minimum(e.maximum(x * float(np.float32(1 / 6)) + 0.5, 0.0), 1.0)

    return unary_op("hardswish", "", gated, narrow=False)(node.tensor(0), node.name)


@handles("Swish")
def swish(node: Node) -> Tensor:
    """x * sigmoid(alpha * x)."""
    alpha = node.attribute("alpha", 1.0)
    if alpha == 1.0:
        return nn.silu(node.tensor(0), name=node.name)
    return unary_op("swish", "", lambda x: x * e.sigmoid(x * alpha), narrow=False)(node.tensor(0), node.name)


@handles("Selu")
def selu(node: Node) -> Tensor:
    """gamma * (x if x > 0 else alpha * (exp(x) - 1))."""
    alpha, gamma = node.attribute("alpha", 1.6732632423543772), node.attribute("gamma", 1.0507009873554805)
    return unary_op("selu", "", lambda x: formulas.elu(x, alpha, gamma), narrow=False)(node.tensor(0), node.name)


@handles("Shrink")
def shrink(node: Node) -> Tensor:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    bias, limit = node.attribute("bias", 0.0), node.attribute("lambd", 0.5)
    x = node.tensor(0)
    sum_dtype = accumulator(x.dtype) if is_float(x.dtype) else "f64"

    def element(*i: Index) -> Expr:
        value = e.cast(x[i], sum_dtype)
        shrunk = e.select(value < -limit, value + bias, e.select(value > limit, value - bias, 0.0))
        return e.cast(shrunk, x.dtype)

    return compute(x.shape, element, node.name)


def broadcast(x: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    """Broadcast x to the common shape of x and `shape`, as numpy does; return x unchanged if that is its shape."""
    result_shape = broadcast_shape("broadcast", shape, x)
    return x if result_shape == x.shape else compute(result_shape, lambda *i: read_at(x, i), name)
