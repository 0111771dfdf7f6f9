"""Functions of scalar expressions: mathematics, conditions, conversions, reductions."""

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
from compiler.types.dtypes import check_dtype, is_float, limits

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


_EXAMPLE = """

>>> Y = te.compute((), lambda: te.{0}({1}))
>>> print(strata.interpret.evaluate(te.function("f", [], Y).module, [])[0].round(4))
{2}
"""
"""Template of a docstring's example: the function's name, the call's arguments, the value to four decimal places."""


def _example(name: str, arguments: Sequence[float], value: float) -> str:
    """Format the example of a function for numeric arguments: f32 constants if the value is a float, else i32."""
    dtype = "f32" if isinstance(value, float) else "i32"
    return _EXAMPLE.format(name, ", ".join(f'te.const({number}, "{dtype}")' for number in arguments), value)


def _unary(name: str, formula: str, x: float, value: float) -> Callable[[Scalar], Expr]:
    def build(value: Scalar) -> Expr:
        return unary(name, value)

    doc = f"{formula}, for a float expression x, of x's dtype."
    build.__name__, build.__doc__ = name, doc + _example(name, (x,), value)
    return build


def _binary(name: str, doc: str, arguments: Sequence[float], value: float) -> Callable[[Scalar, Scalar], Expr]:
    def build(lhs: Scalar, rhs: Scalar) -> Expr:
        return binary(name, lhs, rhs)

    build.__name__, build.__doc__ = name, doc + _example(name, arguments, value)
    return build


exp = _unary("exp", "e to the power x", 1.0, 2.7183)
log = _unary("log", "The natural logarithm of x", 2.0, 0.6931)
sqrt = _unary("sqrt", "The square root of x", 2.0, 1.4142)
rsqrt = _unary("rsqrt", "1 / sqrt(x)", 2.0, 0.7071)
tanh = _unary("tanh", "The hyperbolic tangent of x", 0.5, 0.4621)
erf = _unary("erf", "The error function of x", 0.5, 0.5205)
erfc = _unary("erfc", "1 - erf(x), without cancellation for large x", 0.5, 0.4795)
sin = _unary("sin", "The sine of x", 0.5, 0.4794)
cos = _unary("cos", "The cosine of x", 0.5, 0.8776)
floor = _unary("floor", "The greatest integer not above x", -1.5, -2.0)
round = _unary("round", "The integer nearest to x, ties to even", 2.5, 2.0)
ceil = _unary("ceil", "The least integer not below x", -1.5, -1.0)
trunc = _unary("trunc", "x rounded towards zero", -1.5, -1.0)
exp2 = _unary("exp2", "2 to the power x", 3.0, 8.0)
expm1 = _unary("expm1", "exp(x) - 1, without cancellation near 0", 0.5, 0.6487)
log2 = _unary("log2", "The logarithm of x to the base 2", 8.0, 3.0)
log10 = _unary("log10", "The logarithm of x to the base 10", 100.0, 2.0)
log1p = _unary("log1p", "log(1 + x), without cancellation near 0", 0.5, 0.4055)
tan = _unary("tan", "The tangent of x", 0.5, 0.5463)
asin = _unary("asin", "The inverse sine of x, in [-pi/2, pi/2]", 0.5, 0.5236)
acos = _unary("acos", "The inverse cosine of x, in [0, pi]", 0.5, 1.0472)
atan = _unary("atan", "The inverse tangent of x, in [-pi/2, pi/2]", 1.0, 0.7854)
sinh = _unary("sinh", "The hyperbolic sine of x", 0.5, 0.5211)
cosh = _unary("cosh", "The hyperbolic cosine of x", 0.5, 1.1276)
asinh = _unary("asinh", "The inverse hyperbolic sine of x", 0.5, 0.4812)
acosh = _unary("acosh", "The inverse hyperbolic cosine of x; NaN below 1", 2.0, 1.317)
atanh = _unary("atanh", "The inverse hyperbolic tangent of x", 0.5, 0.5493)
abs = _unary("abs", "The absolute value of x, which may also be an integer", -1.5, 1.5)
pow = _binary(
    "pow",
    "lhs to the power rhs, of floats or integers.\n\nIntegers wrap; a negative exponent yields 1 / lhs^-rhs truncated.",
    (2.0, 3.0),
    8.0,
)
atan2 = _binary("atan2", "The angle of the point (x = rhs, y = lhs), in [-pi, pi]; floats only.", (1.0, -1.0), 2.3562)
copysign = _binary("copysign", "The absolute value of lhs with the sign of rhs; floats only.", (1.5, -2.0), -1.5)
fmod = _binary(
    "fmod",
    "The exact remainder of truncating division of floats, with the sign of the dividend as in C; NaN for divisor 0.",
    (-7.0, 2.0),
    -1.0,
)
truncdiv = _binary(
    "truncdiv",
    "The quotient of two integers, truncated towards zero as in C; 0 for divisor 0.",
    (-7, 2),
    -3,
)
truncmod = _binary(
    "truncmod",
    "The remainder of truncdiv, with the sign of the dividend; 0 for divisor 0.",
    (-7, 2),
    -1,
)
maximum = _binary("maximum", "The greater of two values; NaN if either is NaN.", (1.0, 2.0), 2.0)
minimum = _binary("minimum", "The lesser of two values; NaN if either is NaN.", (1.0, 2.0), 1.0)


