"""scf: MLIR has a syntax for scf.parallel, and scf.forall; xDSL has not. The generic syntax is printed. scf.forall is
read and printed, not lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, i64
from xdsl.dialects.utils.dynamic_index_list import parse_dynamic_index_list_without_types
from xdsl.ir import Attribute, Block, Dialect, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.traits import IsTerminator, NoTerminator

from compiler.dialects.upstream.formats import table_op

Bounds: TypeAlias = tuple[Sequence[UnresolvedOperand], Sequence[int]]


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


InParallelOp = table_op(
    "scf.forall.in_parallel", "$region attr-dict", (IsTerminator(), NoTerminator()), regions="region"
)


@irdl_op_definition
class ForallOp(IRDLOperation):
    """Iterations in any order, each of which writes slices of the shared outputs at its end, by
    scf.forall.in_parallel."""

    name = "scf.forall"
    dynamicLowerBound = var_operand_def(IndexType)
    dynamicUpperBound = var_operand_def(IndexType)
    dynamicStep = var_operand_def(IndexType)
    outputs = var_operand_def()
    staticLowerBound = prop_def(DenseArrayBase.constr(i64))
    staticUpperBound = prop_def(DenseArrayBase.constr(i64))
    staticStep = prop_def(DenseArrayBase.constr(i64))
    mapping = opt_prop_def()
    results_ = var_result_def()
    region = region_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> ForallOp:
        """Parse `(%i) in (%n) shared_outs(%o = %t) -> (tensor<4xf32>) {...}` or `(%i) = (0) to (%n) step (1) {...}`."""
        delimiter, start = Parser.Delimiter.PAREN, parser.pos
        arguments = parser.parse_comma_separated_list(delimiter, lambda: parser.parse_argument(expect_type=False))
        bounds: list[Bounds] = [((), [0] * len(arguments)), ((), []), ((), [1] * len(arguments))]
        words = enumerate(("=", "to", "step")) if parser.parse_optional_keyword("in") is None else ((1, ""),)
        for number, word in words:
            if word:
                parser.parse_characters(word)
            bounds[number] = parse_dynamic_index_list_without_types(parser, DYNAMIC_INDEX, delimiter=delimiter)
        pairs: list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]] = []
        types: Sequence[Attribute] = ()
        if parser.parse_optional_keyword("shared_outs") is not None:
            pairs = parser.parse_comma_separated_list(delimiter, lambda: _assignment(parser))
            parser.parse_punctuation("->")
            types = parser.parse_comma_separated_list(delimiter, parser.parse_type)
        outputs = parser.resolve_operands([operand for _, operand in pairs], types, start)
        inner = [argument.resolve(type) for (argument, _), type in zip(pairs, types, strict=True)]
        region = parser.parse_region([*(argument.resolve(IndexType()) for argument in arguments), *inner])
        if not isinstance(region.block.last_op, InParallelOp):
            region.block.add_op(InParallelOp.create(regions=[Region(Block())]))
        attributes = dict(parser.parse_optional_attr_dict())
        values = [[parser.resolve_operand(value, IndexType()) for value in dynamic] for dynamic, _ in bounds]
        names = ("staticLowerBound", "staticUpperBound", "staticStep")
        properties: dict[str, Attribute] = {
            name: DenseArrayBase.from_list(i64, numbers) for name, (_, numbers) in zip(names, bounds, strict=True)
        }
        if "mapping" in attributes:
            properties["mapping"] = attributes.pop("mapping")
        return cls.build(
            operands=[*values, outputs],
            result_types=[types],
            properties=properties,
            attributes=attributes,
            regions=[region],
        )


def _assignment(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    """Parse `%o = %t` to the argument %o and the operand %t."""
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


# Not a subclass: emission and passes look up handlers by the class of an op, which xDSL's passes also build.
scf.ParallelOp.parse = _parse_parallel  # type: ignore[method-assign]

SCF = Dialect(scf.Scf.name, [*scf.Scf.operations, ForallOp, InParallelOp], list(scf.Scf.attributes))
