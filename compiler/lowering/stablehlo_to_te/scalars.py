"""Scalar functions of StableHLO's elementwise ops, for tensors and for the regions of reductions and sorts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from compiler.dialects.upstream.stablehlo.attributes import integers, precision_bits, word
from compiler.lowering.stablehlo_to_te.call import refused, tensor_type
from compiler.te import scalar as e
from compiler.te.expr import Const, Expr, compare
from compiler.types.dtypes import has_sign, is_float, width

ScalarFunction: TypeAlias = Callable[..., Expr]


def _wide(function: ScalarFunction) -> ScalarFunction:
    """Return a function that computes floats narrower than f32 in f32, and rounds the result back; by the dtype of the
    first operand; floats of 32 bits or more and other dtypes are computed as they are."""

    def build(*operands: Expr) -> Expr:
        dtype = operands[0].dtype
        if not is_float(dtype) or width(dtype) >= 32:
            return function(*operands)
        return e.cast(function(*(e.cast(operand, "f32") for operand in operands)), dtype)

    return build


def _by_kind(of_floats: ScalarFunction, of_integers: ScalarFunction, of_truths: ScalarFunction) -> ScalarFunction:
    """Return a function that calls one of three by the dtype of its first operand: float (computed in f32 at least),
    integer, or i1."""

    def build(*operands: Expr) -> Expr:
        dtype = operands[0].dtype
        return (of_truths if dtype == "i1" else _wide(of_floats) if is_float(dtype) else of_integers)(*operands)

    return build


def _unsigned(dtype: str) -> str:
    return f"u{width(dtype)}"


def _signed(dtype: str) -> str:
    return f"i{width(dtype)}"


def _quotient(a: Expr, b: Expr) -> Expr:
    """Return a / b; a * (1 / b) if b is a constant power of two between 1e-30 and 1e30 in magnitude, where both are
    equal."""
    if isinstance(b, Const) and math.frexp(b.value)[0] in (0.5, -0.5) and 1e-30 < abs(b.value) < 1e30:
        return a * (1.0 / b.value)
    return a / b


def _sign(x: Expr) -> Expr:
    below = -1 if has_sign(x.dtype) else 0
    return e.select(x > 0, e.const(1, x.dtype), e.select(x < 0, e.const(below, x.dtype), x))


def _cbrt(x: Expr) -> Expr:
    """Return the cube root of a float: the power 1/3 of the magnitude and a Newton step, with the sign of x; zeros,
    infinities and NaN stay."""
    size = e.abs(x)
    root = e.pow(size, 1.0 / 3.0)
    better = root - (root - size / (root * root)) / 3.0
    is_plain = (size > 0.0) & (size < math.inf)
    return e.copysign(e.select(is_plain, better, size), x)


def _round_away(x: Expr) -> Expr:
    """Return the nearest integer to a float, as a float, ties away from zero; NaN and infinities stay."""
    integer = e.trunc(x)
    return e.select(e.abs(x - integer) >= 0.5, integer + e.copysign(e.const(1.0, x.dtype), x), integer)


def _count_ones(x: Expr) -> Expr:
    """Return the number of one bits of an integer, in its dtype; the width is a multiple of 8. Source: Hacker's
    Delight, 5-1."""
    bits = width(x.dtype)
    value = e.cast(x, _unsigned(x.dtype))

    def mask(pattern: int) -> Expr:
        return e.const(int(f"{pattern:02x}" * (bits // 8), 16), value.dtype)

    def shifted(v: Expr, count: int) -> Expr:
        return v >> e.const(count, v.dtype)

    value = value - (shifted(value, 1) & mask(0x55))
    value = (value & mask(0x33)) + (shifted(value, 2) & mask(0x33))
    value = (value + shifted(value, 4)) & mask(0x0F)
    total = value & e.const(0xFF, value.dtype)
    for n in range(8, bits, 8):
        total = total + (shifted(value, n) & e.const(0xFF, value.dtype))
    return e.cast(total, x.dtype)


def _leading_zeros(x: Expr) -> Expr:
    value = e.cast(x, _unsigned(x.dtype))
    count = 1
    while count < width(x.dtype):
        value = value | (value >> e.const(count, value.dtype))
        count *= 2
    return e.const(width(x.dtype), x.dtype) - e.cast(_count_ones(value), x.dtype)


def _shift_logical(x: Expr, count: Expr) -> Expr:
    return e.cast(e.cast(x, _unsigned(x.dtype)) >> e.cast(count, _unsigned(x.dtype)), x.dtype)


def _shift_arithmetic(x: Expr, count: Expr) -> Expr:
    """Return x shifted right arithmetically, also if its dtype is unsigned; a count of the width or more, or below 0,
    leaves the sign bit everywhere."""
    signed, limit = e.cast(x, _signed(x.dtype)), e.const(width(x.dtype) - 1, _unsigned(x.dtype))
    steps = e.cast(e.minimum(e.cast(count, _unsigned(x.dtype)), limit), _signed(x.dtype))
    return e.cast(signed >> steps, x.dtype)


_ERF_INV_SMALL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_ERF_INV_LARGE = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip


def _erf_inv(x: Expr) -> Expr:
    """Return the inverse error function of an f32: infinite at 1 and -1, NaN beyond. Raises ValueError for other
    dtypes. Source: Giles, Approximating the erfinv function; XLA's coefficients."""
    if x.dtype != "f32":
        raise ValueError(f"erf_inv of {x.dtype}; there is one of f32")
    w = -e.log1p(-(x * x))
    is_small = w < 5.0
    u = e.select(is_small, w - 2.5, e.sqrt(w) - 3.0)
    p: Expr = e.select(is_small, e.const(_ERF_INV_SMALL[0], "f32"), e.const(_ERF_INV_LARGE[0], "f32"))
    for small, large in zip(_ERF_INV_SMALL[1:], _ERF_INV_LARGE[1:], strict=True):
        p = e.select(is_small, e.const(small, "f32"), e.const(large, "f32")) + p * u
    return e.select(e.equal(e.abs(x), 1.0), x * math.inf, p * x)


