"""Functions of scalar expressions: mathematics, conditions, conversions, and the reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, overload

from compiler.support.errors import TeError
from compiler.te.expr import (
    Apply,
    AxisValue,
    Const,
    Expr,
    Holds,
    Reduce,
    Scalar,
    as_expr,
    binary,
    compare,
    const,
    logical,
    pair_of,
    unary,
)
from compiler.te.index import Axis, Condition, Index, IndexLike, as_index, compared
from compiler.te.tensor import Read
from compiler.types.elements import check_dtype, is_float, limits

__all__ = [
    "abs",
    "acos",
    "acosh",
    "all_of",
    "any_of",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cast",
    "ceil",
    "const",
    "copysign",
    "cos",
    "cosh",
    "equal",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fmod",
    "log",
    "log1p",
    "log2",
    "log10",
    "max",
    "maximum",
    "min",
    "minimum",
    "not_equal",
    "pow",
    "prod",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
]

Comparable: TypeAlias = Scalar | IndexLike
Truth: TypeAlias = Expr | Condition | bool
Axes: TypeAlias = Axis | Sequence[Axis]


def _unary(name: str, formula: str) -> Callable[[Scalar], Expr]:
    def build(value: Scalar) -> Expr:
        return unary(name, value)

    build.__name__, build.__doc__ = name, f"{formula}, of a float."
    return build


def _binary(name: str, doc: str) -> Callable[[Scalar, Scalar], Expr]:
    def build(lhs: Scalar, rhs: Scalar) -> Expr:
        return binary(name, lhs, rhs)

    build.__name__, build.__doc__ = name, doc
    return build


exp = _unary("exp", "e to the power x")
log = _unary("log", "The natural logarithm of x")
sqrt = _unary("sqrt", "The square root of x")
rsqrt = _unary("rsqrt", "1 / sqrt(x)")
tanh = _unary("tanh", "The hyperbolic tangent of x")
erf = _unary("erf", "The error function of x")
erfc = _unary("erfc", "1 - erf(x), precise where that is small")
sin = _unary("sin", "The sine of x")
cos = _unary("cos", "The cosine of x")
floor = _unary("floor", "The greatest integer not above x")
round = _unary("round", "The integer nearest to x, of two the even one")
ceil = _unary("ceil", "The least integer not below x")
trunc = _unary("trunc", "x without its fraction")
exp2 = _unary("exp2", "2 to the power x")
expm1 = _unary("expm1", "exp(x) - 1, precise near 0")
log2 = _unary("log2", "The logarithm of x to the base 2")
log10 = _unary("log10", "The logarithm of x to the base 10")
log1p = _unary("log1p", "log(1 + x), precise near 0")
tan = _unary("tan", "The tangent of x")
asin = _unary("asin", "The inverse of the sine, in [-pi/2, pi/2]")
acos = _unary("acos", "The inverse of the cosine, in [0, pi]")
atan = _unary("atan", "The inverse of the tangent, in [-pi/2, pi/2]")
sinh = _unary("sinh", "The hyperbolic sine of x")
cosh = _unary("cosh", "The hyperbolic cosine of x")
asinh = _unary("asinh", "The inverse of the hyperbolic sine")
acosh = _unary("acosh", "The inverse of the hyperbolic cosine, of a number of at least 1")
atanh = _unary("atanh", "The inverse of the hyperbolic tangent")
abs = _unary("abs", "The absolute value of x (integers too)")
pow = _binary(
    "pow",
    "lhs to the power rhs, of floats or integers.\n\nIntegers wrap, and a negative power gives 1 / lhs, truncated.",
)
atan2 = _binary("atan2", "The angle of the point (rhs, lhs), in [-pi, pi], of floats.")
copysign = _binary("copysign", "The absolute value of one float with the sign of another.")
fmod = _binary(
    "fmod",
    "The remainder of floats truncated towards zero, exact, with the sign of the dividend as in C; NaN by zero.",
)
truncdiv = _binary("truncdiv", "The quotient of two integers, truncated towards zero as in C; 0 by zero.")
truncmod = _binary("truncmod", "The remainder of truncdiv, which has the sign of the dividend; 0 by zero.")
maximum = _binary("maximum", "The greater of two values; NaN if one of them is.")
minimum = _binary("minimum", "The lesser of two values; NaN if one of them is.")


def sigmoid(value: Scalar) -> Expr:
    """1 / (1 + exp(-x)), of a float."""
    return 1.0 / (1.0 + exp(-as_expr(value)))


@overload
def equal(lhs: Index, rhs: IndexLike) -> Condition: ...
@overload
def equal(lhs: IndexLike, rhs: Index) -> Condition: ...
@overload
def equal(lhs: Scalar, rhs: Scalar) -> Expr: ...
def equal(lhs: Comparable, rhs: Comparable) -> Expr | Condition:
    """Whether two values, or two index expressions, are equal."""
    if as_index(lhs) is not None and as_index(rhs) is not None:
        return compared(lhs, "==", rhs)
    return compare("eq", lhs, rhs)


def not_equal(lhs: Comparable, rhs: Comparable) -> Expr:
    """Whether two values, or two index expressions, differ."""
    if as_index(lhs) is not None and as_index(rhs) is not None:
        return ~Holds(compared(lhs, "==", rhs))
    return compare("ne", lhs, rhs)


@overload
def all_of(*conditions: Condition) -> Condition: ...
@overload
def all_of(*conditions: Truth) -> Expr | Condition: ...
def all_of(*conditions: Truth) -> Truth:
    """The conjunction of conditions; one over axes alone can guard a read."""
    return _joined("and", conditions)


def any_of(*conditions: Truth) -> Truth:
    """The disjunction of conditions."""
    return _joined("or", [as_expr(c) for c in conditions])


def _joined(name: str, conditions: Sequence[Truth]) -> Truth:
    if not conditions:
        raise TeError("a conjunction or disjunction needs at least one condition")
    joined = conditions[0]
    for condition in conditions[1:]:
        if name == "and" and isinstance(joined, Condition) and isinstance(condition, Condition):
            joined = joined & condition
        else:
            joined = logical(name, joined, condition)
    return joined


def select(condition: Truth, then: Scalar, otherwise: Scalar) -> Expr:
    """`then` where the condition holds, else `otherwise`.

    With a condition over axes, one read, and a number, it is a conditional read: the tensor is not touched where
    the condition fails, so its index may be out of bounds there.
    """
    outside = otherwise.value if isinstance(otherwise, Const) else otherwise
    plain = isinstance(then, Read) and then.condition is None
    if isinstance(condition, Condition) and isinstance(then, Read) and plain and isinstance(outside, int | float):
        return Read(then.tensor, then.indices, condition, const(outside, then.dtype).value)
    truth = as_expr(condition)
    if truth.dtype != "i1":
        raise TeError(f"the condition of select is {truth.dtype}, expected i1")
    left, right = pair_of("select", then, otherwise)
    return Apply("select", (truth, left, right), left.dtype)


def cast(value: Scalar | Index, dtype: str, saturate: bool = False) -> Expr:
    """The value, or an index expression, converted to a dtype.

    Floats become integers by truncation towards zero, saturated at the dtype's limits, NaN as 0; floats are rounded
    to the nearest, ties to even, once; integers wrap, or with `saturate` stay at the limits. Numbers are true where
    they are not zero.
    """
    dtype = check_dtype(dtype)
    index = as_index(value) if isinstance(value, Index) else None
    operand: Expr = AxisValue(index) if index is not None else as_expr(value)
    if operand.dtype == dtype:
        return operand
    if saturate and not is_float(operand.dtype) and not is_float(dtype) and dtype != "i1":
        operand = _clamped(operand, dtype)
    return Apply("cast", (operand,), dtype)


def _clamped(value: Expr, dtype: str) -> Expr:
    """The integer within the limits of another dtype, as far as its own reaches them."""
    (low, high), (smallest, largest) = limits(dtype), limits(value.dtype)
    value = maximum(value, low) if smallest < low else value
    return minimum(value, high) if largest > high else value


def reduce_axes(given: Axes) -> tuple[Axis, ...]:
    """The axes of a reduction, one or several. Raises TeError for anything but reduce axes."""
    axes = (given,) if isinstance(given, Axis) else tuple(given) if isinstance(given, tuple | list) else ()
    if not axes or not all(isinstance(axis, Axis) for axis in axes):
        got = repr(given) if not isinstance(given, tuple) or given else "none"
        raise TeError(f"the reduction needs axis=, one reduce axis or several, got {got}")
    for axis in axes:
        if not axis.reduce:
            raise TeError(f"the reduction runs over '{axis.name}', which is a spatial axis of the compute")
        if axes.count(axis) > 1:
            raise TeError(f"the reduction runs twice over '{axis.name}'")
    return axes


class Reduction(Protocol):
    """A reduction of an expression over one reduce axis or several."""

    def __call__(self, body: Scalar, axis: Axes = ...) -> Reduce: ...


def _reduction(combiner: str) -> Reduction:
    def build(body: Scalar, axis: Axes = ()) -> Reduce:
        axes = reduce_axes(axis)
        expr = as_expr(body)
        if expr.dtype == "i1":
            raise TeError("truth values are not reduced: te.cast them first")
        return Reduce(combiner, expr, axes)

    build.__doc__ = f"The {combiner} of an expression over one reduce axis or several."
    return build


sum = _reduction("add")
prod = _reduction("mul")
max = _reduction("max")
min = _reduction("min")
