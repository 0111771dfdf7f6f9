"""Scalar expressions, the bodies of computes. Nodes are shared and compared by identity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from compiler.support.errors import TeError
from compiler.te.index import Axis, Condition, Index
from compiler.types.dtypes import DTYPES, INDICES, check_dtype, has_sign, is_float, limits, width
from compiler.types.rounding import rounded

Operator: TypeAlias = "Callable[[Expr, Scalar], Expr]"


def _operator(name: str) -> Operator:
    if name in ("and", "or", "xor"):
        return lambda self, other: logical(name, self, other)
    return lambda self, other: (compare if name in _RELATIONS else binary)(name, self, other)


def _reflected(name: str) -> Operator:
    """Return the method of a reflected operator: the expression is the right operand."""
    return lambda self, other: binary(name, other, self)


_RELATIONS = ("lt", "le", "gt", "ge")
FLOAT_FUNCTIONS = ("atan2", "copysign", "fmod")
"""Functions of two operands that are for floats only."""


class Expr:
    """A scalar expression of a dtype, evaluated for each point of a compute's axes.

    Python's operators build expressions, except == and !=, which compare objects: `te.equal` builds a comparison. Its
    truth value and iteration raise TeError: `te.select` stands for if, and, or.
    """

    dtype: str

    def operands(self) -> Sequence[Expr]:
        """Return the direct operands; none for a leaf."""
        return ()

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("sub"), _reflected("sub")
    __mul__, __rmul__ = _operator("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _operator("div"), _reflected("div")
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _operator("mod"), _reflected("mod")
    __lt__, __le__, __gt__, __ge__ = map(_operator, _RELATIONS)
    __and__, __or__, __xor__ = _operator("and"), _operator("or"), _operator("xor")

    def __lshift__(self, other: Scalar) -> Expr:
        return shifted("shl", self, other)

    def __rshift__(self, other: Scalar) -> Expr:
        return shifted("shr", self, other)

    def __neg__(self) -> Expr:
        return unary("neg", self)

    def __invert__(self) -> Expr:
        all_bits = (
            True
            if self.dtype == "i1"
            else -1
            if has_sign(self.dtype) or is_float(self.dtype)
            else limits(self.dtype)[1]
        )
        return logical("xor", self, Const(all_bits, self.dtype))

    def __bool__(self) -> NoReturn:
        raise TeError("an expression has no value while it is built; use te.select instead of if, and, or")

    def __iter__(self) -> NoReturn:
        raise TeError("a scalar expression cannot be iterated over")


Number: TypeAlias = float | int | bool
Scalar: TypeAlias = Expr | Condition | Number
"""A scalar operand: an expression, a condition over axes, or a number, which takes the other operand's dtype."""


@dataclass(frozen=True, eq=False)
class Const(Expr):
    """A constant: a number of a dtype."""

    value: Number
    dtype: str


@dataclass(frozen=True, eq=False)
class AxisValue(Expr):
    """An index expression as a value, of dtype i64."""

    index: Index
    dtype: str = "i64"


@dataclass(frozen=True, eq=False)
class Holds(Expr):
    """A condition over axes as an expression of dtype i1."""

    condition: Condition
    dtype: str = "i1"


@dataclass(frozen=True, eq=False)
class Apply(Expr):
    """An operation called `name` on operands: add, mul, exp, select, lt, cast ..., with a result of `dtype`."""

    name: str
    arguments: tuple[Expr, ...]
    dtype: str

    def operands(self) -> Sequence[Expr]:
        return self.arguments


@dataclass(frozen=True, eq=False)
class Operand(Expr):
    """An operand of a joint combiner: accumulator number `position` or, if `added`, the added value of that number."""

    position: int
    added: bool
    dtype: str


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint combiner of several results. operands: an accumulator for each result, then an added value for each.
    identities: the neutral value of each result. results: the combined values, expressions of the operands."""

    operands: tuple[Operand, ...]
    identities: tuple[Const, ...]
    results: tuple[Expr, ...]

    def __str__(self) -> str:
        return "joint"


@dataclass(frozen=True, eq=False)
class Reduce(Expr):
    """A reduction of an expression over reduce axes; only at the root of a compute's body.

    With a joint combiner it is result number `part`, and the compute returns all results together.
    """

    combiner: str | Joint
    body: Expr
    axes: tuple[Axis, ...]
    part: int = 0

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """The body's dtype."""
        return self.body.dtype