def _both(name: str) -> ScalarFunction:
    return lambda a, b: a & b if name == "and" else a | b if name == "or" else a ^ b


_AND, _OR, _XOR = _both("and"), _both("or"), _both("xor")

FUNCTIONS: dict[str, ScalarFunction] = {
    "stablehlo.abs": _by_kind(e.abs, lambda x: e.abs(x) if has_sign(x.dtype) else x, lambda x: x),
    "stablehlo.add": _by_kind(lambda a, b: a + b, lambda a, b: a + b, _OR),
    "stablehlo.and": _AND,
    "stablehlo.atan2": _wide(e.atan2),
    "stablehlo.cbrt": _wide(_cbrt),
    "stablehlo.ceil": e.ceil,
    "stablehlo.cosine": _wide(e.cos),
    "stablehlo.count_leading_zeros": _leading_zeros,
    "stablehlo.divide": _by_kind(_quotient, e.truncdiv, _AND),
    "stablehlo.exponential": _wide(e.exp),
    "stablehlo.exponential_minus_one": _wide(e.expm1),
    "stablehlo.floor": e.floor,
    "stablehlo.is_finite": lambda x: e.abs(x) < math.inf,
    "stablehlo.log": _wide(e.log),
    "stablehlo.log_plus_one": _wide(e.log1p),
    "stablehlo.logistic": _wide(e.sigmoid),
    "stablehlo.maximum": _by_kind(e.maximum, e.maximum, _OR),
    "stablehlo.minimum": _by_kind(e.minimum, e.minimum, _AND),
    "stablehlo.multiply": _by_kind(lambda a, b: a * b, lambda a, b: a * b, _AND),
    "stablehlo.negate": lambda x: -x if has_sign(x.dtype) else e.const(0, x.dtype) - x,
    "stablehlo.not": lambda x: ~x,
    "stablehlo.or": _OR,
    "stablehlo.popcnt": _count_ones,
    "stablehlo.power": _by_kind(e.pow, e.pow, _OR),
    "stablehlo.remainder": _by_kind(e.fmod, e.truncmod, lambda a, b: a & ~a),
    "stablehlo.round_nearest_afz": _wide(_round_away),
    "stablehlo.round_nearest_even": e.round,
    "stablehlo.rsqrt": _wide(e.rsqrt),
    "stablehlo.select": lambda condition, a, b: e.select(condition, a, b),
    "stablehlo.shift_left": lambda a, b: a << b,
    "stablehlo.shift_right_arithmetic": _shift_arithmetic,
    "stablehlo.shift_right_logical": _shift_logical,
    "stablehlo.sign": _sign,
    "stablehlo.sine": _wide(e.sin),
    "stablehlo.sqrt": _wide(e.sqrt),
    "stablehlo.subtract": _by_kind(lambda a, b: a - b, lambda a, b: a - b, _XOR),
    "stablehlo.tan": _wide(e.tan),
    "stablehlo.tanh": _wide(e.tanh),
    "stablehlo.xor": _XOR,
    "stablehlo.clamp": lambda low, x, high: e.minimum(e.maximum(low, x), high),
    "chlo.erf": _wide(e.erf),
    "chlo.erfc": _wide(e.erfc),
    "chlo.erf_inv": _wide(_erf_inv),
    "chlo.is_inf": lambda x: e.equal(e.abs(x), math.inf),
    "chlo.square": lambda x: x * x,
    **{
        f"chlo.{name}": _wide(getattr(e, name))
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan")
    },
}
"""Map each elementwise op, whose result depends on its operands only, to its function of scalars."""

