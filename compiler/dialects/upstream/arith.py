"""arith: MLIR compares and selects scalars, vectors and tensors; xDSL's comparisons, select and casts take scalars.

xDSL has no remainder of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, TensorType, UnitAttr, VectorType, i1, i64
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.casts import CASTS
from compiler.dialects.upstream.formats import table_op

CMPI = tuple(arith.CMPI_COMPARISON_OPERATIONS)
CMPF = tuple(arith.CMPF_COMPARISON_OPERATIONS)
"""The predicates of comparisons, in the order of their numbers."""


def truth_type(type: Attribute) -> Attribute:
    """The result type of a comparison of values of a type: i1, or a vector or tensor of i1 of the same shape."""
    return type.__class__(i1, type.get_shape()) if isinstance(type, VectorType | TensorType) else i1


class _Comparison(IRDLOperation, HasFolderInterface):
    """The base of cmpi and cmpf: two operands of one type, a predicate, and one truth value a lane. PREDICATES: the
    words of the predicate, by number."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    PREDICATES: ClassVar[Sequence[str]]

    predicate = prop_def(IntegerAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, predicate: str | int) -> None:
        number = predicate if isinstance(predicate, int) else self.PREDICATES.index(predicate)
        super().__init__(
            operands=[lhs, rhs],
            result_types=[truth_type(SSAValue.get(lhs).type)],
            properties={"predicate": IntegerAttr(number, i64)},
        )

    @property
    def predicate_name(self) -> str:
        """The name of the predicate, such as `olt`."""
        return self.PREDICATES[self.predicate.value.data]

    def verify_(self) -> None:
        if self.result.type != truth_type(self.lhs.type):
            raise VerifyException(f"the result must be {truth_type(self.lhs.type)}, not {self.result.type}")
        if not 0 <= self.predicate.value.data < len(self.PREDICATES):
            raise VerifyException(f"unknown predicate {self.predicate.value.data}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.predicate_name}, ")
        printer.print_list([self.lhs, self.rhs], printer.print_ssa_value)
        flags = self.properties.get("fastmath")
        if isinstance(flags, arith.FastMathFlagsAttr) and flags.data:
            printer.print_string(" fastmath")
            flags.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)

    @classmethod
    def parse(cls, parser: Parser) -> _Comparison:
        position = parser.pos
        predicate = parser.parse_identifier()
        if predicate not in cls.PREDICATES:
            parser.raise_error(f"unknown predicate '{predicate}'", position)
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        flags = parser.parse_optional_keyword("fastmath") and arith.FastMathFlagsAttr.parse_parameter(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        op = cls(parser.resolve_operand(lhs, type), parser.resolve_operand(rhs, type), predicate)
        op.attributes |= attributes
        if flags:
            op.properties["fastmath"] = arith.FastMathFlagsAttr(flags)
        return op


@irdl_op_definition
class CmpiOp(_Comparison):
    """Compare integers, index values, or vectors of them: `%c = arith.cmpi slt, %a, %b : vector<8xi32>`."""

    name = "arith.cmpi"
    PREDICATES: ClassVar = CMPI

    def fold(self) -> tuple[SSAValue | Attribute] | None:
        """The truth of comparing a scalar with itself; None for other operands."""
        if self.lhs is not self.rhs or self.result.type != i1:
            return None
        return (BoolAttr.from_bool(self.predicate_name in ("eq", "sle", "sge", "ule", "uge")),)


@irdl_op_definition
class CmpfOp(_Comparison):
    """Compare floats or vectors of them: `%c = arith.cmpf olt, %a, %b : vector<8xf32>`."""

    name = "arith.cmpf"
    PREDICATES: ClassVar = CMPF
    fastmath = opt_prop_def(arith.FastMathFlagsAttr)

    def fold(self) -> tuple[SSAValue | Attribute] | None:
        """The truth of a scalar comparison by the predicate `false` or `true`; None for other predicates."""
        if self.predicate_name not in ("false", "true") or self.result.type != i1:
            return None
        return (BoolAttr.from_bool(self.predicate_name == "true"),)


@irdl_op_definition
class SelectOp(IRDLOperation, HasFolderInterface):
    """Select %a if %c is true, else %b, as a whole or by lane: `arith.select %c, %a, %b : vector<8xi1>,
    vector<8xf32>`."""

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

    def fold(self) -> tuple[SSAValue | Attribute] | None:
        """The operand that is selected: by a constant condition, of two equal ones, or the condition itself of true and
        false; None if it is not known."""
        values = [ConstantLike.get_constant_value(value) for value in self.operands]
        if isinstance(values[0], IntegerAttr):
            return (self.lhs if values[0].value.data else self.rhs,)
        if self.lhs is self.rhs:
            return (self.lhs,)
        is_truth = values[1:] == [BoolAttr.from_bool(True), BoolAttr.from_bool(False)]
        return (self.cond,) if is_truth else None

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
        position = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        if len(names) != 3:
            parser.raise_error("arith.select takes a condition and two values", position)
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


@irdl_op_definition
class RemFOp(arith.FloatingPointLikeBinaryOperation):
    """The remainder of floats, exact and with the sign of the dividend: `%r = arith.remf %a, %b : f32`."""

    name = "arith.remf"
    traits = traits_def(Pure())


_SCALING = "$in `,` $scale attr-dict `:` type($in) `,` type($scale) `to` type($out)"
_READ_ONLY = [
    table_op(
        "arith.index_castui",
        "$in attr-dict `:` type($in) `to` type($out)",
        operands="in",
        results="out",
        traits=(Pure(),),
    ),
    *(
        table_op(
            name, _SCALING, operands="in scale", properties="fastmath? roundingmode?", results="out", traits=(Pure(),)
        )
        for name in ("arith.scaling_extf", "arith.scaling_truncf")
    ),
]
"""Ops that are read and printed, not lowered."""


def _with_exact(op: type[arith.SignlessIntegerBinaryOperation]) -> None:
    """Let an op be parsed with the flag `exact` behind its operands, which becomes the attribute isExact."""

    def parse(cls: type[arith.SignlessIntegerBinaryOperation], parser: Parser) -> Operation:
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        exact = {"isExact": UnitAttr()} if parser.parse_optional_keyword("exact") is not None else {}
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        operands = [parser.resolve_operand(name, type) for name in (lhs, rhs)]
        return cls.create(operands=operands, result_types=[type], attributes=exact | attributes)

    setattr(op, "parse", classmethod(parse))  # noqa: B010


for _op in (arith.DivUIOp, arith.DivSIOp, arith.ShRUIOp, arith.ShRSIOp):
    _with_exact(_op)


arith.RemUIOp.traits.add_trait(NoMemoryEffect())

_OURS: dict[str, type[Operation]] = {op.name: op for op in (CmpiOp, CmpfOp, SelectOp, *CASTS)}


def kind_of(op: Operation) -> type[Operation]:
    """The class of an op; for an op of an xDSL class that this module replaces, the replacement."""
    return _OURS.get(op.name, type(op))


ARITH = Dialect(
    "arith",
    [*(_OURS.get(op.name, op) for op in arith.Arith.operations), RemFOp, *_READ_ONLY],
    list(arith.Arith.attributes),
    [arith.ArithConstantMaterializationInterface()],
)