def sigmoid(value: Scalar) -> Expr:
    """1 / (1 + exp(-x)), for a float expression x, of x's dtype.

    >>> x = te.compute((1,), lambda i: te.sigmoid(te.const(0.0, "f32")))
    >>> strata.interpret.evaluate(te.function("f", [], x).module, [])[0]
    array([0.5], dtype=float32)
    """
    return 1.0 / (1.0 + exp(-as_expr(value)))


@overload
def equal(lhs: Index, rhs: IndexLike) -> Condition: ...
@overload
def equal(lhs: IndexLike, rhs: Index) -> Condition: ...
@overload
def equal(lhs: Scalar, rhs: Scalar) -> Expr: ...
def equal(lhs: Comparable, rhs: Comparable) -> Expr | Condition:
    """Equality of two values of one dtype (an i1), or of two index expressions (a condition). Raises TeError for
    values of two dtypes, and for an index expression and another value.

    >>> X = te.constant([1.0, 2.0])
    >>> B = te.compute((2,), lambda i: te.equal(X[i], 2.0))
    >>> strata.interpret.evaluate(te.function("f", [], B).module, [])[0]
    array([False,  True])
    """
    if as_index(lhs) is not None and as_index(rhs) is not None:
        return compared(lhs, "==", rhs)
    return compare("eq", lhs, rhs)


def not_equal(lhs: Comparable, rhs: Comparable) -> Expr:
    """Inequality of two values of one dtype, or of two index expressions; an i1. Raises TeError for values of two
    dtypes, and for an index expression and another value.

    >>> X = te.constant([1.0, 2.0])
    >>> B = te.compute((2,), lambda i: te.not_equal(X[i], 2.0))
    >>> strata.interpret.evaluate(te.function("f", [], B).module, [])[0]
    array([ True, False])
    """
    if as_index(lhs) is not None and as_index(rhs) is not None:
        return ~Holds(compared(lhs, "==", rhs))
    return compare("ne", lhs, rhs)


