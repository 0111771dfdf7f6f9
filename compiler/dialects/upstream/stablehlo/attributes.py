"""Attributes of StableHLO: lists of dimensions by name, the layout of a convolution, words."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

Numbers: TypeAlias = tuple[tuple[str, int | tuple[int, ...]], ...]
Layout: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


class DimensionsAttr(Data[Numbers]):
    """The base of attributes `#stablehlo.NAME<offset_dims = [1], index_vector_dim = 1>`."""

    def lists(self) -> dict[str, list[int]]:
        """Return the lists of dimensions by name; entries that are one dimension are left out."""
        return {name: list(value) for name, value in self.data if isinstance(value, tuple)}

    def number(self, name: str, default: int = 0) -> int:
        """Return the dimension with a name; the default if the attribute has none, or a list under this name."""
        value = dict(self.data).get(name, default)
        return value if isinstance(value, int) else default

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Numbers:
        """Parse `<name = [1, 2], name = 3>`."""

        def entry() -> tuple[str, int | tuple[int, ...]]:
            name = parser.parse_identifier()
            parser.parse_punctuation("=")
            numbers = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            return name, parser.parse_integer() if numbers is None else tuple(numbers)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry))

    def print_parameter(self, printer: Printer) -> None:
        """Print the entries in angle brackets."""
        entries = (f"{name} = {list(v) if isinstance(v, tuple) else v}" for name, v in self.data)
        printer.print_string(f"<{', '.join(entries)}>")


@irdl_attr_definition
class DotAttr(DimensionsAttr):
    """The batching and contracting dimensions of a dot_general."""

    name = "stablehlo.dot"


@irdl_attr_definition
class GatherAttr(DimensionsAttr):
    """The dimensions of a gather."""

    name = "stablehlo.gather"


@irdl_attr_definition
class ScatterAttr(DimensionsAttr):
    """The dimensions of a scatter."""

    name = "stablehlo.scatter"


@irdl_attr_definition
class ConvAttr(Data[Layout]):
    """The layouts of a convolution's image, kernel and result: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""

    name = "stablehlo.conv"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        """Parse the three layouts in angle brackets."""
        with parser.in_angle_brackets():
            return parse_layouts(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print the three layouts in angle brackets."""
        image, kernel, result = (f"[{', '.join(names)}]" for names in self.data)
        printer.print_string(f"<{image}x{kernel}->{result}>")


def parse_layouts(parser: AttrParser) -> Layout:
    """Parse the layouts of image, kernel and result: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""

    def names() -> tuple[str, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _name(parser)))

    image = names()
    parser.parse_characters("x")
    kernel = names()
    parser.parse_punctuation("->")
    return image, kernel, names()


def _name(parser: AttrParser) -> str:
    number = parser.parse_optional_integer(allow_boolean=False)
    return parser.parse_identifier() if number is None else str(number)


class WordOfStableHloAttr(Data[str], SpacedOpaqueSyntaxAttribute):
    """The base of attributes that are a word, such as `#stablehlo<precision HIGH>`."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Parse the word."""
        return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        """Print the word."""
        printer.print_string(self.data)


def _word(name: str) -> type[WordOfStableHloAttr]:
    title = "".join(part.title() for part in name.split("_")) + "Attr"
    members = {"name": f"stablehlo.{name}", "__module__": __name__}
    return irdl_attr_definition(type(title, (WordOfStableHloAttr,), members))


WORDS = [_word(name) for name in ("comparison_direction", "comparison_type", "precision")]
"""The attributes that are a word."""
ATTRIBUTES: list[type[Attribute]] = [DotAttr, GatherAttr, ScatterAttr, ConvAttr, *WORDS]


def word(value: Attribute | None, default: str = "") -> str:
    """Return the word of an attribute, a string or a word of StableHLO; the default for others and for None."""
    return value.data if isinstance(value, WordOfStableHloAttr | StringAttr) else default


def integers(value: Attribute | None, default: list[int]) -> list[int]:
    """Return the integers of a list, array, dense or integer attribute, flattened; `default` for None. Raises
    ValueError for any other attribute."""
    match value:
        case None:
            return default
        case DenseArrayBase() | DenseIntOrFPElementsAttr():
            return [int(number) for number in value.get_values()]
        case ArrayAttr():
            return [number for part in value.data for number in integers(part, [])]
        case IntegerAttr():
            return [int(value.value.data)]
    raise ValueError(f"{value} is no list of integers")


def array(numbers: list[int]) -> DenseArrayBase:
    """Return the attribute of a list of 64-bit integers."""
    return DenseArrayBase.from_list(i64, numbers)


def precision_bits(format: str, exponent: int, mantissa: int) -> tuple[int, int]:
    """Return the bits of exponent and mantissa of a reduce_precision: those in its format, such as `e8m7`, or the
    numbers `exponent` and `mantissa` if the format has no `m`, as an empty one."""
    parts = format.removeprefix("e").split("m")
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 else (exponent, mantissa)
