"""Ops by a line of a table: their fields and their syntax, in the words of MLIR's declarative assembly format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList
from xdsl.dialects.utils.dynamic_index_list import parse_dynamic_index_list_without_types, print_dynamic_index_list
from xdsl.dialects.vector import CombiningKindAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AnyAttr,
    AttrConstraint,
    AttrSizedOperandSegments,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_region_def,
    opt_result_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    FormatProgram,
    ParsingState,
    PrintingState,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import OpTrait

_KINDS: dict[str, Attribute | type[Attribute] | AttrConstraint] = {
    "index": EqAttrConstraint(IndexType()),
    "i1": EqAttrConstraint(i1),
    "i32": EqAttrConstraint(i32),
    "int": BaseAttr(IntegerType),
    "array": DenseArrayBase.constr(i64),
    "unit": UnitAttr,
    "i64": IntegerAttr.constr(i64),
    "kind": CombiningKindAttr,
}
"""The constraints that a field can have; another word is a variable: fields of one variable have one type."""

_ELEMENTS: dict[str, Any] = {"memref": MemRefType, "vector": VectorType, "tensor": TensorType}
"""The types whose elements can be a variable, written `vector[T]`."""

_FIELDS: dict[str, dict[str, Any]] = {
    "operands": {"": operand_def, "?": opt_operand_def, "*": var_operand_def},
    "results": {"": result_def, "?": opt_result_def, "*": var_result_def},
    "properties": {"": prop_def, "?": opt_prop_def},
    "regions": {"": region_def, "?": opt_region_def},
}
"""The definitions of fields, by how often they occur."""


def table_op(name: str, syntax: str = "", traits: Sequence[OpTrait] = (), **fields: str) -> Any:
    """Define an op by its fields, its traits and its syntax in MLIR's declarative assembly format, the generic one if
    it is empty; return its class.

    fields: `operands`, `results`, `properties` and `regions`, each names with `?` if optional and `*` if repeated, and
        `:kind`, such as `"vector:T indices*:index"`; a kind is a word of _KINDS, another word as a type variable, or
        `memref[...]`, `vector[...]` or `tensor[...]` of either; any type without it; ignored for regions
    """
    members: dict[str, Any] = {"name": name, "traits": traits_def(*traits)}
    for sort, texts in fields.items():
        for text in texts.split():
            word, _, kind = text.partition(":")
            field, times = word.rstrip("?*"), word[len(word.rstrip("?*")) :]
            define = _FIELDS[sort][times]
            members[field] = define() if sort == "regions" else define(_constraint(kind))
    repeated = [text for text in fields.get("operands", "").split() if "*" in text or "?" in text]
    sized = [AttrSizedOperandSegments(as_property=True)] if len(repeated) > 1 else []
    members["irdl_options"] = (ParsePropInAttrDict(), *sized)
    if syntax:
        members["assembly_format"] = syntax
        members["custom_directives"] = DIRECTIVES
    title = "".join(word.capitalize() for word in name.replace(".", "_").split("_"))
    return irdl_op_definition(type(f"{title}Op", (IRDLOperation,), members))


def _constraint(kind: str) -> Any:
    if not kind:
        return AnyAttr()
    outer, _, element = kind.partition("[")
    if element:
        return _ELEMENTS[outer].constr(_constraint(element.rstrip("]")))
    return _KINDS.get(kind) or VarConstraint(kind, AnyAttr())


@irdl_custom_directive
class BasisList(CustomDirective):
    """A list in parentheses of numbers and index values, such as the basis `(4, %n)`."""

    dynamic: VariadicOperandVariable
    static: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        values, numbers = parse_dynamic_index_list_without_types(
            parser, DYNAMIC_INDEX, delimiter=Parser.Delimiter.PAREN
        )
        self.dynamic.set(state, values)
        self.static.set(state, DenseArrayBase.from_list(i64, numbers))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        numbers: Any = self.static.get(op)
        print_dynamic_index_list(
            printer, DYNAMIC_INDEX, self.dynamic.get(op), numbers.get_values(), delimiter=Parser.Delimiter.PAREN
        )


@irdl_custom_directive
class MapText(CustomDirective):
    """An affine map without `affine_map<>`, such as the permutation `(i, j) -> (j, i)`."""

    map: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.map.set(state, AffineMapAttr(parser.parse_affine_map()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        map: Any = self.map.get(op)
        printer.print_string(str(map.data))


@irdl_custom_directive
class AtomicKind(CustomDirective):
    """The word of an atomic update, such as `addf`."""

    WORDS: ClassVar = (
        "addf",
        "addi",
        "assign",
        "maximumf",
        "maxs",
        "maxu",
        "minimumf",
        "mins",
        "minu",
        "mulf",
        "muli",
        "ori",
        "andi",
        "maxnumf",
        "minnumf",
        "xori",
    )
    kind: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        start, word = parser.pos, parser.parse_identifier()
        if word not in self.WORDS:
            parser.raise_error(f"an update is one of {', '.join(self.WORDS)}, not '{word}'", start)
        self.kind.set(state, IntegerAttr(self.WORDS.index(word), i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        kind: Any = self.kind.get(op)
        printer.print_string(self.WORDS[kind.value.data])


DIRECTIVES = (DynamicIndexList, BasisList, MapText, AtomicKind)


def with_syntax(op: Any, syntax: str) -> type[Operation]:
    """Replace the generic syntax of an op of xDSL by `syntax`, in MLIR's declarative assembly format, and return the
    op's class. Not a subclass: emission and passes look up handlers by the class of an op, which xDSL's passes also
    build."""
    definition = op.get_irdl_definition()
    definition.custom_directives = {directive.__name__: directive for directive in DIRECTIVES}
    program = FormatProgram.from_str(syntax, definition)

    def parse(cls: Any, parser: Parser) -> Any:
        return program.parse(parser, cls)

    def print_(self: Any, printer: Printer) -> None:
        program.print(printer, self)

    op.parse = classmethod(parse)
    op.print = print_
    return op  # type: ignore[no-any-return]
