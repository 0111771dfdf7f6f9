"""`DenseAttr`: the elements of a tensor constant as an attribute.

Few elements, or equal ones, print as upstream's `dense<...>`; others as `dense_resource<NAME_DIGEST>`, whose bytes
are once in the trailer of the module's text, as upstream writes it. Text preserves every bit of every element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Attribute, BuiltinAttribute, Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.dense_elements import DIGITS, Dense, Lost, literal
from compiler.types.elements import element_bytes

_HEX = re.compile(r"0x([0-9A-Fa-f]{2})*+")


@irdl_attr_definition
class DenseAttr(Data[Dense], BuiltinAttribute):
    """The elements of a tensor constant, in upstream's syntax."""

    name = "strata.dense"

    @property
    def type(self) -> TensorType:
        """The tensor's type."""
        return self.data.type

    def verify(self) -> None:
        """Raise VerifyException unless the shape is static, the element type a dtype and the number of bytes right."""
        dense = self.data
        if dense.row is None or any(size < 1 for size in dense.shape):
            raise VerifyException(f"a constant has a shape of positive extents, not {dense.type}")
        expected = bytes_of(dense.type)
        if len(dense.data) != expected and not isinstance(dense, Lost):
            raise VerifyException(f"a constant of type {dense.type} has {expected} bytes, not {len(dense.data)}")

    def print_builtin(self, printer: Printer) -> None:
        """Print the elements, then the type."""
        self.print_without_type(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.type)

    def print_without_type(self, printer: Printer) -> None:
        """Print the elements or the name of their bytes."""
        dense = self.data
        printer.print_string(f"dense<{literal(dense)}>" if dense.is_inline else f"dense_resource<{dense.handle}>")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Dense:
        """Raise ParseError: text has upstream's attributes, which `Parser` converts."""
        parser.raise_error("a constant is dense<...> or dense_resource<...>")

    def print_parameter(self, printer: Printer) -> None:
        """Print the elements, then the type; xDSL calls `print_builtin` instead."""
        self.print_builtin(printer)


def bytes_of(type: TensorType) -> int:
    """The number of bytes of a tensor's elements."""
    return prod(type.get_shape()) * element_bytes(type.element_type)


def from_upstream(attribute: DenseIntOrFPElementsAttr) -> DenseAttr:
    """Convert upstream's dense attribute; of the bytes of truth values only the lowest bit counts. Raises
    VerifyException if its type is no tensor of a dtype."""
    type = attribute.type
    if not isinstance(type, TensorType):
        raise VerifyException(f"a constant is a tensor, not {type}")
    dense = Dense(type, attribute.data.data)
    if dense.row.kind == "b":
        dense = Dense(type, bytes(byte & 1 for byte in attribute.data.data))
    return DenseAttr(dense)


def to_upstream(constant: DenseAttr) -> DenseIntOrFPElementsAttr:
    """Convert to upstream's dense attribute, the type of upstream ops' properties; its text has all elements. Requires
    elements that are not freed."""
    data = BytesAttr(bytes(constant.data.data))
    return DenseIntOrFPElementsAttr(constant.type, data)  # type: ignore[arg-type]


def parse_dense(parser: AttrParser) -> DenseAttr:
    """Parse `dense<...>` or `dense_resource<...>` as upstream's attribute, despite the type: `Parser` converts it to a
    DenseAttr after it has parsed the resources at the end of the text. Raises ParseError for anything else."""
    start = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(attribute, DenseIntOrFPElementsAttr | DenseResourceAttr):
        parser.raise_error(f"expected dense<...> or dense_resource<...>, got {attribute}", start)
    return cast(DenseAttr, attribute)


def from_resource(handle: str, type: Attribute, blob: str | None) -> DenseAttr:
    """Convert the hexadecimal text of a resource: four bytes of alignment, then the elements. Their name is `handle`,
    without digits of their digest at its end.

    Raises VerifyException for a missing resource, or one that does not fit the type.
    """
    if not isinstance(type, TensorType):
        raise VerifyException(f"a constant is a tensor, not {type}")
    if blob is None:
        raise VerifyException(f"there is no resource '{handle}' in the text's dialect_resources")
    if not _HEX.fullmatch(blob):
        raise VerifyException(f"the resource '{handle}' is not 0x and pairs of hexadecimal digits")
    if len(blob) < 10:
        raise VerifyException(f"the resource '{handle}' is too short: four bytes of alignment come first")
    dense, expected = Dense(type, bytes.fromhex(blob[10:]), handle), bytes_of(type)
    if len(dense.data) != expected:
        raise VerifyException(f"the resource '{handle}' has {len(dense.data)} bytes, but {type} has {expected}")
    if dense.row.kind == "b" and dense.bits.max() > 1:
        raise VerifyException(f"the resource '{handle}' has truth values other than 00 and 01")
    name, _, digits = handle.rpartition("_")
    if name and len(digits) == DIGITS and dense.digest.startswith(digits):
        dense.name = name
    return DenseAttr(dense)


def constants_in(op: Operation) -> Iterator[Dense]:
    """Yield the elements of all constants at and inside an op, also of those directly in array attributes."""
    for inner in op.walk():
        for attribute in (*inner.properties.values(), *inner.attributes.values()):
            for each in attribute if isinstance(attribute, ArrayAttr) else (attribute,):
                if isinstance(each, DenseAttr):
                    yield each.data


def without_elements(module: ModuleOp) -> ModuleOp:
    """Copy a module for display, without the elements of its large constants, which are not inline."""
    copy = module.clone()
    for op in copy.walk():
        for name, attribute in op.properties.items():
            if isinstance(attribute, DenseAttr) and not attribute.data.is_inline:
                op.properties[name] = DenseAttr.new(Lost(attribute.type, b"", attribute.data.name))
    return copy


def trailer(constants: Iterable[Dense]) -> str:
    """The text of a module's trailer, with the bytes of the constants that are neither inline nor freed, equal ones of
    one name once; empty without such ones."""
    named = {
        constant.handle: constant for constant in constants if not constant.is_inline and not isinstance(constant, Lost)
    }
    if not named:
        return ""
    lines = []
    for handle, constant in named.items():
        alignment = element_bytes(constant.type.element_type).to_bytes(4, "little")
        lines.append(f'      {handle}: "0x{alignment.hex().upper()}{constant.data.hex().upper()}"')
    return "\n".join(
        ["", "", "{-#", "  dialect_resources: {", "    builtin: {", ",\n".join(lines), "    }", "  }", "#-}"]
    )


def _print_module(module: ModuleOp, printer: Printer) -> None:
    """Print a module; the outermost one ends with the trailer of its large constants."""
    _print_plain(module, printer)
    if module.parent is None:
        printer.print_string(trailer(constants_in(module)))


_print_plain = ModuleOp.print
setattr(ModuleOp, "print", _print_module)  # noqa: B010  # xDSL calls nothing at the end of a module
