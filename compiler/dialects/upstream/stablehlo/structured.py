"""The ops with a syntax of their own: reduce, while, convolution, constant, composite; custom_call."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand

from compiler.dialects.upstream.stablehlo.attributes import ConvAttr, array, parse_layouts
from compiler.dialects.upstream.stablehlo.syntax import ParsedOp, parse_types, parse_value

WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}
"""Map the words of a convolution's window to its properties."""


def parse_constant(parser: Parser, kind: type[Operation]) -> Operation:
    """Parse the rest of `stablehlo.constant dense<...> : type` behind the op's name, and return the op, of class
    `kind`. Raises ParseError for other text, and for a value without a tensor type."""
    attributes = parser.parse_optional_attr_dict()
    position = parser.pos
    value = parser.parse_attribute()
    type = getattr(value, "type", None)
    if not isinstance(type, TensorType):
        parser.raise_error("a constant is dense<...> : tensor<...>", position)
    return kind.create(result_types=[type], properties={"value": value}, attributes=attributes)


def parse_custom_call(parser: Parser, kind: type[Operation]) -> Operation:
    """Raise ParseError for `stablehlo.custom_call @target(...)`, with the name of the target; `kind` is unused."""
    target = parser.parse_optional_symbol_name()
    name = f"@{target.data}" if target is not None else "another program"
    parser.raise_error(f"stablehlo.custom_call is not read: it calls {name}, which is code outside of the text")


def parse_composite(parser: Parser, kind: type[Operation]) -> Operation:
    """Parse the rest of `stablehlo.composite "name" %a {decomposition = @f} : types` behind the op's name, and return
    the op, of class `kind`. Other attributes than those of composites are dropped."""
    position = parser.pos
    name = StringAttr(parser.parse_str_literal())
    operands = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    parsed = ParsedOp(list(operands or []), {"name": name} | parser.parse_optional_attr_dict())
    parse_types(parser, parsed, "stablehlo.composite")
    names = ("name", "composite_attributes", "decomposition", "version")
    properties = {name: value for name, value in parsed.properties.items() if name in names}
    return kind.create(operands=parsed.values(parser, position), result_types=parsed.outputs, properties=properties)


def parse_convolution(parser: Parser, kind: type[Operation]) -> Operation:
    """Parse the rest of `stablehlo.convolution(%x, %w) dim_numbers = ..., window = {...} {...} : types` behind the op's
    name, and return the op, of class `kind`."""
    position = parser.pos
    parsed = ParsedOp(parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand))
    parser.parse_keyword("dim_numbers")
    parser.parse_punctuation("=")
    parsed.properties["dimension_numbers"] = ConvAttr(parse_layouts(parser))
    parser.parse_punctuation(",")
    parser.parse_keyword("window")
    parser.parse_punctuation("=")
    parsed.properties |= dict(parser.parse_comma_separated_list(Parser.Delimiter.BRACES, lambda: _window_entry(parser)))
    parsed.properties |= parser.parse_optional_attr_dict()
    parse_types(parser, parsed, "stablehlo.convolution")
    return kind.create(
        operands=parsed.values(parser, position), result_types=parsed.outputs, properties=parsed.properties
    )


def _window_entry(parser: Parser) -> tuple[str, Attribute]:
    position = parser.pos
    word = parser.parse_identifier()
    parser.parse_punctuation("=")
    if word not in WINDOW:
        parser.raise_error(f"a window has no '{word}' (there are {', '.join(WINDOW)})", position)
    if word != "reverse":
        return WINDOW[word], parse_value(parser)
    flags = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_boolean)
    return WINDOW[word], array([int(flag) for flag in flags])


