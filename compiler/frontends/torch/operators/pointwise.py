"""Elementwise arithmetic, mathematics and comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from compiler.dialects.mathematics import ELEMENTARY
from compiler.frontends.torch.operators.elements import Operand, pointwise, promote, read, round_to, to_dtype
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Scalar, unary
from compiler.te.index import Index
from compiler.te.nn import formulas
from compiler.te.tensor import Tensor
from compiler.types.dtypes import is_float


def _function(name: str) -> Callable[[Expr], Expr]:
    return lambda x: unary(name, x)


def _exact(formula: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """Return a function that applies `formula` to floats and returns integers unchanged."""
    return lambda x: formula(x) if is_float(x.dtype) else x


_UNARY: dict[str, Callable[[Expr], Scalar]] = {
    name: _function(name)
    for name in ELEMENTARY
    if name not in ("abs", "cbrt", "ceil", "floor", "round", "round_away", "trunc")
    and name not in ("atan2", "copysign", "fma", "fmod", "pow")
} | {
    "abs": e.abs,
    "ceil": _exact(_function("ceil")),
    "floor": _exact(e.floor),
    "neg": lambda x: -x,
    "reciprocal": lambda x: 1.0 / x,
    "relu": lambda x: e.maximum(x, 0),
    "round": _exact(e.round),
    "sigmoid": e.sigmoid,
    "sign": lambda x: e.cast(x > 0, x.dtype) - e.cast(x < 0, x.dtype),
    "silu": lambda x: x * e.sigmoid(x),
    "trunc": _exact(_function("trunc")),
    "mish": formulas.mish,
    "hardswish": lambda x: x * e.minimum(e.maximum(x + 3.0, 0.0), 6.0) * (1.0 / 6.0),
    "hardsigmoid": lambda x: e.minimum(e.maximum(x + 3.0, 0.0), 6.0) * (1.0 / 6.0),
}


def _register_unary(name: str, formula: Callable[[Expr], Scalar]) -> None:
    operator(name)(lambda call, x: pointwise(call, formula, x))


for _name, _formula in _UNARY.items():
    _register_unary(_name, _formula)


@operator("gelu")
def gelu(call: Call, x: Tensor, approximate: str = "none") -> Tensor:
    """x Phi(x) for the standard normal distribution function Phi, or with approximate="tanh" its tanh approximation."""
    return pointwise(call, formulas.gelu if approximate == "none" else formulas.gelu_tanh, x)


@operator("hardtanh", "clamp")
def clamp(call: Call, x: Tensor, low: float | None = None, high: float | None = None, **named: float | None) -> Tensor:
    """min(max(x, low), high) with numbers as bounds; None for no bound. named: the bounds by torch's names, `min` and
    `max`, or `min_val` and `max_val` of hardtanh, which replace `low` and `high`."""
    low, high = named.get("min", named.get("min_val", low)), named.get("max", named.get("max_val", high))
    return clamp_tensor(call, x, low, high)


@operator("clamp.Tensor")
def clamp_tensor(call: Call, x: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """min(max(x, min), max) with tensors as bounds, broadcast; None for no bound."""
    bounds = [bound for bound in (min, max) if bound is not None]

    def formula(v: Expr, *bound_values: Expr) -> Expr:
        remaining = list(bound_values)
        v = v if min is None else e.maximum(v, remaining.pop(0))
        return v if max is None else e.minimum(v, remaining.pop(0))

    return pointwise(call, formula, x, *bounds)


@operator("elu")
def elu(call: Call, x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """scale (x if x > 0 else alpha (exp(input_scale x) - 1))."""
    return pointwise(call, lambda v: formulas.elu(v, alpha, scale, input_scale), x)


@operator("leaky_relu")
def leaky_relu(call: Call, x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x if x > 0 else x * negative_slope."""
    return pointwise(call, lambda v: e.select(v > 0, v, v * negative_slope), x)


