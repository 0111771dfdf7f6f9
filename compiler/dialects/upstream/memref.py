"""memref: MLIR has memref.prefetch, and a syntax for memref.global and memref.copy; xDSL has not. That of memref.copy
is parsed; the generic syntax is printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseResourceAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Dialect, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, MemoryReadEffect, MemoryWriteEffect, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.dense import DenseAttr
from compiler.dialects.upstream.formats import table_op, with_syntax


def check_indices(buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
    """Raise VerifyException unless a buffer has one index a dimension."""
    assert isinstance(buffer.type, MemRefType)
    rank = buffer.type.get_num_dims()
    if len(indices) != rank:
        raise VerifyException(f"{buffer.type} takes {rank} indices, not {len(indices)}")


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Prefetch the cache line of an element, to read or write it, with a locality from 0 (used once) to 3 (reused)."""

    name = "memref.prefetch"
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    isWrite = prop_def(BoolAttr)
    localityHint = prop_def(IntegerAttr)
    isDataCache = prop_def(BoolAttr)
    # Written too, as in MLIR: an op that only reads and has no result would be dead.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, buffer: SSAValue, indices: Sequence[SSAValue], write: bool, locality: int) -> None:
        super().__init__(operands=[buffer, indices], properties=self.stated(write, locality))

    @staticmethod
    def stated(write: bool, locality: int) -> dict[str, Attribute]:
        """The properties of a prefetch into the data caches; `write`: to write the element, not to read it. `locality`
        is from 0 to 3, which verification checks."""
        return {
            "isWrite": BoolAttr.from_bool(write),
            "localityHint": IntegerAttr(locality, i32),
            "isDataCache": BoolAttr.from_bool(True),
        }

    def verify_(self) -> None:
        if not 0 <= self.localityHint.value.data <= 3:
            raise VerifyException("the locality is a number from 0 to 3")
        check_indices(self.memref, self.indices)

    def print(self, printer: Printer) -> None:
        way = "write" if self.isWrite.value.data else "read"
        cache = "data" if self.isDataCache.value.data else "instr"
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        printer.print_string(f", {way}, locality<{self.localityHint.value.data}>, {cache}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        buffer = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        parser.parse_punctuation(",")
        way = parser.expect(lambda: _keyword(parser, "read", "write"), "'read' or 'write' expected")
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        with parser.in_angle_brackets():
            locality = parser.parse_integer()
        parser.parse_punctuation(",")
        cache = parser.expect(lambda: _keyword(parser, "data", "instr"), "'data' or 'instr' expected")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        operands = [parser.resolve_operand(buffer, type), *(parser.resolve_operand(i, IndexType()) for i in indices)]
        op = cls(operands[0], operands[1:], way == "write", locality)
        op.properties["isDataCache"] = BoolAttr.from_bool(cache == "data")
        op.attributes.update(attributes)
        return op


@irdl_op_definition
class GlobalOp(IRDLOperation):
    """A buffer of a module that functions access by its name (memref.get_global), such as the elements of a constant.

    ```mlir
    memref.global "private" constant @W : memref<2xf32> = dense<[1.0, -1.0]>
    func.func @f() {
      %0 = memref.get_global @W : memref<2xf32>
      func.return
    }
    ```
    """

    name = "memref.global"

    sym_name = prop_def(SymbolNameConstraint())
    sym_visibility = opt_prop_def(StringAttr)
    type = prop_def(MemRefType)
    initial_value = opt_prop_def(BaseAttr(DenseAttr) | BaseAttr(UnitAttr))
    constant = opt_prop_def(UnitAttr)
    alignment = opt_prop_def(IntegerAttr)

    traits = traits_def(SymbolOpInterface())

    @classmethod
    def private_constant(cls, name: str, value: DenseAttr) -> GlobalOp:
        """Build a constant global of private visibility with the elements `value`."""
        properties = {
            "sym_name": StringAttr(name),
            "sym_visibility": StringAttr("private"),
            "type": MemRefType(value.type.element_type, value.type.get_shape()),
            "initial_value": value,
            "constant": UnitAttr(),
        }
        return cls.create(properties=properties)

    def verify_(self) -> None:
        value = self.initial_value
        if not isinstance(value, DenseAttr):
            return
        if self.type != MemRefType(value.type.element_type, value.type.get_shape(), self.type.layout):
            raise VerifyException(f"the initial value of a {self.type} is no {value.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.sym_visibility is not None:
            printer.print_string_literal(self.sym_visibility.data)
            printer.print_string(" ")
        if self.constant is not None:
            printer.print_string("constant ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        if isinstance(self.initial_value, DenseAttr):
            printer.print_string(" = ")
            self.initial_value.print_without_type(printer)
        elif self.initial_value is not None:
            printer.print_string(" = uninitialized")
        aligned = {} if self.alignment is None else {"alignment": self.alignment}
        printer.print_op_attributes({**aligned, **self.attributes})

    @classmethod
    def parse(cls, parser: Parser) -> GlobalOp:
        visibility = parser.parse_optional_str_literal()
        constant = parser.parse_optional_keyword("constant")
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        if visibility is not None:
            properties["sym_visibility"] = StringAttr(visibility)
        if constant is not None:
            properties["constant"] = UnitAttr()
        parser.parse_punctuation(":")
        properties["type"] = type = parser.parse_type()
        if not isinstance(type, MemRefType):
            parser.raise_error(f"expected a memref type, got {type}")
        if parser.parse_optional_punctuation("=") is not None:
            properties["initial_value"] = _parse_value(parser, type)
        attributes = dict(parser.parse_optional_attr_dict())
        if "alignment" in attributes:
            properties["alignment"] = attributes.pop("alignment")
        return cls.create(properties=properties, attributes=attributes)


def _parse_value(parser: Parser, type: MemRefType) -> Attribute:
    """Parse the initial value of a global, whose text has no type: upstream's dense attribute, which `Parser` converts
    to DenseAttr later, or UnitAttr for `uninitialized`. Raises ParseError for other text."""
    if parser.parse_optional_keyword("uninitialized") is not None:
        return UnitAttr()
    tensor = TensorType(type.element_type, type.get_shape())
    said = "dense<...> or dense_resource<...> expected"
    kind = parser.expect(lambda: _keyword(parser, "dense", "dense_resource"), said)
    if kind == "dense":
        return parser.parse_dense_int_or_fp_elements_attr(cast(TensorType[IntegerType], tensor))
    with parser.in_angle_brackets():
        handle = parser.parse_identifier()
    return DenseResourceAttr.from_params(handle, tensor)


def _parse_copy(parser: Parser) -> memref.CopyOp:
    """Parse `%A, %B : memref<4xf32> to memref<4xf32>`, the text after the op's name."""
    source = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    destination = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    source_type = parser.parse_type()
    parser.parse_keyword("to")
    values = [parser.resolve_operand(source, source_type), parser.resolve_operand(destination, parser.parse_type())]
    return memref.CopyOp.create(operands=values, attributes=attributes)


def _keyword(parser: Parser, *words: str) -> str | None:
    return next((word for word in words if parser.parse_optional_keyword(word) is not None), None)


# Not a subclass: emission and passes look up handlers by the class of an op, which xDSL's passes also build.
memref.CopyOp.parse = _parse_copy  # type: ignore[method-assign]

with_syntax(memref.AllocaScopeOp, "(`->` `(` type($res)^ `)`)? $scope attr-dict")
_parse_terminated = memref.AllocaScopeOp.parse


def _parse_scope(parser: Parser) -> memref.AllocaScopeOp:
    """Parse a memref.alloca_scope, and add the memref.alloca_scope.return that the syntax omits."""
    op = _parse_terminated(parser)
    if not op.scope.blocks:
        op.scope.add_block(Block())
    last = op.scope.blocks[-1]
    if last.last_op is None or not last.last_op.has_trait(IsTerminator, value_if_unregistered=True):
        last.add_op(memref.AllocaScopeReturnOp.create())
    return op


memref.AllocaScopeOp.parse = _parse_scope  # type: ignore[method-assign]
with_syntax(memref.AllocaScopeReturnOp, "attr-dict ($ops^ `:` type($ops))?")
with_syntax(memref.CastOp, "$source attr-dict `:` type($source) `to` type($dest)")
with_syntax(memref.MemorySpaceCastOp, "$source attr-dict `:` type($source) `to` type($dest)")
with_syntax(memref.ExtractAlignedPointerAsIndexOp, "$source attr-dict `:` type($source) `->` type($aligned_pointer)")
with_syntax(
    memref.AtomicRMWOp,
    "custom<AtomicKind>($kind) $value `,` $memref `[` $indices `]` attr-dict `:` "
    "`(` type($value) `,` type($memref) `)` `->` type($result)",
)
_READ_ONLY = [
    table_op(
        "memref.rank", "$memref attr-dict `:` type($memref)", operands="memref", results="rank:index", traits=(Pure(),)
    ),
    table_op(
        "memref.realloc",
        "$source (`(` $dynamicResultSize^ `)`)? attr-dict `:` type($source) `to` type($result)",
        operands="source dynamicResultSize?:index",
        properties="alignment?",
        results="result",
    ),
    table_op(
        "memref.reshape",
        "$source `(` $shape `)` attr-dict `:` functional-type(operands, results)",
        operands="source shape",
        results="result",
    ),
    table_op(
        "memref.transpose",
        "$in custom<MapText>($permutation) attr-dict `:` type($in) `to` type($result)",
        operands="in",
        properties="permutation",
        results="result",
        traits=(Pure(),),
    ),
    table_op(
        "memref.generic_atomic_rmw",
        "$memref `[` $indices `]` `:` type($memref) $atomic_body attr-dict",
        operands="memref:memref[T] indices*:index",
        results="result:T",
        regions="atomic_body",
    ),
    table_op(
        "memref.atomic_yield",
        "$result attr-dict `:` type($result)",
        (IsTerminator(),),
        operands="result",
    ),
]
"""Ops that are read and printed, not lowered."""

_OPERATIONS = [op for op in memref.MemRef.operations if op not in (memref.GlobalOp, memref.RankOp)]

MEMREF = Dialect(memref.MemRef.name, [*_OPERATIONS, GlobalOp, PrefetchOp, *_READ_ONLY], list(memref.MemRef.attributes))
