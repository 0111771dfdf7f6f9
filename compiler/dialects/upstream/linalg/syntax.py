"""The pretty syntax of linalg ops: `ins(...)`, `outs(...)`, properties in front or behind, result types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, TensorType, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError
from xdsl.utils.mlir_lexer import MLIRTokenKind


@dataclass
class ParsedParts:
    """The parsed parts of an op: inputs, outputs, attributes by name, and the types of results. `region` is not set.
    `short` is the op in braces of `linalg.map { arith.addf } ...`, empty without one, and `short_properties` are its
    properties."""

    ins: list[SSAValue] = field(default_factory=list)
    outs: list[SSAValue] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    results: Sequence[Attribute] = ()
    short: str = ""
    short_properties: dict[str, Attribute] = field(default_factory=dict)
    region: Region | None = None

    @property
    def operands(self) -> list[SSAValue]:
        """The inputs, then the outputs."""
        return [*self.ins, *self.outs]


def parse_parts(parser: Parser, words: Iterable[str] = (), short: bool = False, body: bool = False) -> ParsedParts:
    """Parse an op behind its name: properties `words` as `word = value`, with `short` an op in braces, attributes,
    operands, and result types, which default to those of the output tensors. With `body` a region follows."""
    parts = ParsedParts()
    if short:
        _parse_short(parser, parts)
    _parse_attributes(parser, words, parts)
    parts.ins = _parse_operands(parser, "ins")
    parts.outs = _parse_operands(parser, "outs")
    if not body:
        _parse_attributes(parser, words, parts)
    if parser.parse_optional_keyword("attrs"):
        parser.parse_punctuation("=")
        parts.attributes |= parser.parse_optional_attr_dict()
    parse_results(parser, parts)
    return parts


def parse_results(parser: Parser, parts: ParsedParts) -> None:
    """Parse `-> type` or `-> (type, type)`; without it the results have the types of the output tensors."""
    if parser.parse_optional_punctuation("->"):
        types = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
        parts.results = [parser.parse_type()] if types is None else types
    else:
        parts.results = [value.type for value in parts.outs if isinstance(value.type, TensorType)]


def _parse_short(parser: Parser, parts: ParsedParts) -> None:
    """Parse an op in braces, `{ arith.addf }` or `{ arith.addi {overflowFlags = ...} }`, if there is one. Raises
    ParseError for other braces."""
    position = parser.pos
    if parser.parse_optional_punctuation("{") is None:
        return
    name = parser.parse_optional_identifier()
    if name is None or "." not in name:
        parser.raise_error("expected the name of an op, such as arith.addf", position)
    parts.short, parts.short_properties = name, parser.parse_optional_attr_dict()
    parser.parse_punctuation("}")


def _parse_attributes(parser: Parser, words: Iterable[str], parts: ParsedParts) -> None:
    """Parse properties by their words and attribute dictionaries, in any order, to the parts."""
    while True:
        word = next((word for word in words if parser.parse_optional_keyword(word)), None)
        if word is None:
            attributes = parser.parse_optional_attr_dict() or _parse_alias(parser)
            if not attributes:
                return
            parts.attributes |= attributes
        else:
            parser.parse_punctuation("=")
            numbers = _parse_numbers(parser)
            parts.attributes[word] = parser.parse_attribute() if numbers is None else numbers


def _parse_alias(parser: Parser) -> dict[str, Attribute]:
    """Parse a dictionary by its alias, `#trait`; empty if there is none. Raises ParseError for an alias of something
    else."""
    if parser._current_token.kind is not MLIRTokenKind.HASH_IDENT:
        return {}
    start, dictionary = parser.pos, parser.parse_attribute()
    if not isinstance(dictionary, DictionaryAttr):
        parser.raise_error("the alias of a dictionary is expected", start)
    return dict(dictionary.data)


def _parse_numbers(parser: Parser) -> Attribute | None:
    """Parse a list of integers, `[1, 0]`; None for any other attribute, such as a list of maps."""
    backtrack = parser._resume_from
    position = parser.pos
    try:
        numbers = parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
    except ParseError:
        backtrack(position)
        return None
    return None if numbers is None else DenseArrayBase.from_list(i64, numbers)


def _parse_operands(parser: Parser, word: str) -> list[SSAValue]:
    """Parse `word(%a, %b : type, type)`; no operands without the word."""
    position = parser.pos
    if parser.parse_optional_keyword(word) is None:
        return []
    parser.parse_punctuation("(")
    names = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    types: list[Attribute] = []
    if names:
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return list(parser.resolve_operands(names or [], types, position))


def print_operands(printer: Printer, word: str, values: Sequence[SSAValue]) -> None:
    """Print ` word(%a, %b : type, type)`; nothing without values."""
    if not values:
        return
    printer.print_string(f" {word}(")
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(" : ")
    printer.print_list([value.type for value in values], printer.print_attribute)
    printer.print_string(")")


def print_results(printer: Printer, types: Sequence[Attribute]) -> None:
    """Print ` -> type` or ` -> (type, type)`; nothing without results."""
    if not types:
        return
    printer.print_string(" -> " if len(types) == 1 else " -> (")
    printer.print_list(types, printer.print_attribute)
    printer.print_string("" if len(types) == 1 else ")")
