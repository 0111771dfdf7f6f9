"""Shared by te and loop: named axes, accesses (map, condition, otherwise), and their syntax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    AnyFloat,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.affine.sized import size_map, size_set
from compiler.affine.text import NamedAffineParser, SizedNames, constraint_text, size_names, to_text
from compiler.types.dtypes import row_of
from compiler.types.elements import is_unsigned
from compiler.types.rounding import rounded

Op = TypeVar("Op", bound=Operation)


@irdl_attr_definition
class AxisAttr(ParametrizedAttribute):
    """One named axis with its extent: spatial, or reduced over. limit: the expression of sizes below which the axis
    stays, by default none; the extent is then its capacity.

    ```mlir
    #te.axis<k = 8 reduce>
    ```

    >>> print(strata.dialects.AxisAttr("k", 8, reduce=True))
    #te.axis<k = 8 reduce>
    """

    name = "te.axis"

    axis_name: StringAttr
    extent: IntAttr
    reduces: IntAttr
    limit: AffineMapAttr | NoneAttr

    def __init__(self, label: str, extent: int, reduce: bool = False, below: AffineMap | None = None) -> None:
        limit = NoneAttr() if below is None else AffineMapAttr(below)
        super().__init__(StringAttr(label), IntAttr(extent), IntAttr(int(reduce)), limit)

    @property
    def label(self) -> str:
        """The axis' name."""
        return self.axis_name.data

    @property
    def size(self) -> int:
        """The axis' extent: its values are 0 .. size - 1. Of an axis below a size, the most that it can be."""
        return self.extent.data

    @property
    def below(self) -> AffineExpr | None:
        """The extent as an expression of sizes, which are its symbols; None for an axis of constant extent."""
        return self.limit.data.results[0] if isinstance(self.limit, AffineMapAttr) else None

    @property
    def end(self) -> AffineExpr:
        """The extent as an expression of sizes, a constant without them."""
        return AffineExpr.constant(self.size) if self.below is None else self.below

    @property
    def is_reduce(self) -> bool:
        """Whether this is a reduce axis: values are combined over it, and it does not index the result."""
        return bool(self.reduces.data)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.label} = {self.size}{' reduce' if self.is_reduce else ''}")
        if isinstance(self.limit, AffineMapAttr):
            printer.print_string(" below ")
            printer.print_attribute(self.limit)
        printer.print_string(">")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            label = parser.parse_identifier()
            parser.parse_punctuation("=")
            extent = parser.parse_integer(allow_boolean=False)
            reduce = parser.parse_optional_keyword("reduce") is not None
            limit = parser.parse_attribute() if parser.parse_optional_keyword("below") else NoneAttr()
        return (StringAttr(label), IntAttr(extent), IntAttr(int(reduce)), limit)

    def verify(self) -> None:
        """Raise VerifyException unless the extent over sizes, if there is one, is one expression without axes."""
        if isinstance(self.limit, AffineMapAttr) and (self.limit.data.num_dims or len(self.limit.data.results) != 1):
            raise VerifyException(f"axis '{self.label}' is below one expression of sizes")


@lru_cache(maxsize=4096)
def axis_attribute(label: str, extent: int, reduce: bool = False, below: AffineMap | None = None) -> AxisAttr:
    """Return the attribute of an axis, spatial unless `reduce`, from a cache: programs repeat few different axes, and
    verifying is slow."""
    return AxisAttr(label, extent, reduce, below)


@irdl_attr_definition
class AccessAttr(ParametrizedAttribute):
    """The index of an access: a quasi-affine map of the axes, `map`. Of a conditional read also the condition, `where`,
    and the value read if it fails, `default`; both are NoneAttr otherwise.

    ```mlir
    #te.access<affine_map<(h, k) -> (h + k - 1)>>
    ```
    """

    name = "te.access"

    map: AffineMapAttr
    where: AffineSetAttr | NoneAttr
    default: FloatAttr | IntegerAttr | NoneAttr

    def __init__(
        self, map: AffineMap, condition: AffineSet | None = None, otherwise: FloatAttr | IntegerAttr | None = None
    ) -> None:
        where = NoneAttr() if condition is None else AffineSetAttr(condition)
        super().__init__(AffineMapAttr(map), where, NoneAttr() if otherwise is None else otherwise)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.map)
            for part in (self.where, self.default):
                if not isinstance(part, NoneAttr):
                    printer.print_string(", ")
                    printer.print_attribute(part)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            attributes = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_attribute)
        return [*attributes, NoneAttr(), NoneAttr()][:3] if len(attributes) < 3 else attributes

    @property
    def affine_map(self) -> AffineMap:
        """The map from the axes to the index, one expression for each dimension of the buffer."""
        return self.map.data

    @property
    def condition(self) -> AffineSet | None:
        """The condition of the access, or None if it is unconditional."""
        return self.where.data if isinstance(self.where, AffineSetAttr) else None

    @property
    def otherwise(self) -> FloatAttr | IntegerAttr | None:
        """The value read if the condition fails, or None if the access is unconditional."""
        return None if isinstance(self.default, NoneAttr) else self.default