_RELATIONS = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_NARROW = {(8, 7): "bf16", (5, 10): "f16"}
"""The floats by the bits of their exponent and mantissa."""


def scalar_of(op: Operation, operands: Sequence[Expr]) -> Expr:
    """Return the result of an elementwise op for scalar operands. Raises LoweringError for any other op, an unknown
    comparison and a precision that no dtype has; TeError for dtypes that its te function refuses, ValueError for an
    erf_inv of other floats than f32."""
    if op.name in FUNCTIONS:
        return FUNCTIONS[op.name](*operands)
    match op.name:
        case "stablehlo.convert":
            return e.cast(operands[0], tensor_type(op, op.results[0].type)[1])
        case "stablehlo.compare":
            return _compared(op, *operands)
        case "stablehlo.reduce_precision":
            return _rounded(op, operands[0])
    raise refused(op, "has no form on single elements")


def is_elementwise(op: Operation) -> bool:
    """Whether an op computes each element from one element of each operand, so that `scalar_of` converts it."""
    return op.name in FUNCTIONS or op.name in ("stablehlo.convert", "stablehlo.compare", "stablehlo.reduce_precision")


def _compared(op: Operation, a: Expr, b: Expr) -> Expr:
    direction = word(op.properties.get("comparison_direction"))
    if direction not in _RELATIONS:
        raise refused(op, f"compares by '{direction}' (there are {', '.join(_RELATIONS)})")
    if a.dtype == "i1":
        a, b = e.cast(a, "i32"), e.cast(b, "i32")
    if word(op.properties.get("compare_type")) == "TOTALORDER" and is_float(a.dtype):
        return _ordered(direction, a, b)
    return compare(_RELATIONS[direction], a, b)


def _ordered(direction: str, a: Expr, b: Expr) -> Expr:
    """Return the comparison of a with b by `direction` (EQ, NE, LT, LE, GT or GE) in a total order of floats: NaN is
    above all numbers and equal to itself; -0 equals +0."""
    if direction in ("GT", "LE"):
        a, b = b, a
    if direction in ("LE", "GE"):
        return ~_ordered("LT", a, b)
    if direction == "NE":
        return ~_ordered("EQ", a, b)
    a_is_nan, b_is_nan = e.not_equal(a, a), e.not_equal(b, b)
    if direction == "EQ":
        return e.equal(a, b) | (a_is_nan & b_is_nan)
    return (a < b) | (b_is_nan & ~a_is_nan)


def _rounded(op: Operation, x: Expr) -> Expr:
    bits = precision_bits(
        word(op.properties.get("format")),
        integers(op.properties.get("exponent_bits"), [0])[0],
        integers(op.properties.get("mantissa_bits"), [0])[0],
    )
    if bits == (8, 23) and x.dtype == "f32":
        return x
    if bits not in _NARROW:
        raise refused(op, f"rounds to {bits[0]} bits of exponent and {bits[1]} of mantissa, which no dtype of te has")
    return e.cast(e.cast(x, _NARROW[bits]), x.dtype)


def apply_region(block: Block, arguments: Sequence[Expr], outside: Mapping[SSAValue, Expr]) -> list[Expr]:
    """Return the scalars that a region, the block `block`, returns for scalar arguments; `outside` has the values
    defined around it. Raises LoweringError for an op that is neither elementwise nor a constant of a number, TeError
    for dtypes that an op's te function refuses, ValueError for a region without a return, KeyError for a value that is
    neither the region's nor in `outside`."""
    scope: dict[SSAValue, Expr] = dict(outside)
    scope |= zip(block.args, arguments, strict=True)
    for op in block.ops:
        if op.name == "stablehlo.return":
            return [scope[value] for value in op.operands]
        if op.name == "stablehlo.constant":
            scope[op.results[0]] = _literal(op)
            continue
        scope[op.results[0]] = scalar_of(op, [scope[value] for value in op.operands])
    raise ValueError("the region ends without a return")


def _literal(op: Operation) -> Expr:
    from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

    value = op.properties.get("value")
    if not isinstance(value, DenseIntOrFPElementsAttr):
        raise refused(op, "has no number")
    dtype = tensor_type(op, op.results[0].type)[1]
    return e.const(next(iter(value.get_values())), dtype)