@operator("softplus")
def softplus(call: Call, x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta; x if beta x exceeds the threshold."""

    def formula(v: Expr) -> Expr:
        scaled = v * beta
        return e.select(scaled > threshold, v, formulas.softplus(scaled) * (1 / beta))

    return pointwise(call, formula, x)


def _binary(
    call: Call,
    formula: Callable[[Expr, Expr], Scalar],
    x: Operand,
    y: Operand,
    exact: Sequence[int] = (),
    dtype: str | None = None,
) -> Tensor:
    """Apply a formula to two operands rounded to a dtype (default: the result's), except for numbers and tensors
    without dimensions at the positions `exact`."""
    common = dtype or call.dtype
    operands = (promote(operand, common, f"{call.name}.{n}", n in exact) for n, operand in enumerate((x, y)))
    return pointwise(call, formula, *operands, dtype=common)


@operator("add.Tensor", "add.Scalar")
def add(call: Call, x: Operand, y: Operand, alpha: float = 1) -> Tensor:
    """x + alpha y."""
    factor = round_to(alpha, call.dtype)
    return _binary(call, lambda a, b: a + (b if factor == 1 else b * factor), x, y)


@operator("sub.Tensor", "sub.Scalar")
def sub(call: Call, x: Operand, y: Operand, alpha: float = 1) -> Tensor:
    """x - alpha y."""
    factor = round_to(alpha, call.dtype)
    return _binary(call, lambda a, b: a - (b if factor == 1 else b * factor), x, y)


@operator("mul.Tensor", "mul.Scalar")
def mul(call: Call, x: Operand, y: Operand) -> Tensor:
    """x * y, elementwise."""
    return _binary(call, lambda a, b: a * b, x, y, exact=(0, 1))


@operator("div.Tensor", "div.Scalar")
def div(call: Call, x: Operand, y: Operand) -> Tensor:
    """x / y, elementwise."""
    if isinstance(y, int | float) and y and math.frexp(y)[0] == 0.5:  # a power of two: its reciprocal is exact
        return pointwise(call, lambda a: a * (1.0 / y), x)
    return _binary(call, lambda a, b: a / b, x, y, exact=(1,))


@operator("addcdiv")
def addcdiv(call: Call, x: Tensor, y: Tensor, z: Tensor, value: float = 1) -> Tensor:
    """x + value y / z."""
    return pointwise(call, lambda a, b, c: a + b * value / c, x, y, z)


@operator("div.Tensor_mode", "div.Scalar_mode")
def div_mode(call: Call, x: Operand, y: Operand, rounding_mode: str | None = None) -> Tensor:
    """x / y, rounded down ("floor") or towards zero ("trunc"), or not rounded (None). Raises Unsupported for a rounded
    quotient of integers by the number 0."""
    if rounding_mode is None:
        return div(call, x, y)
    _check_divisor(call, y)
    if rounding_mode == "floor":
        return _binary(call, lambda a, b: a // b, x, y, exact=(1,))
    if not is_float(call.dtype):
        return _binary(call, e.truncdiv, x, y)
    by_number = not isinstance(y, Tensor) or not y.rank

    def truncate(a: Expr, b: Expr) -> Expr:
        """Truncate the quotient, rounded to the dtype first if the divisor is a tensor."""
        return e.trunc(a / b if by_number else e.cast(e.cast(a / b, call.dtype), a.dtype))

    return _binary(call, truncate, x, y, exact=(1,))


def _check_divisor(call: Call, y: Operand) -> None:
    if not is_float(call.dtype) and y == 0:
        raise Unsupported("integers are divided by 0, where torch raises an error")


@operator("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(call: Call, x: Operand, y: Operand) -> Tensor:
    """The remainder of x / y with the sign of y; a float zero has the sign of x. Raises Unsupported for integers over
    the number 0."""
    _check_divisor(call, y)

    def formula(a: Expr, b: Expr) -> Expr:
        value = a % b
        return e.select(e.equal(value, 0.0), e.copysign(value, a), value) if is_float(a.dtype) else value

    return _binary(call, formula, x, y)


@operator("fmod.Tensor", "fmod.Scalar")
def fmod(call: Call, x: Operand, y: Operand) -> Tensor:
    """The remainder of x / y with the sign of x. Raises Unsupported for integers over the number 0."""
    _check_divisor(call, y)
    return _binary(call, e.fmod if is_float(call.dtype) else e.truncmod, x, y)


@operator("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def pow(call: Call, x: Operand, y: Operand) -> Tensor:
    """x to the power y: products for a number y of 0, 1 ... 8, a root or reciprocal for floats to 0.5, -0.5 or -1.
    Raises Unsupported for integers to a number y < 0."""
    if isinstance(y, int | float) and float(y).is_integer() and 0 <= y <= 8 and call.dtype != "i1":
        return pointwise(call, lambda a: _power(a, int(y)), x)
    if isinstance(y, float | int) and is_float(call.dtype) and y in _ROOTS:
        return pointwise(call, _ROOTS[y], x)
    if not is_float(call.dtype) and isinstance(y, int | float) and y < 0:
        raise Unsupported("a power of integers below zero, where torch raises an error")
    return _binary(call, e.pow, x, y)


_ROOTS: dict[float, Callable[[Expr], Expr]] = {0.5: e.sqrt, -0.5: e.rsqrt, -1: lambda a: 1.0 / a}


def _power(a: Expr, exponent: int) -> Expr:
    if exponent == 0:
        return e.const(1, a.dtype)
    half = _power(a, exponent // 2) if exponent > 1 else None
    square = a if half is None else half * half
    return square * a if half is not None and exponent % 2 else square


def _hypot(a: Expr, b: Expr) -> Expr:
    """sqrt(a^2 + b^2) without overflow of the squares."""
    longer, shorter = e.maximum(e.abs(a), e.abs(b)), e.minimum(e.abs(a), e.abs(b))
    ratio = shorter / e.select(longer > 0.0, longer, 1.0)
    return e.select(e.equal(longer, math.inf), math.inf, longer * e.sqrt(1.0 + ratio * ratio))


def _unless_nan(a: Expr, b: Expr, joint: Expr) -> Expr:
    """Select b if a is NaN, a if b is NaN, else `joint`."""
    if not is_float(a.dtype):
        return joint
    return e.select(e.not_equal(a, a), b, e.select(e.not_equal(b, b), a, joint))


_BINARY: dict[str, Callable[[Expr, Expr], Scalar]] = {
    "atan2": e.atan2,
    "fmax": lambda a, b: _unless_nan(a, b, e.maximum(a, b)),
    "fmin": lambda a, b: _unless_nan(a, b, e.minimum(a, b)),
    "hypot": _hypot,
    "maximum": e.maximum,
    "minimum": e.minimum,
}
_EXACT: dict[tuple[str, ...], Callable[[Expr, Expr], Scalar]] = {
    ("copysign.Tensor",): e.copysign,
    ("__lshift__.Scalar", "__lshift__.Tensor"): lambda a, b: a << b,
    ("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar"): lambda a, b: a << b,
    ("__rshift__.Scalar", "__rshift__.Tensor"): lambda a, b: a >> b,
    ("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar"): lambda a, b: a >> b,
}
"""Operators whose operands are not rounded to the common dtype first."""


def _register_binary(names: Sequence[str], formula: Callable[..., Scalar], apply: Callable[..., Tensor]) -> None:
    operator(*names)(lambda call, x, y: apply(call, formula, x, y))


for _name, _joint in _BINARY.items():
    _register_binary([_name], _joint, _binary)
for _names, _joint in _EXACT.items():
    _register_binary(_names, _joint, pointwise)

_RELATIONS: dict[str, Callable[[Expr, Expr], Scalar]] = {
    "eq": e.equal,
    "ne": e.not_equal,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _register_relation(name: str, relation: Callable[[Expr, Expr], Scalar]) -> None:
    def compare(call: Call, x: Tensor, y: Operand) -> Tensor:
        return _binary(call, relation, x, y, dtype=call.common)

    operator(f"{name}.Tensor", f"{name}.Scalar")(compare)


for _name, _relation in _RELATIONS.items():
    _register_relation(_name, _relation)


def _logical(call: Call, formula: Callable[..., Expr], *operands: Operand) -> Tensor:
    def element(*at: Index) -> Expr:
        return formula(*(e.cast(read(operand, at, _dtype_of(operand, "i1")), "i1") for operand in operands))

    return compute(call.shape, element, call.name)


@operator("logical_not")
def logical_not(call: Call, x: Tensor) -> Tensor:
    """An i1, true if x is zero."""
    return _logical(call, lambda a: ~a, x)


def _register_bitwise(logical_name: str, bitwise_name: str, formula: Callable[[Expr, Expr], Expr]) -> None:
    """Register a logical operator, with operands converted to i1, and its bitwise form, the same for i1."""

    def logical(call: Call, x: Operand, y: Operand) -> Tensor:
        return _logical(call, formula, x, y)

    def bitwise(call: Call, x: Operand, y: Operand) -> Tensor:
        return logical(call, x, y) if call.dtype == "i1" else pointwise(call, formula, x, y)

    operator(logical_name)(logical)
    operator(*(f"{bitwise_name}.{kind}" for kind in ("Tensor", "Scalar", "Scalar_Tensor")))(bitwise)


_register_bitwise("logical_and", "bitwise_and", lambda a, b: a & b)
_register_bitwise("logical_or", "bitwise_or", lambda a, b: a | b)
_register_bitwise("logical_xor", "bitwise_xor", lambda a, b: a ^ b)


@operator("bitwise_not")
def bitwise_not(call: Call, x: Tensor) -> Tensor:
    """The bitwise complement of integers; the negation of i1."""
    return logical_not(call, x) if call.dtype == "i1" else pointwise(call, lambda a: ~a, x)


@operator("isnan")
def isnan(call: Call, x: Tensor) -> Tensor:
    """An i1, true if x is NaN."""
    return pointwise(call, lambda a: e.not_equal(a, a), x, dtype=x.dtype)


@operator("isinf")
def isinf(call: Call, x: Tensor) -> Tensor:
    """An i1, true if x is infinite; false for integers."""
    if not is_float(x.dtype):
        return pointwise(call, lambda a: False, x, dtype="i1")
    return pointwise(call, lambda a: e.equal(e.abs(a), math.inf), x, dtype=x.dtype)


@operator("where.self")
def where(call: Call, condition: Tensor, x: Operand, y: Operand) -> Tensor:
    """x if the condition is true, else y, elementwise with broadcasting."""

    def element(*at: Index) -> Expr:
        truth = read(condition, at, "i1")
        return e.select(truth, read(x, at, call.dtype), read(y, at, call.dtype))

    return compute(call.shape, element, call.name)


@operator("_to_copy", "to.dtype")
def to_copy(call: Call, x: Tensor, *options: object, **named: object) -> Tensor:
    """x cast to the call's dtype; further arguments, such as a device, have no effect."""
    return to_dtype(x, call.dtype, call.name)


@operator("copy")
def copy(call: Call, x: Tensor, source: Operand, non_blocking: bool = False) -> Tensor:
    """The source, broadcast to the call's shape and cast to its dtype; x gives neither elements nor shape.
    `non_blocking` has no effect."""
    dtype = _dtype_of(source, call.dtype)
    return compute(call.shape, lambda *i: e.cast(read(source, i, dtype), call.dtype), call.name)


def _dtype_of(operand: Operand, dtype: str) -> str:
    return operand.dtype if isinstance(operand, Tensor) else dtype
