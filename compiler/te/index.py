"""Index expressions: axes, quasi-affine arithmetic on them, and conditions over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index as as_integer
from typing import NoReturn, SupportsIndex, TypeAlias

from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr

from compiler.affine.limits import bad_extent, bad_index
from compiler.support.errors import TeError


def check_name(what: str, name: object) -> str:
    """Raise TeError unless the name of an object, described by `what`, is a string; return it."""
    if not isinstance(name, str):
        raise TeError(f"{name!r} cannot name {what}: a name is text")
    return name


def check_extent(what: str, extent: object) -> int:
    """Return the extent of an object called `what` as an int. Raises TeError unless it is in [1, 2^63)."""
    value = as_int(extent)
    if value is None:
        raise TeError(f"{what} has extent {extent!r}; extents are integers (shapes are static)")
    fault = bad_extent(what, value)
    if fault:
        raise TeError(fault)
    return value


def as_int(value: object) -> int | None:
    """Return an integer of Python or numpy as an int; None for other values, bools included."""
    if type(value) is int:
        return value
    if isinstance(value, bool | Index) or not isinstance(value, SupportsIndex):
        return None
    try:
        return as_integer(value)
    except TypeError:  # an array of several elements
        return None


def _operator(operator: str) -> Callable[[Index, IndexLike], Index]:
    return lambda self, other: _arithmetic(operator, self, other)


def _reflected(operator: str) -> Callable[[Index, IndexLike], Index]:
    """Return the method of a reflected operator: the index expression is the right operand."""
    return lambda self, other: _arithmetic(operator, other, self)


def _comparison(relation: str) -> Callable[[Index, IndexLike], Condition]:
    return lambda self, other: compared(self, relation, other)


class Index:
    """A quasi-affine expression of axes: +, -, and *, // and % by an integer, which is positive for // and %. <, <=, >
    and >= build conditions; == compares objects: `te.equal` builds a condition. Its truth value and iteration raise
    TeError."""

    def axes(self) -> list[Axis]:
        """Return the axes in the expression, each once, from left to right."""
        return []

    def sizes(self) -> list[Size]:
        """Return the sizes in the expression, each once, from left to right."""
        return []

    def affine(self, order: Order) -> AffineExpr:
        """Convert to an affine expression; axis a is dimension order[a], size s symbol order[s]. Raises TeError for an
        axis or size not in `order`."""
        raise NotImplementedError

    __add__, __radd__ = _operator("+"), _reflected("+")
    __sub__, __rsub__ = _operator("-"), _reflected("-")
    __mul__, __rmul__ = _operator("*"), _reflected("*")
    __floordiv__, __rfloordiv__ = _operator("//"), _reflected("//")
    __mod__, __rmod__ = _operator("%"), _reflected("%")
    __ge__, __le__ = _comparison(">="), _comparison("<=")
    __gt__, __lt__ = _comparison(">"), _comparison("<")

    def __neg__(self) -> Index:
        return Binary("*", self, Fixed(-1))

    def __truediv__(self, divisor: object) -> NoReturn:
        raise TeError(f"{self} / {divisor} is not an integer: use // on axes, or te.cast the axis to a float")

    def __bool__(self) -> NoReturn:
        raise TeError(f"'{self}' has no value while the expression is built; use te.select instead of if")

    def __index__(self) -> NoReturn:
        raise TeError(f"'{self}' has no value while the expression is built")

    def __iter__(self) -> NoReturn:
        raise TeError(f"'{self}' cannot be iterated over")


IndexLike: TypeAlias = Index | SupportsIndex
"""An index operand: an expression of axes, or an integer of Python or numpy."""


@dataclass(frozen=True, eq=False)
class Axis(Index):
    """An axis of a compute, spatial or `reduce`. If not `named`, its name is a default, which gets a suffix in a
    clash. `below`: its extent as an expression of sizes, of which `extent` is the most; None for a constant."""

    name: str
    extent: int
    reduce: bool = False
    named: bool = True
    below: Index | None = None

    @property
    def end(self) -> Index:
        """The extent as an index expression, of sizes if the axis is below one."""
        return Fixed(self.extent) if self.below is None else self.below

    def axes(self) -> list[Axis]:
        return [self]

    def affine(self, order: Order) -> AffineExpr:
        if self not in order:
            kind = "reduce axis" if self.reduce else "axis"
            raise TeError(f"the {kind} '{self.name}' is not one of this compute's axes")
        return AffineExpr.dimension(order[self])

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Size(Index):
    """An integer that each call gives, in [least, most], as an extent or in index expressions."""

    name: str
    least: int
    most: int

    def sizes(self) -> list[Size]:
        return [self]

    def affine(self, order: Order) -> AffineExpr:
        if self not in order:
            raise TeError(f"the size '{self.name}' is not one of this function's")
        return AffineExpr.symbol(order[self])

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Size {self.name}: {self.least} to {self.most}>"


Order: TypeAlias = Mapping[Axis | Size, int]
"""The numbers of axes, as dimensions, and of sizes, as symbols."""


@dataclass(frozen=True, eq=False)
class Fixed(Index):
    """An integer constant as an index expression."""

    value: int

    def affine(self, order: Order) -> AffineExpr:
        return AffineExpr.constant(self.value)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, eq=False)
class Binary(Index):
    """A binary operation on index expressions; the right operand of *, // and % is constant."""

    operator: str
    lhs: Index
    rhs: Index

    def axes(self) -> list[Axis]:
        return list(dict.fromkeys([*self.lhs.axes(), *self.rhs.axes()]))

    def sizes(self) -> list[Size]:
        return list(dict.fromkeys([*self.lhs.sizes(), *self.rhs.sizes()]))

    def affine(self, order: Order) -> AffineExpr:
        lhs, rhs = self.lhs.affine(order), self.rhs.affine(order)
        match self.operator:
            case "+":
                return lhs + rhs
            case "-":
                return lhs + rhs * -1
            case "*":
                return lhs * rhs
            case "//":
                return lhs // rhs
        return lhs % rhs

    def __str__(self) -> str:
        return f"({self.lhs} {self.operator} {self.rhs})"


