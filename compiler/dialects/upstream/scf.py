"""scf: MLIR has a syntax for scf.parallel; xDSL has not. It is parsed; the generic syntax is printed."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.parser import Parser


def _parse_parallel(parser: Parser) -> scf.ParallelOp:
    """Parse `(%i) = (%a) to (%b) step (%c) init (%x) -> f32 { ... }`, the text after the op's name."""
    variables = parser.parse_comma_separated_list(
        Parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
    )
    parser.parse_punctuation("=")
    lower = _indices(parser)
    parser.parse_keyword("to")
    upper = _indices(parser)
    parser.parse_keyword("step")
    steps = _indices(parser)
    initial: Sequence[SSAValue] = ()
    if parser.parse_optional_keyword("init"):
        position = parser.pos
        values = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_punctuation("->")
        types = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
        initial = parser.resolve_operands(values, [parser.parse_type()] if types is None else types, position)
    body = parser.parse_region([variable.resolve(IndexType()) for variable in variables])
    if not isinstance(body.block.last_op, scf.ReduceOp):
        body.block.add_op(scf.ReduceOp())
    op = scf.ParallelOp(lower, upper, steps, body, initial)
    op.attributes |= parser.parse_optional_attr_dict()
    return op


def _indices(parser: Parser) -> list[SSAValue]:
    return parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: parser.parse_operand(IndexType()))


# Not a subclass: emission and passes look up handlers by the class of an op, which xDSL's passes also build.
scf.ParallelOp.parse = _parse_parallel  # type: ignore[method-assign]

SCF = scf.Scf