@overload
def all_of(*conditions: Condition) -> Condition: ...
@overload
def all_of(*conditions: Truth) -> Expr | Condition: ...
def all_of(*conditions: Truth) -> Truth:
    """The conjunction of conditions: a condition over axes, which can guard a read, if all of them are, else an i1.
    Raises TeError without conditions.

    >>> X = te.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> B = te.compute((2, 2), lambda i, j: te.select(te.all_of(i >= 1, j >= 1), X[i - 1, j - 1], 0.0))
    >>> strata.interpret.evaluate(te.function("f", [], B).module, [])[0].tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    return _joined("and", conditions)


def any_of(*conditions: Truth) -> Truth:
    """The disjunction of conditions, an i1. Raises TeError without conditions.

    >>> X = te.constant([-1.0, 0.5, 2.0])
    >>> B = te.compute((3,), lambda i: te.any_of(X[i] < 0.0, X[i] > 1.0))
    >>> strata.interpret.evaluate(te.function("f", [], B).module, [])[0]
    array([ True, False,  True])
    """
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
    """`then` if the condition is true, else `otherwise`, of one dtype. Raises TeError for two dtypes, and for a
    condition that is no i1.

    With a condition over axes, one read, and a number, it is a conditional read: if the condition is false the tensor
    is not read, so its index may be out of bounds.

    >>> X = te.constant([-1.0, 2.0])
    >>> B = te.compute((2,), lambda i: te.select(X[i] > 0.0, X[i], 0.0))
    >>> strata.interpret.evaluate(te.function("f", [], B).module, [])[0]
    array([0., 2.], dtype=float32)
    """
    default = otherwise.value if isinstance(otherwise, Const) else otherwise
    bare = isinstance(then, Read) and then.condition is None
    if isinstance(condition, Condition) and isinstance(then, Read) and bare and isinstance(default, int | float):
        return Read(then.tensor, then.indices, condition, const(default, then.dtype).value)
    truth = as_expr(condition)
    if truth.dtype != "i1":
        raise TeError(f"the condition of select is {truth.dtype}, expected i1")
    left, right = pair_of("select", then, otherwise)
    return Apply("select", (truth, left, right), left.dtype)


def cast(value: Scalar | Index, dtype: str, saturate: bool = False) -> Expr:
    """Convert a value, or an index expression (an i64), to a dtype. Raises TeError for an unknown dtype, and for a
    number or another object that is no expression.

    Float to integer truncates towards zero and saturates at the dtype's limits, NaN to 0; to float rounds to nearest,
    ties to even; integer to integer wraps, or with `saturate` saturates; to i1 is inequality to zero.

    >>> X = te.constant([2.7, -300.0])
    >>> B = te.compute((2,), lambda i: te.cast(X[i], "i8"))
    >>> strata.interpret.evaluate(te.function("f", [], B).module, [])[0]
    array([   2, -128], dtype=int8)
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
    """Clamp an integer to the limits of another dtype, without those that the integer's own dtype cannot exceed."""
    (low, high), (smallest, largest) = limits(dtype), limits(value.dtype)
    value = maximum(value, low) if smallest < low else value
    return minimum(value, high) if largest > high else value


def reduce_axes(axis: Axes) -> tuple[Axis, ...]:
    """Return one reduce axis or several as a tuple. Raises TeError for no axis, spatial axes, and repeated ones."""
    axes = (axis,) if isinstance(axis, Axis) else tuple(axis) if isinstance(axis, tuple | list) else ()
    if not axes or not all(isinstance(a, Axis) for a in axes):
        got = repr(axis) if not isinstance(axis, tuple) or axis else "none"
        raise TeError(f"the reduction needs axis=, one reduce axis or several, got {got}")
    for a in axes:
        if not a.reduce:
            raise TeError(f"the reduction runs over '{a.name}', which is a spatial axis of the compute")
        if axes.count(a) > 1:
            raise TeError(f"the reduction runs twice over '{a.name}'")
    return axes


class Reduction(Protocol):
    """A function that reduces an expression over one reduce axis or several; the result is the root of a compute."""

    def __call__(self, body: Scalar, axis: Axes = ...) -> Reduce: ...


def _reduction(name: str, combiner: str, value: float) -> Reduction:
    def build(body: Scalar, axis: Axes = ()) -> Reduce:
        axes = reduce_axes(axis)
        expr = as_expr(body)
        if expr.dtype == "i1":
            raise TeError("truth values are not reduced: te.cast them first")
        return Reduce(combiner, expr, axes)

    example = _EXAMPLE.format(name, "X[k], axis=k", value).lstrip()
    head = f"Reduce an expression by {combiner} over reduce axes; the root of a compute. Raises TeError."
    build.__doc__ = f'{head}\n\n>>> X, k = te.constant([1.0, 2.0, 4.0]), te.reduce_axis(3, "k")\n{example}'
    return build


sum = _reduction("sum", "add", 7.0)
prod = _reduction("prod", "mul", 8.0)
max = _reduction("max", "max", 4.0)
min = _reduction("min", "min", 1.0)
