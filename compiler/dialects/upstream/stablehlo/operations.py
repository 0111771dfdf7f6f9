"""The classes of the ops, made of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.stablehlo import structured
from compiler.dialects.upstream.stablehlo.syntax import finished, parse_plain
from compiler.dialects.upstream.stablehlo.table import CHLO, FORMLESS, OF_TWO, ROWS, SyntaxRow


class StableHloOp(IRDLOperation):
    """The base of the ops of StableHLO and CHLO, with operands, results, regions and properties of any kind. Their
    types are not verified here: the conversion to te computes each."""

    arguments = var_operand_def()
    res = var_result_def()
    bodies = var_region_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        syntax = _SYNTAX.get(cls.name)
        if syntax is not None:
            return syntax(parser, cls)  # type: ignore[return-value]
        position = parser.pos
        parsed = parse_plain(parser, row_named(cls.name), cls.name)
        return cls.create(
            operands=parsed.values(parser, position),
            result_types=parsed.outputs,
            properties=finished(parsed.properties),
            attributes=parsed.attributes,
        )

    def verify_(self) -> None:
        expected = row_named(self.name).operands
        if expected is not None and len(self.operands) != expected:
            raise VerifyException(f"{self.name} has {expected} operands, not {len(self.operands)}")
        for value in (*self.operands, *self.results):
            if not isinstance(value.type, TensorType):
                raise VerifyException(f"a value is of type {value.type}, and not a tensor of elements that te has")


class FormlessHloOp(IRDLOperation):
    """The base of the ops that the parser refuses with a sentence, since te has no form of them."""

    arguments = var_operand_def()
    res = var_result_def()
    bodies = var_region_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        parser.raise_error(_reason(cls.name))

    def verify_(self) -> None:
        raise VerifyException(_reason(self.name))


def _reason(name: str) -> str:
    return f"{name} is not read: {FORMLESS[name.partition('.')[2]]}"


_SYNTAX: dict[str, Callable[[Parser, type[Operation]], Operation]] = {
    "stablehlo.composite": structured.parse_composite,
    "stablehlo.constant": structured.parse_constant,
    "stablehlo.convolution": structured.parse_convolution,
    "stablehlo.custom_call": structured.parse_custom_call,
    "stablehlo.reduce": structured.parse_reduce,
    "stablehlo.while": structured.parse_while,
    "chlo.top_k": structured.parse_top_k,
}
"""Map the ops with a syntax of their own to its parser."""


def _class_name(name: str) -> str:
    dialect, _, title = name.partition(".")
    words = "".join(part.title() for part in title.split("_"))
    return f"{'Chlo' if dialect == 'chlo' else 'StableHlo'}{words}Op"


def row_named(name: str) -> SyntaxRow:
    """Return the row of the syntax table for an op that te has a form of. For CHLO, which the table lacks, it is a row
    with the operands, and k of top_k. Raises KeyError for another op of StableHLO."""
    dialect, _, title = name.partition(".")
    if dialect == "stablehlo":
        return ROWS[title]
    return SyntaxRow(more=("k",) if title == "top_k" else (), operands=2 if title in OF_TWO else 1)


def _read(name: str) -> type[Operation]:
    """Define the class of an op that te has a form of. Its property called `name` is the member `title`, since `name`
    is the op's."""
    members: dict[str, object] = {
        "title" if prop == "name" else prop: opt_prop_def(AnyAttr(), prop_name=prop)
        for prop in row_named(name).properties
    }
    if name == "stablehlo.return":
        members["traits"] = traits_def(IsTerminator())
    members |= {"name": name, "__module__": __name__}
    return irdl_op_definition(type(_class_name(name), (StableHloOp,), members))


def _formless(name: str) -> type[Operation]:
    members = {"name": name, "__module__": __name__}
    return irdl_op_definition(type(_class_name(name), (FormlessHloOp,), members))


OPERATIONS = [
    *(_read(f"stablehlo.{name}") for name in ROWS),
    *(_formless(f"stablehlo.{name}") for name in FORMLESS),
]
"""The ops of StableHLO."""
CHLO_OPERATIONS = [_read(f"chlo.{name}") for name in CHLO]
"""The ops of CHLO."""