def as_expr(value: object, dtype: str | None = None) -> Expr:
    """Return an expression unchanged, a condition as an i1, a Python number as a constant of `dtype`, a bool also
    without a dtype, as an i1. Raises TeError for reductions, index expressions, other objects, and other numbers
    without a dtype."""
    if isinstance(value, Reduce):
        raise TeError(f"a {value.combiner} reduction stands inside an expression: give it a compute of its own")
    if isinstance(value, Expr):
        return value
    if isinstance(value, Condition):
        return Holds(value)
    if isinstance(value, Index):
        raise TeError(f"the axis expression '{value}' is used as a value: te.cast it to a dtype first")
    if isinstance(value, bool) and dtype in (None, "i1"):
        return Const(value, "i1")
    if isinstance(value, int | float) and dtype is not None:
        return const(value, dtype)
    if isinstance(value, int | float):
        raise TeError(f"the number {value} needs a dtype here: te.const({value}, 'f32')")
    raise TeError(f"{type(value).__name__} is not an expression; index a tensor, such as A[i, k]")


def const(value: Number, dtype: str) -> Const:
    """A constant of a dtype; floats are rounded to it. Raises TeError for an unknown dtype, for an object that is no
    number, for a value out of the dtype's range, and for a fraction if it is an integer dtype.

    >>> te.const(0.1, "f16")
    Const(value=0.0999755859375, dtype='f16')
    """
    dtype = check_dtype(dtype)
    if not isinstance(value, int | float):
        raise TeError(f"{value!r} is not a number")
    if is_float(dtype):
        _check_finite(value, dtype)
        return Const(rounded(value, dtype), dtype)
    low, high = limits(dtype)
    if (isinstance(value, float) and not value.is_integer()) or not low <= value <= high:
        raise TeError(f"{_shown(value)} is not a value of {dtype}")
    return Const(int(value), dtype)


def _shown(value: float) -> str:
    text = str(value)
    return text if len(text) < 40 else f"{text[:9]}... ({len(text)} digits)"


def _check_finite(value: float, dtype: str) -> None:
    """Raise TeError for a finite number that the dtype rounds to infinity."""
    finite = isinstance(value, int) or math.isfinite(value)
    infinite = DTYPES[dtype].infinite
    if finite and not -infinite < value < infinite:
        raise TeError(f"{_shown(value)} is not a value of {dtype}: it is beyond the greatest")


def pair_of(name: str, lhs: object, rhs: object) -> tuple[Expr, Expr]:
    """Convert the operands of operation `name` to expressions of one dtype; a number takes that of the other operand.
    Raises TeError if the dtypes differ, for two numbers, and for objects that are no operands."""
    dtype = next((v.dtype for v in (lhs, rhs) if isinstance(v, Expr)), None)
    if isinstance(lhs, Condition) or isinstance(rhs, Condition):
        dtype = dtype or "i1"
    left, right = as_expr(lhs, dtype), as_expr(rhs, dtype)
    if left.dtype != right.dtype:
        raise TeError(f"{name} of {left.dtype} and {right.dtype}: dtypes do not mix, te.cast one of them")
    return left, right


def binary(name: str, lhs: object, rhs: object) -> Expr:
    """Build arithmetic operation `name` on two operands of one dtype. Raises TeError for two dtypes, and for one that
    the operation does not support."""
    left, right = pair_of(name, lhs, rhs)
    if left.dtype == "i1":
        raise TeError(f"{name} of truth values: use &, | and ~, or te.cast them")
    if (name == "div" or name in FLOAT_FUNCTIONS) and not is_float(left.dtype):
        raise TeError(f"{name} of {left.dtype}: integers divide by //, or te.cast to a float")
    if name in ("floordiv", "mod") and is_float(left.dtype):
        return _floored(name, left, right)
    if name in ("truncdiv", "truncmod") and is_float(left.dtype):
        instead = "te.trunc(a / b)" if name == "truncdiv" else "te.fmod"
        raise TeError(f"{name} of {left.dtype} is for integers; use {instead}")
    return Apply(name, (left, right), left.dtype)


