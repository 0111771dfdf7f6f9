"""xDSL's parser, extended: ops have locations, dense attributes keep the bits of floats, resources are freed with the
text."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property
from math import prod
from typing import Any, NoReturn, TypeVar

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FileLineColLoc,
    Float32Type,
    IndexType,
    IntAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnknownLoc,
    i1,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap, AffineSet
from xdsl.parser import UnresolvedOperand
from xdsl.parser.attribute_parser import AttrParser
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind, StringLiteral

from compiler.affine.text import SemiAffineParser
from compiler.dialects.dominance import last_sentence
from compiler.dialects.foreign_errors import is_foreign, said
from compiler.dialects.locations import LocationParser
from compiler.dialects.sizes import SIZES, SizesAttr
from compiler.support import plugins, spans
from compiler.types.dtypes import FLOATS
from compiler.types.elements import element_bits

AttributeT = TypeVar("AttributeT", bound=Attribute)
_T = TypeVar("_T")
HOLDERS = {
    "te.constant": "value",
    "loop.constant": "value",
    "memref.global": "initial_value",
    "func.func": "constant_values",
    "arith.constant": "value",
}
"""Map each op whose constants become DenseAttr to the name of their attribute; other ops keep upstream's constants, and
so does arith.constant if its text has the elements."""

EXPECTED = {
    "in block definition": "an op, the label of a block or '}' is expected",
    "Could not parse entire input!": "an op is expected",
}
"""Replacements for messages of upstream that do not say what is expected."""
_CODES = {16: ("<H", "<e"), 32: ("<I", "<f"), 64: ("<Q", "<d")}
"""The codes of `struct` for an integer and a float, by width in bits."""


_PACKED = re.compile(r'<\s*"0[xX]((?:[0-9a-fA-F]{2})*)"\s*>\s*:\s*')
"""A dense attribute's elements as bytes."""


_SPLAT = re.compile(r"<\s*-?[\w.+-]+\s*>")
"""A dense attribute's only element, a number."""


class _Element(AttrParser._TensorLiteralElement):
    """One element of a dense attribute while it is parsed, with hexadecimal floats."""

    def to_type(self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType) -> object:
        """Convert the element to a number of a type, a float from its bits if hexadecimal. Raises ParseError for more
        bits than the type has."""
        if not isinstance(type, FLOATS) or not isinstance(self.value, int) or self.span.text[:2].lower() != "0x":
            return super().to_type(parser, type)
        if self.value >= 1 << element_bits(type):
            parser.raise_error(f"{self.span.text} has more bits than {type}", at_position=self.span)
        return float_of(self.value, type)


def _is_resource(op: Operation) -> bool:
    return isinstance(op.properties.get(HOLDERS[op.name]), DenseResourceAttr)