def parse_reduce(parser: Parser, kind: type[Operation]) -> Operation:
    """Parse the rest of `stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : types`, or of
    the form with a region `reducer(%a: t, %b: t) {...}` behind the types, a pair of arguments for each operand, behind
    the op's name. Return the op, of class `kind`; its operands are the tensors, then their initial values."""
    position = parser.pos
    pairs = [_parse_initialised(parser)]
    while parser.parse_optional_punctuation(","):
        pairs.append(_parse_initialised(parser))
    short = parser.parse_identifier() if parser.parse_optional_keyword("applies") else None
    short_position = parser.pos
    parser.parse_keyword("across")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    dimensions = parse_value(parser)
    attributes = parser.parse_optional_attr_dict()
    parsed = ParsedOp([operand for operand, _ in pairs] + [start for _, start in pairs])
    parse_types(parser, parsed, "stablehlo.reduce")
    operands = parsed.values(parser, position)
    region = _parse_reducer(parser) if short is None else _short_reducer(parser, short, parsed.inputs, short_position)
    return kind.create(
        operands=operands,
        result_types=parsed.outputs,
        properties={"dimensions": dimensions},
        attributes=attributes,
        regions=[region],
    )


def _parse_initialised(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand]:
    with parser.in_parens():
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("init")
        parser.parse_punctuation(":")
        return operand, parser.parse_unresolved_operand()


def _parse_reducer(parser: Parser) -> Region:
    parser.parse_keyword("reducer")
    pairs: list[list[Parser.Argument]] = []
    while True:
        pair = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, lambda: _argument(parser))
        if pair is None:
            break
        if len(pair) != 2:
            parser.raise_error("a reducer has two arguments for each operand")
        pairs.append(pair)
    return parser.parse_region([pair[side] for side in (0, 1) for pair in pairs])


def _argument(parser: Parser) -> Parser.Argument:
    argument = parser.parse_argument()
    parser.parse_optional_location()
    return argument


def _short_reducer(parser: Parser, name: str, types: Sequence[Attribute], position: int) -> Region:
    """Build the region of `applies OP`: the op `name` on two elements of a type, and a return of its result. Raises
    ParseError at `position` for an unknown op, and for more than one tensor."""
    kind, closing = parser.ctx.get_optional_op(name), parser.ctx.get_optional_op("stablehlo.return")
    if kind is None or closing is None or len(types) != 2 or not isinstance(types[0], TensorType):
        parser.raise_error(f"'{name}' does not reduce one tensor", position)
    element = TensorType(types[0].element_type, [])
    block = Block(arg_types=[element, element])
    op = kind.create(operands=[*block.args], result_types=[element])
    block.add_ops([op, closing.create(operands=[*op.results])])
    return Region(block)


def parse_while(parser: Parser, kind: type[Operation]) -> Operation:
    """Parse the rest of `stablehlo.while(%i = %a, ...) : types attributes {...} cond {...} do {...}` behind the op's
    name, the attributes optional, and return the op, of class `kind`; there is a type for each operand."""
    position = parser.pos

    def entry() -> tuple[UnresolvedOperand, UnresolvedOperand]:
        argument = parser.parse_unresolved_operand()
        parser.parse_punctuation("=")
        return argument, parser.parse_unresolved_operand()

    pairs = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, entry)
    types: list[Attribute] = []
    if parser.parse_optional_punctuation(":"):
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    parsed = ParsedOp([start for _, start in pairs], inputs=types)
    operands: list[SSAValue] = parsed.values(parser, position)
    attributes = parser.parse_optional_attr_dict_with_keyword()
    arguments = [Parser.Argument(name.span, type) for (name, _), type in zip(pairs, types, strict=True)]
    parser.parse_keyword("cond")
    condition = parser.parse_region(arguments)
    parser.parse_keyword("do")
    body = parser.parse_region(arguments)
    return kind.create(
        operands=operands,
        result_types=types,
        attributes=dict(attributes.data) if attributes is not None else {},
        regions=[condition, body],
    )


def parse_top_k(parser: Parser, kind: type[Operation]) -> Operation:
    """Parse the rest of `chlo.top_k(%x, k = 3) : type -> (types)` behind the op's name, and return the op, of class
    `kind`."""
    position = parser.pos
    with parser.in_parens():
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        parser.parse_keyword("k")
        parser.parse_punctuation("=")
        k = parse_value(parser)
    attributes = parser.parse_optional_attr_dict()
    parsed = ParsedOp([operand])
    parse_types(parser, parsed, "chlo.top_k")
    return kind.create(
        operands=parsed.values(parser, position),
        result_types=parsed.outputs,
        properties={"k": k},
        attributes=attributes,
    )