def _floored(name: str, a: Expr, b: Expr) -> Expr:
    """Build `floordiv` or `mod` of floats, the remainder with the divisor's sign; in f32 for narrower dtypes.

    The remainder is exact if operands have equal signs; else a rounded addition follows. Source: CPython float_divmod.
    """
    dtype = a.dtype
    if width(dtype) < 32:
        a, b = (Apply("cast", (operand,), "f32") for operand in (a, b))
    remainder = binary("fmod", a, b)
    is_exact = compare("eq", remainder, 0.0)
    signs_differ = logical("xor", remainder < 0.0, b < 0.0)
    if name == "mod":
        adjusted = Apply("select", (signs_differ, remainder + b, remainder), remainder.dtype)
        value: Expr = Apply("select", (is_exact, binary("copysign", remainder, b), adjusted), remainder.dtype)
    else:
        value = _quotient(a, b, remainder, logical("and", signs_differ, ~is_exact))
    return value if value.dtype == dtype else Apply("cast", (value,), dtype)


def _quotient(a: Expr, b: Expr, remainder: Expr, is_lower: Expr) -> Expr:
    """Build (a - remainder) / b, minus 1 if `is_lower`, rounded to the nearest integer; a / b for b = 0."""

    def select(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        return Apply("select", (condition, then, otherwise), a.dtype)

    plain, quotient = a / b, (a - remainder) / b
    quotient = select(is_lower, quotient - 1.0, quotient)
    below = unary("floor", quotient)
    nearest = select(quotient - below > 0.5, below + 1.0, below)
    signed = select(compare("eq", quotient, 0.0), binary("copysign", quotient, plain), nearest)
    return select(compare("eq", b, 0.0), plain, signed)


def compare(relation: str, lhs: object, rhs: object) -> Expr:
    """Build a comparison (lt, le, gt, ge, eq, ne) of operands of one dtype; an i1. Raises TeError for two dtypes."""
    left, right = pair_of(relation, lhs, rhs)
    return Apply(relation, (left, right), "i1")


def logical(name: str, lhs: object, rhs: object) -> Expr:
    """Build `and`, `or` or `xor` of two operands of one dtype: logical for i1, bitwise for integers. Raises TeError for
    floats."""
    left, right = pair_of(name, lhs, rhs)
    if is_float(left.dtype):
        raise TeError(f"{name} of {left.dtype}: only truth values (i1) and integers combine so")
    return Apply(name, (left, right), left.dtype)


def shifted(name: str, lhs: object, rhs: object) -> Expr:
    """Build a shift of an integer to the left (shl) or right (shr).

    shr is arithmetic for signed dtypes; a negative count, or one of the width or more, shifts out all bits. Raises
    TeError for floats and i1.
    """
    value, count = pair_of(name, lhs, rhs)
    if value.dtype not in INDICES:
        raise TeError(f"{name} of {value.dtype} is for integers")
    bits, signed = width(value.dtype), has_sign(value.dtype)
    if isinstance(count, Const) and 0 <= count.value < bits:
        return Apply(name, (value, count), value.dtype)
    last = Const(bits - 1, value.dtype)
    inside = compare("le", count, last)
    if signed:
        inside = logical("and", inside, compare("ge", count, 0))
    bounded_count = Apply("select", (inside, count, last), value.dtype)
    moved = Apply(name, (value, bounded_count), value.dtype)
    if name == "shr" and signed:
        return moved
    return Apply("select", (inside, moved, Const(0, value.dtype)), value.dtype)


def unary(name: str, value: object) -> Expr:
    """Build operation `name` on one operand. Raises TeError for dtypes that are no floats, except for abs and neg."""
    operand = as_expr(value)
    if name not in ("abs", "neg") and not is_float(operand.dtype):
        raise TeError(f"{name} takes floats, got {operand.dtype}: te.cast it first")
    return Apply(name, (operand,), operand.dtype)