def print_indices(printer: Printer, map: AffineMap, names: Sequence[str]) -> None:
    """Print the results of a map as an index, such as `[m, k + 1]`; `names` are those of its dimensions."""
    printer.print_string(f"[{', '.join(to_text(e, names) for e in map.results)}]")


def parse_indices(parser: Parser, names: Sequence[str]) -> AffineMap:
    """Parse an index such as `[m, k + 1]` to a map whose dimensions are the named axes. Raises ParseError for other
    text, and for a name that `names` lacks."""
    affine = NamedAffineParser(parser, names)
    exprs = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, affine.expr)
    return size_map(len(names), exprs, len(size_names(names)))


def print_set(printer: Printer, condition: AffineSet, names: Sequence[str]) -> None:
    """Print a condition as ` where (h >= 0, ...)`; `names` are those of its dimensions."""
    printer.print_string(f" where ({', '.join(constraint_text(c, names) for c in condition.constraints)})")


def parse_set(parser: Parser, names: Sequence[str]) -> AffineSet | None:
    """Parse a condition `where (...)` over the named axes; None if there is no `where`. Raises ParseError for other
    text behind `where`, and for a name that `names` lacks."""
    if parser.parse_optional_keyword("where") is None:
        return None
    affine = NamedAffineParser(parser, names)
    constraints = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, affine.constraint)
    return size_set(len(names), constraints, len(size_names(names)))


def print_access(printer: Printer, access: AccessAttr, names: Sequence[str], element: Attribute) -> None:
    """Print an access as `[h - 1] where (h - 1 >= 0) else 0.0`, with the axes' names, without a condition only the
    index; `element` is the buffer's type of elements."""
    print_indices(printer, access.affine_map, names)
    if access.condition is not None and access.otherwise is not None:
        print_set(printer, access.condition, names)
        printer.print_string(f" else {literal_text(access.otherwise, element)}")


def parse_access(parser: Parser, names: Sequence[str]) -> Callable[[Attribute], AccessAttr]:
    """Parse an access; return a function from its element type, which the text states later, to the attribute. Raises
    ParseError for other text and for a name that `names` lacks; the function raises it for a literal that the type
    lacks."""
    map = parse_indices(parser, names)
    condition = parse_set(parser, names)
    if condition is None:
        return lambda element: AccessAttr(map)
    parser.parse_keyword("else")
    position = parser.pos
    value = parse_literal(parser)
    return lambda element: AccessAttr(map, condition, literal_of(parser, value, element, position))


def literal_of(
    parser: Parser, value: float, element: Attribute, place: int, signless: bool = False
) -> FloatAttr | IntegerAttr:
    """Convert a number parsed at position `place` to a literal of an element type. Raises ParseError if it is no value
    of the type; with `signless`, an integer may be in the signed or the unsigned range of its width."""
    row = row_of(element)
    if isinstance(element, AnyFloat) and row is not None:
        number = rounded(value, row.name)
        if math.isinf(number) and value != number:
            parser.raise_error(f"{value} is beyond the greatest {element}", place)
        return FloatAttr(number, element)
    if isinstance(element, IntegerType) and isinstance(value, int):
        low, high = element.value_range()
        high = row.limits[1] + 1 if row is not None and row.kind == "i" and not signless else high
        if low <= value < high or (is_unsigned(element) and -high // 2 <= value < 0):
            return IntegerAttr(value, IntegerType(element.width.data))
    parser.raise_error(f"{value} is not a value of type {element}", place)


def literal_text(value: FloatAttr | IntegerAttr, element: Attribute | None = None) -> str:
    """The text of a literal; a negative integer of an unsigned element type is shown as its unsigned value, any other,
    and one without `element`, as it is."""
    if isinstance(value, IntegerAttr):
        number: int = value.value.data
        wraps = number < 0 and element is not None and is_unsigned(element) and isinstance(element, IntegerType)
        return str(number + (1 << element.width.data) if wraps else number)  # type: ignore[union-attr]
    return decimal(float(value.value.data))


def decimal(real: float) -> str:
    """The text of a float in MLIR's syntax, with a decimal point: 1.0e-07, inf, nan."""
    number, power, exponent = repr(real).partition("e")
    return number + (".0" if power and "." not in number else "") + power + exponent


def parse_literal(parser: Parser) -> int | float:
    """Parse a number, inf or nan, with an optional sign. Raises ParseError for other text, and for a number beyond
    f64."""
    sign = -1 if parser.parse_optional_punctuation("-") else 1
    for word in ("inf", "nan"):
        if parser.parse_optional_keyword(word):
            return sign * float(word)
    position = parser.pos
    number = parser.parse_number(allow_boolean=False)
    if number == math.inf:
        parser.raise_error("the number is beyond the greatest f64", position)
    return sign * (number if isinstance(number, float) else int(number))


def parse_attributes(parser: Parser, op: Op) -> Op:
    """Parse an optional `attributes {...}`, and add it to an op; return the op."""
    attributes = parser.parse_optional_attr_dict_with_keyword()
    if attributes is not None:
        op.attributes |= attributes.data
    return op


def names_of(axes: Sequence[AxisAttr], sizes: Sequence[str] = ()) -> list[str]:
    """The axes' names, in order, with those of sizes beside."""
    return SizedNames([axis.label for axis in axes], sizes) if sizes else [axis.label for axis in axes]