class Parser(LocationParser):
    """Parser of modules at any level. An op without a stated location gets its position in the text."""

    _TensorLiteralElement = _Element

    def __init__(self, ctx: Context, input: str, name: str = "<unknown>") -> None:
        super().__init__(ctx, input, name)
        self._source = Input(input, name)
        self._file = StringAttr(name)
        self._latest = 0
        self._blobs: dict[str, str] = {}
        self._named: dict[Operation, int] = {}
        self._early: dict[str, Span[str]] = {}
        self.sizes: SizesAttr | None = None

    def parse_operation(self) -> Operation:
        """Parse an op, and record its position; its constants are converted at the end."""
        start = self._latest = self.pos
        op = super().parse_operation()
        if isinstance(op, FuncOp):
            self.sizes = None
        if isinstance(op.location, UnknownLoc):
            op.location = self._location(start)
        if op.name in HOLDERS and (op.name != "arith.constant" or _is_resource(op)):
            self._named[op] = start
        return op

    def parse_optional_attr_dict_with_keyword(self, reserved_attr_names: Iterable[str] = ()) -> DictionaryAttr | None:
        """Parse `attributes {...}`; None for other text. The sizes that a function declares so are those of its ops."""
        parsed = super().parse_optional_attr_dict_with_keyword(reserved_attr_names)
        declared = None if parsed is None else parsed.data.get(SIZES)
        if isinstance(declared, SizesAttr):
            self.sizes = declared
        return parsed

    def raise_error(
        self, msg: str, at_position: Span[str] | int | None = None, end_position: int | None = None
    ) -> NoReturn:
        """Raise ParseError, with a message of EXPECTED instead of one of upstream's. A position is a span or an offset
        in the text, by default the current token; `end_position` is the offset of its end, without effect for a span.
        """
        if msg.strip() in EXPECTED:
            end = len(self._source.content.rstrip())
            ends = self._current_token.span.start >= end
            at_position = Span(end, end, self._source) if ends else self._current_token.span
            msg = EXPECTED[msg.strip()] + (", and the text ends" if ends else "")
        elif isinstance(at_position, int):
            at_position = Span(at_position, end_position or at_position, self._source)
        super().raise_error(msg, at_position)

    def parse_optional_str_literal(self) -> str | None:
        """Parse an optional string; escaped bytes are text if they are valid UTF-8. None for anything else."""
        if self._current_token.kind is not MLIRTokenKind.BYTES_LIT:
            return super().parse_optional_str_literal()
        try:
            text = StringLiteral.from_span(self._current_token.span).bytes_contents.decode()
        except UnicodeDecodeError:
            return None
        self._consume_token()
        return text

    def parse_dense_int_or_fp_elements_attr(self, type: Any | None) -> DenseIntOrFPElementsAttr:
        """Parse the elements of a dense attribute; of the tensor type `type`, or for None of that in the text; eight of
        type i1 are a byte of a hexadecimal string."""
        start, packed = self.pos, _PACKED.match(self._source.content, self.pos)
        if type is None and packed is not None:
            self._resume_from(packed.end())
            shaped = self._parse_dense_literal_type()
            if shaped.element_type == i1:
                return self._truths(bytes.fromhex(packed[1]), shaped, start)
            self._resume_from(start)
        return self._splat(type) or super().parse_dense_int_or_fp_elements_attr(type)

    def _splat(self, type: Any | None) -> DenseIntOrFPElementsAttr | None:
        """Parse `<1.0> : tensor<4xf32>`, without a list of all elements as upstream; with `type` the text ends behind
        the element; None for another text."""
        start, match = self.pos, _SPLAT.match(self._source.content, self.pos)
        if match is None:
            return None
        end = match.end()
        if type is None:
            self._resume_from(end)
            self.parse_punctuation(":")
            type, end = self._parse_dense_literal_type(), self.pos
            self._resume_from(start)
        one = super().parse_dense_int_or_fp_elements_attr(TensorType(type.element_type, [1]))
        self._resume_from(end)
        return DenseIntOrFPElementsAttr(type, BytesAttr(one.data.data * prod(type.get_shape())))

    def parse_comma_separated_list(self, delimiter: Any, parse: Callable[[], _T], context_msg: str = "") -> list[_T]:
        """Parse a list; one of types in parentheses may be a single type without them, as behind `->` in scf.if."""
        single = delimiter is self.Delimiter.PAREN and parse in (self.parse_type, self.parse_attribute)
        if single and self._current_token.kind is not MLIRTokenKind.L_PAREN:
            return [parse()]
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def parse_dimension_list(self) -> list[int]:
        """Parse sizes with 'x' between them, also with spaces around it; an 'x' behind the last is left."""
        sizes: list[int] = []
        while self._current_token.kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.QUESTION):
            sizes.append(self.parse_shape_dimension())
            start = self.pos
            if self._parse_optional_shape_delimiter() is None:
                return sizes
        if sizes:
            self._resume_from(start)
        return sizes

    def parse_affine_map(self) -> AffineMap:
        """Parse an affine map, which may be semi-affine."""
        return SemiAffineParser(self._parser_state).parse_affine_map()

    def parse_affine_set(self) -> AffineSet:
        """Parse an integer set, which may be semi-affine."""
        return SemiAffineParser(self._parser_state).parse_affine_set()

    def parse_affine_map_of_ssa_ids(self) -> Any:
        """Parse the indices of a buffer, `[%i + 1, %n * 2]`."""
        map, spans = SemiAffineParser(self._parser_state).parse_affine_map_of_ssa_ids()
        return map, [self.resolve_operand(UnresolvedOperand(span, 0), IndexType()) for span in spans]

    def _truths(self, packed: bytes, type: Any, start: int) -> DenseIntOrFPElementsAttr:
        count = prod(type.get_shape())
        if len(packed) == 1 and packed[0] in (0, 255):
            packed *= (count + 7) // 8
        if len(packed) != (count + 7) // 8:
            self.raise_error(f"{count} elements of type i1 are {(count + 7) // 8} bytes, not {len(packed)}", start)
        return DenseIntOrFPElementsAttr.from_list(type, [packed[n // 8] >> n % 8 & 1 for n in range(count)])

    def _location(self, start: int) -> FileLineColLoc:
        line = bisect_right(self._lines, start)
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(start - self._lines[line - 1] + 1))

    @cached_property
    def _lines(self) -> list[int]:
        """The offsets in the text at which lines begin."""
        return [0, *(newline.end() for newline in re.finditer("\n", self._source.content))]

    def _get_op_by_name(self, name: str) -> type[Operation]:
        """Return the class of the op whose name was just parsed. Raises ParseError at an unknown name."""
        try:
            return super()._get_op_by_name(name)
        except ParseError as error:
            end = self._source.content.rindex(name, 0, self.pos) + len(name)
            quoted = self._source.content[end - len(name) - 1 : end] == f'"{name}'
            raise ParseError(Span(end - len(name) - quoted, end + quoted, self._source), error.msg) from error

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeT) -> SSAValue[AttributeT]:
        """Resolve an operand, and record the position of a use before the definition."""
        if operand.operand_name not in self.ssa_values:
            self._early.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def _parse_dialect_resource_handle(self, dialect_name: str, interface: OpAsmDialectInterface) -> str:
        quoted = self.parse_optional_str_literal()
        return self.parse_identifier(" for resource handle") if quoted is None else quoted

    def _parse_resource(self, dialect_name: str, interface: OpAsmDialectInterface) -> None:
        handle, start = self._parse_dialect_resource_handle(dialect_name, interface), self.pos
        self.parse_punctuation(":")
        if handle in self._blobs:
            self.raise_error(f"the resource '{handle}' is given twice", start)
        self._blobs[handle] = self.parse_str_literal()

    def _parse_external_resources(self) -> None:
        """Skip resources of tools, `{tool: {key: value, ...}}`, which do not change the meaning of the text."""
        self.parse_comma_separated_list(self.Delimiter.BRACES, self._skip_resources)

    def _skip_resources(self) -> None:
        self.parse_identifier(" of a tool")
        self.parse_punctuation(":")
        self.parse_comma_separated_list(self.Delimiter.BRACES, self._skip_resource)

    def _skip_resource(self) -> None:
        self.parse_identifier(" of a resource")
        self.parse_punctuation(":")
        if self.parse_optional_str_literal() is None:
            self.parse_attribute()

    def _settle(self, op: Operation, start: int) -> None:
        """Convert the constants of an op, after resources were parsed. Raises ParseError for invalid resources."""
        for attributes in (op.properties, op.attributes):
            value = attributes.get(HOLDERS[op.name])
            try:
                if value is not None:
                    attributes[HOLDERS[op.name]] = self._settled(value, op.name == "arith.constant")
            except VerifyException as error:
                self.raise_error(str(error), start, start + len(op.name))

    def _settled(self, value: Attribute, upstream_kind: bool = False) -> Attribute:
        """Return a constant converted to a DenseAttr; a resource, with `upstream_kind`, to upstream's dense attribute.
        Other attributes are returned unchanged."""
        from compiler.dialects.dense import (  # loads numpy, which few files need
            from_resource,
            from_upstream,
            to_upstream,
        )

        match value:
            case ArrayAttr():
                return ArrayAttr(map(self._settled, value.data))
            case DenseIntOrFPElementsAttr():
                return from_upstream(value)
            case DenseResourceAttr():
                handle = value.resource_handle.data
                dense = from_resource(handle, value.type, self._blobs.get(handle))
                return to_upstream(dense) if upstream_kind else dense
        return value

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parse the whole text; with `allow_implicit_module` it may be ops without a module around them. Raises
        ParseError, also for other exceptions of xDSL's parser and for deep nesting. Raises PluginError if the parser of
        a plugin's op crashes."""
        try:
            module = super().parse_module(allow_implicit_module)
            for op, start in self._named.items():
                self._settle(op, start)
            return module
        except ParseError as error:
            missing = next(iter(self.forward_ssa_references), None)
            if missing in self._early and "used but not defined" in error.msg:
                raise ParseError(self._early[missing], f"%{missing} is used but not defined") from error
            raise
        except DiagnosticException as error:  # of the op that was begun last, which its class does not take
            span = Span(self._latest, self._latest + 1, self._source)
            raise ParseError(span, last_sentence(str(error))) from error
        except RecursionError as error:
            raise ParseError(self._current_token.span, "the program is nested too deeply") from error
        except Exception as error:
            plugin = plugins.owner(*self._parser_state.dialect_stack[-1:])
            if plugin is not None:
                span = Span(self._latest, self._latest + 1, self._source)
                raise plugin.failed(error).within(spans.of_parse_error(ParseError(span, ""))) from error
            if is_foreign(error):
                raise ParseError(self._current_token.span, f"this cannot be read: {said(error)}") from error
            raise


def float_of(bits: int, type: Attribute) -> float:
    """Decode the bits of a float of bf16 or of a type of 16, 32 or 64 bits; upstream prints infinities in this form."""
    if isinstance(type, BFloat16Type):
        bits, type = bits << 16, Float32Type()
    integer, code = _CODES[element_bits(type)]
    return float(struct.unpack(code, struct.pack(integer, bits))[0])
