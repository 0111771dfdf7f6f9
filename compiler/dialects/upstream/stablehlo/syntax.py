"""The pretty syntax of StableHLO: operands, `word = value`, attributes, types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from xdsl.dialects.builtin import ArrayAttr, FunctionType, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand

from compiler.dialects.upstream.stablehlo.attributes import DotAttr, array, integers
from compiler.dialects.upstream.stablehlo.shardings import skip_angles
from compiler.dialects.upstream.stablehlo.table import SyntaxRow


@dataclass
class ParsedOp:
    """The parsed parts of an op: unresolved operands, properties, attributes, and the types of inputs and outputs."""

    operands: list[UnresolvedOperand] = field(default_factory=list)
    properties: dict[str, Attribute] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    inputs: Sequence[Attribute] = ()
    outputs: Sequence[Attribute] = ()

    def values(self, parser: Parser, position: int) -> list[SSAValue]:
        """Return the operands, resolved. Raises ParseError at `position` for another number of types."""
        if len(self.operands) != len(self.inputs):
            parser.raise_error(f"{len(self.operands)} operands have {len(self.inputs)} types", position, parser.pos)
        return list(parser.resolve_operands(self.operands, self.inputs, position))


def parse_plain(parser: Parser, row: SyntaxRow, name: str) -> ParsedOp:
    """Parse an op behind its name, `%a, %b, word = value {attributes} : types`; `row` has its words, and `name` is the
    op's. Raises ParseError for other text, and for a word that the row lacks."""
    parsed = ParsedOp()
    is_first = True
    while is_first or parser.parse_optional_punctuation(",") is not None:
        operand = parser.parse_optional_unresolved_operand()
        if operand is not None:
            parsed.operands.append(operand)
            if name == "stablehlo.slice":
                parsed.properties |= _parse_ranges(parser)
        elif not _parse_word(parser, row, parsed) and not is_first:
            _expected(parser, row)
        is_first = False
    parsed.attributes = parser.parse_optional_attr_dict()
    parse_types(parser, parsed, name)
    return parsed


def _expected(parser: Parser, row: SyntaxRow) -> NoReturn:
    words = ", ".join([*row.words])
    parser.raise_error(f"an operand is expected{f', or one of {words}' if words else ''}")


def _parse_word(parser: Parser, row: SyntaxRow, parsed: ParsedOp) -> bool:
    """Parse `word = value`, or a word of `row.leading`, into the parsed op; return whether there was one. Raises
    ParseError for a word that the op lacks."""
    position = parser.pos
    word = parser.parse_optional_identifier()
    if word is None:
        return False
    if parser.parse_optional_punctuation("=") is None:
        free = [name for name in row.leading if name not in parsed.properties]
        if not free:
            parser.raise_error(f"'{word}' is not expected here", position)
        parsed.properties[free[0]] = StringAttr(word)
        return True
    if word not in row.words:
        parser.raise_error(f"this op has no '{word}'", position)
    parsed.properties[row.words[word]] = parse_value(parser)
    return True


def parse_value(parser: Parser) -> Attribute:
    """Parse a number, a word, a list of them, a pair of lists `[0] x [1]`, or an entry in angle brackets. A list of
    integers or an empty one is an array of 64-bit integers, another list an ArrayAttr; a word and an entry are strings.
    """
    numbers = parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, lambda: parse_value(parser))
    if numbers is not None:
        listed: Attribute = ArrayAttr(numbers)
        if all(isinstance(number, IntegerAttr) for number in numbers):
            listed = array(integers(listed, []))
        return ArrayAttr([listed, parse_value(parser)]) if parser.parse_optional_keyword("x") else listed
    number = parser.parse_optional_integer()
    if number is not None:
        return IntegerAttr(number, i64)
    if parser._current_token.text == "<":
        return StringAttr(skip_angles(parser))
    return StringAttr(parser.parse_identifier())


def _parse_ranges(parser: Parser) -> dict[str, Attribute]:
    """Parse slices, `[0:1, 2:8:2]`, to the properties start_indices, limit_indices and strides."""

    def one() -> tuple[int, int, int]:
        start = parser.parse_integer()
        parser.parse_punctuation(":")
        limit = parser.parse_integer()
        return start, limit, parser.parse_integer() if parser.parse_optional_punctuation(":") else 1

    ranges = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, one)
    starts, limits, strides = ([entry[n] for entry in ranges] for n in range(3))
    return {"start_indices": array(starts), "limit_indices": array(limits), "strides": array(strides)}


def parse_types(parser: Parser, parsed: ParsedOp, name: str) -> None:
    """Parse the types behind a colon into the parsed op: `(inputs) -> outputs`, `inputs -> outputs`, or one type of
    all, the types of the results, or one for each operand. `name`: of the op."""
    parser.parse_punctuation(":")
    first = parser.parse_type()
    if isinstance(first, FunctionType):
        parsed.inputs, parsed.outputs = list(first.inputs), list(first.outputs)
        return
    types = [first]
    while parser.parse_optional_punctuation(","):
        types.append(parser.parse_type())
    count = len(parsed.operands)
    if parser.parse_optional_punctuation("->"):
        outputs = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
        parsed.inputs, parsed.outputs = types, [parser.parse_type()] if outputs is None else outputs
    elif name == "stablehlo.select" and len(types) == 2:
        parsed.inputs, parsed.outputs = [types[0], types[1], types[1]], [types[1]]
    elif name in ("stablehlo.return", "stablehlo.optimization_barrier"):
        parsed.inputs, parsed.outputs = types, [] if name == "stablehlo.return" else types
    else:
        parsed.inputs, parsed.outputs = types * count if len(types) == 1 else types, types[-1:]


def finished(properties: dict[str, Attribute]) -> dict[str, Attribute]:
    """Replace `batching` and `contracting`, the words of a dot_general, by the one attribute of the generic syntax, in
    place; return the properties. One list in place of a pair is that of both sides."""
    pairs = {name: properties.pop(name) for name in ("batching", "contracting") if name in properties}
    if pairs:
        entries = []
        for name, pair in pairs.items():
            sides = pair.data if isinstance(pair, ArrayAttr) and len(pair) == 2 else (pair, pair)
            entries += [
                (f"{side}_{name}_dimensions", tuple(integers(listed, [])))
                for side, listed in zip(("lhs", "rhs"), sides, strict=True)
            ]
        properties["dot_dimension_numbers"] = DotAttr(tuple(entries))
    return properties
