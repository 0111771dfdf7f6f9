"""The upstream arith dialect, with the comparisons and select on vectors that xDSL's definitions leave out.

The names and the syntax are upstream's; a context that loads `ARITH` in the place of xDSL's reads and prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, VectorType, i1, i64
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)


def truth_type(type: Attribute) -> Attribute:
    """i1, or a vector of i1 of the same length."""
    return VectorType(i1, type.get_shape()) if isinstance(type, VectorType) else i1


class _Comparison(IRDLOperation):
    """What cmpi and cmpf share: two equal operands, a predicate, and one truth value a lane."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    PREDICATES: ClassVar[Sequence[str]]

    predicate = prop_def(IntegerAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, predicate: str | int) -> None:
        number = predicate if isinstance(predicate, int) else self.PREDICATES.index(predicate)
        super().__init__(
            operands=[lhs, rhs],
            result_types=[truth_type(SSAValue.get(lhs).type)],
            properties={"predicate": IntegerAttr(number, i64)},
        )

    @property
    def predicate_name(self) -> str:
        """The predicate as written, such as `olt`."""
        return self.PREDICATES[self.predicate.value.data]

    def verify_(self) -> None:
        if self.result.type != truth_type(self.lhs.type):
            raise VerifyException(f"the result must be {truth_type(self.lhs.type)}, not {self.result.type}")
        if not 0 <= self.predicate.value.data < len(self.PREDICATES):
            raise VerifyException(f"unknown predicate {self.predicate.value.data}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.predicate_name}, ")
        printer.print_list([self.lhs, self.rhs], printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)

    @classmethod
    def parse(cls, parser: Parser) -> _Comparison:
        place = parser.pos
        predicate = parser.parse_identifier()
        if predicate not in cls.PREDICATES:
            parser.raise_error(f"unknown predicate '{predicate}'", place)
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        op = cls(parser.resolve_operand(lhs, type), parser.resolve_operand(rhs, type), predicate)
        op.attributes |= attributes
        return op


@irdl_op_definition
class CmpiOp(_Comparison):
    """Compare integers, index values, or vectors of them: `%c = arith.cmpi slt, %a, %b : vector<8xi32>`."""

    name = "arith.cmpi"
    PREDICATES: ClassVar = CMPI
    traits = traits_def(Pure())


@irdl_op_definition
class CmpfOp(_Comparison):
    """Compare floats or vectors of them: `%c = arith.cmpf olt, %a, %b : vector<8xf32>`."""

    name = "arith.cmpf"
    PREDICATES: ClassVar = CMPF
    traits = traits_def(Pure())


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Choose by one truth value, or lane by lane: `%s = arith.select %c, %a, %b : vector<8xi1>, vector<8xf32>`."""

    name = "arith.select"

    T: ClassVar = VarConstraint("T", AnyAttr())
    cond = operand_def()
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())

    def __init__(self, cond: SSAValue, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[cond, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        if self.cond.type not in (i1, truth_type(self.lhs.type)):
            raise VerifyException(f"the condition of type {self.cond.type} does not fit {self.lhs.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list([self.cond, self.lhs, self.rhs], printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if self.cond.type != i1:
            printer.print_attribute(self.cond.type)
            printer.print_string(", ")
        printer.print_attribute(self.lhs.type)

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        place = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        if len(names) != 3:
            parser.raise_error("arith.select takes a condition and two values", place)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        condition: Attribute = i1
        if parser.parse_optional_punctuation(","):
            condition, type = type, parser.parse_type()
        types = (condition, type, type)
        op = cls(*(parser.resolve_operand(n, t) for n, t in zip(names, types, strict=True)))
        op.attributes |= attributes
        return op


_OURS = {op.name: op for op in (CmpiOp, CmpfOp, SelectOp)}
ARITH = Dialect("arith", [_OURS.get(op.name, op) for op in arith.Arith.operations], list(arith.Arith.attributes))
