"""Scalar expressions: what a compute's body is built of. Nodes are shared and compared by identity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.elements import DTYPES, check_dtype, is_float, limits
from compiler.errors import TeError
from compiler.te.index import Axis, Condition, Index, as_index, compared

if TYPE_CHECKING:
    from compiler.te.tensor import Tensor


class Expr:
    """A scalar of a dtype, one for each point of a compute's axes."""

    dtype: str

    def operands(self) -> Sequence[Expr]:
        """The expressions that this one is computed from."""
        return ()

    def __add__(self, other: Any) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Expr:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return binary("div", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return binary("floordiv", self, other)

    def __mod__(self, other: Any) -> Expr:
        return binary("mod", self, other)

    def __neg__(self) -> Expr:
        return unary("neg", self)

    def __lt__(self, other: Any) -> Expr:
        return compare("lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return compare("le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return compare("gt", self, other)

    def __ge__(self, other: Any) -> Expr:
        return compare("ge", self, other)

    def __and__(self, other: Any) -> Expr:
        return logical("and", self, other)

    def __or__(self, other: Any) -> Expr:
        return logical("or", self, other)

    def __invert__(self) -> Expr:
        return logical("xor", self, Const(True, "i1"))

    def __bool__(self) -> bool:
        raise TeError("an expression has no value while it is built; use te.select instead of if, and, or")

    def __iter__(self) -> Any:
        raise TeError("a scalar expression cannot be iterated over")


@dataclass(frozen=True, eq=False)
class Const(Expr):
    """A number."""

    value: float | int | bool
    dtype: str


@dataclass(frozen=True, eq=False)
class AxisValue(Expr):
    """An index expression as a value, of dtype i64."""

    index: Index
    dtype: str = "i64"


@dataclass(frozen=True, eq=False)
class Holds(Expr):
    """A condition over axes as a truth value."""

    condition: Condition
    dtype: str = "i1"


@dataclass(frozen=True, eq=False)
class Read(Expr):
    """One element of a tensor; where the condition fails, `otherwise` instead."""

    tensor: Tensor
    indices: tuple[Index, ...]
    condition: Condition | None = None
    otherwise: float | int | None = None

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """The tensor's dtype."""
        return self.tensor.dtype


@dataclass(frozen=True, eq=False)
class Apply(Expr):
    """An operation on operands: add, mul, exp, select, lt, cast ..."""

    name: str
    arguments: tuple[Expr, ...]
    dtype: str

    def operands(self) -> Sequence[Expr]:
        return self.arguments


@dataclass(frozen=True, eq=False)
class Operand(Expr):
    """A value that a combiner takes: number `position` of those held so far, or of those `added`."""

    position: int
    added: bool
    dtype: str


@dataclass(frozen=True, eq=False)
class Joint:
    """How all results of a reduction combine: their neutral values, and the new ones as expressions of operands."""

    operands: tuple[Operand, ...]
    identities: tuple[Const, ...]
    results: tuple[Expr, ...]

    def __str__(self) -> str:
        return "joint"


@dataclass(frozen=True, eq=False)
class Reduce(Expr):
    """A reduction of an expression over reduce axes; stands only at the top of a compute.

    Under a joint combiner it is part number `part`, and stands beside all others.
    """

    combiner: str | Joint
    body: Expr
    axes: tuple[Axis, ...]
    part: int = 0

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """The body's dtype."""
        return self.body.dtype


def as_expr(value: Any, dtype: str | None = None) -> Expr:
    """The value as an expression; a Python number takes the given dtype. Raises TeError for anything else."""
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


def const(value: float, dtype: str) -> Expr:
    """A number of a dtype. Raises TeError where the dtype does not hold it."""
    check_dtype(dtype)
    if not isinstance(value, int | float):
        raise TeError(f"{value!r} is not a number")
    if is_float(dtype):
        return Const(_finite(value, dtype), dtype)
    low, high = limits(dtype)
    if (isinstance(value, float) and not value.is_integer()) or not low <= value <= high:
        raise TeError(f"{_shown(value)} is not a value of {dtype}")
    return Const(int(value), dtype)


def _shown(value: float) -> str:
    text = str(value)
    return text if len(text) < 40 else f"{text[:9]}... ({len(text)} digits)"


def _finite(value: float, dtype: str) -> float:
    """The number, which the dtype must not round to infinity."""
    finite = isinstance(value, int) or math.isfinite(value)
    infinite = DTYPES[dtype].infinite
    if finite and not -infinite < value < infinite:
        raise TeError(f"{_shown(value)} is not a value of {dtype}: it is beyond the greatest")
    return float(value)


def _pair(name: str, lhs: Any, rhs: Any) -> tuple[Expr, Expr]:
    known = next((v.dtype for v in (lhs, rhs) if isinstance(v, Expr)), None)
    if isinstance(lhs, Condition) or isinstance(rhs, Condition):
        known = known or "i1"
    left, right = as_expr(lhs, known), as_expr(rhs, known)
    if left.dtype != right.dtype:
        raise TeError(f"{name} of {left.dtype} and {right.dtype}: dtypes do not mix, te.cast one of them")
    return left, right


def binary(name: str, lhs: Any, rhs: Any) -> Expr:
    """An arithmetic operation on two operands of one dtype."""
    left, right = _pair(name, lhs, rhs)
    if left.dtype == "i1":
        raise TeError(f"{name} of truth values: use &, | and ~, or te.cast them")
    if name in ("div", "pow") and not is_float(left.dtype):
        raise TeError(f"{name} of {left.dtype}: integers divide by //, or te.cast to a float")
    if name in ("floordiv", "mod") and is_float(left.dtype):
        raise TeError(f"{name} of {left.dtype} is for integers; use te.floor(a / b)")
    return Apply(name, (left, right), left.dtype)


def compare(relation: str, lhs: Any, rhs: Any) -> Expr:
    """A comparison (lt, le, gt, ge, eq, ne) of two operands of one dtype, an i1."""
    left, right = _pair(relation, lhs, rhs)
    return Apply(relation, (left, right), "i1")


def logical(name: str, lhs: Any, rhs: Any) -> Expr:
    """and, or, xor of truth values."""
    left, right = _pair(name, lhs, rhs)
    if left.dtype != "i1":
        raise TeError(f"{name} of {left.dtype}: only truth values (i1) combine so")
    return Apply(name, (left, right), "i1")


def unary(name: str, value: Any) -> Expr:
    """An operation on one operand; all but abs and neg are of floats."""
    operand = as_expr(value)
    if name not in ("abs", "neg") and not is_float(operand.dtype):
        raise TeError(f"{name} takes floats, got {operand.dtype}: te.cast it first")
    return Apply(name, (operand,), operand.dtype)


def _unary(name: str, formula: str) -> Callable[[Any], Expr]:
    def build(value: Any) -> Expr:
        return unary(name, value)

    build.__name__, build.__doc__ = name, f"{formula}, of a float."
    return build


exp = _unary("exp", "e to the power x")
log = _unary("log", "The natural logarithm of x")
sqrt = _unary("sqrt", "The square root of x")
rsqrt = _unary("rsqrt", "1 / sqrt(x)")
tanh = _unary("tanh", "The hyperbolic tangent of x")
erf = _unary("erf", "The error function of x")
sin = _unary("sin", "The sine of x")
cos = _unary("cos", "The cosine of x")
floor = _unary("floor", "The greatest integer not above x")
round = _unary("round", "The integer nearest to x, of two the even one")
abs = _unary("abs", "The absolute value of x (integers too)")


def sigmoid(value: Any) -> Expr:
    """1 / (1 + exp(-x)), of a float."""
    return 1.0 / (1.0 + exp(-as_expr(value)))


def pow(base: Any, exponent: Any) -> Expr:
    """base to the power exponent, of floats."""
    return binary("pow", base, exponent)


def maximum(lhs: Any, rhs: Any) -> Expr:
    """The greater of two values; NaN if one of them is."""
    return binary("maximum", lhs, rhs)


def minimum(lhs: Any, rhs: Any) -> Expr:
    """The lesser of two values; NaN if one of them is."""
    return binary("minimum", lhs, rhs)


def equal(lhs: Any, rhs: Any) -> Any:
    """Whether two values, or two index expressions, are equal."""
    if as_index(lhs) is not None and as_index(rhs) is not None:
        return compared(lhs, "==", rhs)
    return compare("eq", lhs, rhs)


def not_equal(lhs: Any, rhs: Any) -> Expr:
    """Whether two values differ."""
    if as_index(lhs) is not None and as_index(rhs) is not None:
        return ~Holds(compared(lhs, "==", rhs))
    return compare("ne", lhs, rhs)


def all_of(*conditions: Any) -> Any:
    """The conjunction of conditions; one over axes alone can guard a read."""
    return _joined("and", conditions)


def any_of(*conditions: Any) -> Any:
    """The disjunction of conditions."""
    return _joined("or", [as_expr(c) for c in conditions])


def _joined(name: str, conditions: Sequence[Any]) -> Any:
    if not conditions:
        raise TeError("a conjunction or disjunction needs at least one condition")
    result = conditions[0]
    for other in conditions[1:]:
        both = isinstance(result, Condition) and isinstance(other, Condition)
        result = result & other if both and name == "and" else logical(name, result, other)
    return result


def select(condition: Any, then: Any, otherwise: Any) -> Expr:
    """`then` where the condition holds, else `otherwise`.

    With a condition over axes, one read, and a number, it is a conditional read: the tensor is not touched where
    the condition fails, so its index may be out of bounds there.
    """
    plain = isinstance(then, Read) and then.condition is None
    if isinstance(condition, Condition) and plain and isinstance(otherwise, int | float | Const):
        value = otherwise.value if isinstance(otherwise, Const) else otherwise
        const(value, then.dtype)
        return Read(then.tensor, then.indices, condition, value)
    truth = as_expr(condition)
    if truth.dtype != "i1":
        raise TeError(f"the condition of select is {truth.dtype}, expected i1")
    left, right = _pair("select", then, otherwise)
    return Apply("select", (truth, left, right), left.dtype)


def cast(value: Any, dtype: str, saturate: bool = False) -> Expr:
    """The value, or an index expression, converted to a dtype.

    Floats become integers by truncation towards zero, saturated at the dtype's limits, NaN as 0; floats are rounded
    to the nearest, ties to even, once; integers wrap, or with `saturate` stay at the limits. Numbers are true where
    they are not zero.
    """
    check_dtype(dtype)
    index = as_index(value) if isinstance(value, Index) else None
    operand: Expr = AxisValue(index) if index is not None else as_expr(value)
    if operand.dtype == dtype:
        return operand
    if saturate and not is_float(operand.dtype) and not is_float(dtype) and dtype != "i1":
        operand = _clamped(operand, dtype)
    return Apply("cast", (operand,), dtype)


def _clamped(value: Expr, dtype: str) -> Expr:
    """The integer within the limits of another dtype, as far as its own reaches them."""
    (low, high), (least, most) = limits(dtype), limits(value.dtype)
    value = maximum(value, low) if least < low else value
    return minimum(value, high) if most > high else value


def reduce_axes(axis: Any) -> tuple[Axis, ...]:
    """The axes of a reduction, one or several. Raises TeError for what is no reduce axis."""
    axes = (axis,) if isinstance(axis, Axis) else tuple(axis) if isinstance(axis, tuple | list) else ()
    if not axes or not all(isinstance(a, Axis) for a in axes):
        raise TeError(f"the reduction needs axis=, one reduce axis or several, got {axis!r}")
    for one in axes:
        if not one.reduce:
            raise TeError(f"the reduction runs over '{one.name}', which is a spatial axis of the compute")
        if axes.count(one) > 1:
            raise TeError(f"the reduction runs twice over '{one.name}'")
    return axes


def _reduction(combiner: str) -> Callable[..., Reduce]:
    def build(body: Any, axis: Axis | Sequence[Axis]) -> Reduce:
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
