"""Combinations of reductions: a named combiner for each result, or a region for all results jointly.

A region takes the accumulators of all results, then the values to add, and yields the new accumulators:

    combine (%v = -inf : f32, %i = 0 : i64) with (%w, %j) { ... te.yield %x, %y : f32, i64 }

It must be associative and commutative, with the stated initial values as its identity: then the order of a reduction is
free, as for a named combiner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, opt_prop_def, opt_region_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.access import AxisAttr, literal_of, literal_text, parse_literal
from compiler.dialects.checks import check_scalars
from compiler.dialects.combiner import COMBINERS, identity
from compiler.types.elements import scalar_type

Literal = FloatAttr | IntegerAttr


@dataclass(frozen=True)
class Combination:
    """One combiner name for each result, or the identities and the region of a joint combiner; empty without
    reduction."""

    names: Sequence[str] = ()
    identities: Sequence[Literal] = ()
    region: Region | None = field(default=None, compare=False)

    @property
    def properties(self) -> dict[str, Attribute | None]:
        """The properties of an op with this combination; its region is not among them; `identities` is None without a
        region."""
        identities = ArrayAttr(self.identities) if self.identities else None
        return {"combiners": ArrayAttr([StringAttr(name) for name in self.names]), "identities": identities}

    def clone(self) -> Combination:
        """Copy the combination with a copy of its region."""
        return Combination(self.names, self.identities, self.region.clone() if self.region is not None else None)


class Combining(IRDLOperation):
    """The base of te.compute and loop.block, with the combination of a reduction."""

    combiners = prop_def(ArrayAttr[StringAttr])
    identities = opt_prop_def(ArrayAttr)
    joint = opt_region_def("single_block")

    @property
    def is_reduction(self) -> bool:
        """Whether the op has a combiner, named or joint."""
        return bool(self.combiners.data) or self.joint is not None

    @property
    def combination(self) -> Combination:
        """The combination, with the region of this op: `clone` it for another op."""
        identities = self.identities.data if self.identities is not None else ()
        return Combination([c.data for c in self.combiners], identities, self.joint)

    def neutral(self, element: Attribute, position: int) -> Literal:
        """The identity of result number `position`, as a scalar of its element type, `element`."""
        if self.identities is not None:
            literal: Literal = self.identities.data[position]
            return literal
        return identity(self.combiners.data[position].data, element)

    def verify_combination(
        self, types: Sequence[Attribute], axes: Sequence[AxisAttr], yield_op: type[Operation]
    ) -> None:
        """Raise VerifyException unless an op with reduce axes has a known combiner for each of `types`, the element
        types of its results, or a joint one, and any other op none."""
        names, types = [c.data for c in self.combiners], list(map(scalar_type, types))
        for name in names:
            if name not in COMBINERS:
                raise VerifyException(f"unknown combiner '{name}' (there are {', '.join(COMBINERS)})")
        reduces = any(axis.is_reduce for axis in axes)
        if self.joint is not None:
            if names or not reduces:
                raise VerifyException("a region combines the results of a reduction, and then all of them")
            self._verify_joint(self.joint.block, types, yield_op)
            return
        expected = len(types) if reduces else 0
        if len(names) != expected:
            raise VerifyException(f"expected {expected} combiners for {len(types)} results, got {len(names)}")

    def _verify_joint(self, block: Block, types: Sequence[Attribute], yield_op: type[Operation]) -> None:
        identities = self.identities.data if self.identities is not None else ()
        if [getattr(value, "type", None) for value in identities] != list(types):
            raise VerifyException(f"the combiner needs neutral values of types {', '.join(map(str, types))}")
        if [arg.type for arg in block.args] != [*types, *types]:
            raise VerifyException("the combiner takes every result so far and then every value to add, of their types")
        check_scalars(block, yield_op, ())
        last = block.last_op
        assert last is not None
        if [value.type for value in last.operands] != list(types):
            raise VerifyException("the combiner must yield one value a result, of its type")


def print_combination(printer: Printer, op: Combining) -> None:
    """Print ` combine [add, ...]`, ` combine (%v = 0.0 : f32) with (%w) { ... }`, or nothing without a combiner."""
    if op.combiners.data:
        printer.print_string(f" combine [{', '.join(c.data for c in op.combiners)}]")
    if op.joint is None or op.identities is None:
        return
    args = op.joint.block.args
    half = len(args) // 2

    def neutral(pair: tuple[SSAValue, Literal]) -> None:
        printer.print_ssa_value(pair[0])
        printer.print_string(f" = {literal_text(pair[1])} : {pair[1].type}")

    printer.print_string("\n    combine ")
    with printer.in_parens():
        printer.print_list(list(zip(args[:half], op.identities.data, strict=True)), neutral)
    printer.print_string(" with ")
    with printer.in_parens():
        printer.print_list(args[half:], printer.print_ssa_value)
    printer.print_string(" ")
    printer.print_region(op.joint, print_entry_block_args=False)


def parse_combination(parser: Parser) -> Combination:
    """Parse the combination that `print_combination` prints; empty if there is no `combine`. Raises ParseError for
    other text, more values to add than identities, and an identity that its type lacks."""
    if parser.parse_optional_keyword("combine") is None:
        return Combination()
    names = parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_identifier)
    if names is not None:
        return Combination(names)
    identities: list[Literal] = []
    arguments: list[Parser.Argument] = []

    def neutral() -> None:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        position = parser.pos
        value = parse_literal(parser)
        parser.parse_punctuation(":")
        type = parser.parse_type()
        identities.append(literal_of(parser, value, type, position, signless=True))
        arguments.append(argument.resolve(type))

    def added() -> None:
        argument = parser.parse_argument(expect_type=False)
        position = len(arguments) - len(identities)
        if position >= len(identities):
            parser.raise_error(f"the combiner takes {len(identities)} values to add", parser.pos)
        arguments.append(argument.resolve(identities[position].type))

    parser.parse_comma_separated_list(Parser.Delimiter.PAREN, neutral)
    parser.parse_keyword("with")
    parser.parse_comma_separated_list(Parser.Delimiter.PAREN, added)
    return Combination((), identities, parser.parse_region(arguments))