@dataclass(frozen=True, eq=False)
class Condition:
    """A conjunction of constraints: each form >= 0 or, if `equal`, == 0. Example: i < 8 is 8 - i - 1 >= 0. `&` joins
    two conditions; a truth value raises TeError."""

    constraints: tuple[tuple[Index, bool], ...]

    def __and__(self, other: Condition) -> Condition:
        if isinstance(other, Condition):
            return Condition(self.constraints + other.constraints)
        return NotImplemented

    def affine(self, order: Order) -> tuple[AffineConstraintExpr, ...]:
        """Convert to affine constraints; axis a is dimension order[a]. Raises TeError for an axis not in `order`."""
        kinds = (AffineConstraintKind.ge, AffineConstraintKind.eq)
        zero = AffineExpr.constant(0)
        return tuple(AffineConstraintExpr(kinds[equal], f.affine(order), zero) for f, equal in self.constraints)

    def __bool__(self) -> NoReturn:
        raise TeError("a condition has no value while the expression is built; use te.select and te.all_of")


def check_fits(what: str, index: Index | Condition, order: Order) -> None:
    """Raise TeError, whose message begins with `what`, unless all values of an index, or of a condition's constraints,
    fit in 64-bit integers; `order` numbers the axes, then the sizes."""
    extents = [item.most + 1 if isinstance(item, Size) else item.extent for item in order]
    axes = [item for item in order if isinstance(item, Axis)]
    sizes = [AffineExpr.dimension(n) for n in range(len(axes), len(extents))]
    dims = [AffineExpr.dimension(n) for n in range(len(axes))]
    forms = [form for form, _ in index.constraints] if isinstance(index, Condition) else [index]
    for form in forms:
        expr = form.affine(order)
        expr = expr.replace_dims_and_symbols(dims, sizes) if sizes else expr
        fault = bad_index(f"{what} {form}", expr, extents)
        if fault:
            raise TeError(fault)


def numbered(axes: Sequence[Axis], sizes: Iterable[Size]) -> dict[Axis | Size, int]:
    """The order of axes, and of sizes, each once, by their first occurrences."""
    return {axis: n for n, axis in enumerate(axes)} | {size: n for n, size in enumerate(dict.fromkeys(sizes))}


def as_index(value: object) -> Index | None:
    """Return an index expression unchanged, an integer as Fixed, and None for other values."""
    if isinstance(value, Index):
        return value
    number = as_int(value)
    return None if number is None else Fixed(number)


def _arithmetic(operator: str, lhs: object, rhs: object) -> Index:
    left, right = as_index(lhs), as_index(rhs)
    if left is None or right is None:
        operand = rhs if right is None else lhs
        if isinstance(operand, float):
            raise TeError(f"'{lhs} {operator} {rhs}' mixes an axis and a float: te.cast the axis first")
        return NotImplemented  # type: ignore[no-any-return]  # the other side's operator may take it
    if operator == "*" and isinstance(left, Fixed):
        left, right = right, left
    if operator in ("*", "//", "%") and not isinstance(right, Fixed):
        both = left.sizes() and right.sizes()
        kind = "a product of sizes" if both and operator == "*" else "not quasi-affine"
        raise TeError(f"the index '{left} {operator} {right}' is {kind}: one side must be an integer")
    if operator in ("//", "%") and isinstance(right, Fixed) and right.value < 1:
        raise TeError(f"the index '{left} {operator} {right}' divides by an integer below 1")
    return Binary(operator, left, right)


def compared(lhs: object, relation: str, rhs: object) -> Condition:
    """Build the condition `lhs relation rhs` (<, <=, >, >=, ==). Raises TeError unless both are index expressions."""
    left, right = as_index(lhs), as_index(rhs)
    if left is None or right is None:
        raise TeError(
            f"'{lhs} {relation} {rhs}' compares an axis with a value that is no index; te.cast the axis first"
        )
    if relation in ("<", "<="):
        left, right = right, left
    form = Binary("-", left, right)
    if relation in ("<", ">"):
        form = Binary("-", form, Fixed(1))
    return Condition(((form, relation == "=="),))
