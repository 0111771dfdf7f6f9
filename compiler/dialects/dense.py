"""`DenseAttr`: the elements of a tensor constant, held by reference and compared by a digest.

Few elements, or equal ones, print as upstream's `dense<...>`; others as `dense_resource<NAME_DIGEST>`, whose bytes
are once in the trailer of the module's text, as upstream writes it. Text preserves every bit of every element.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, DenseResourceAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, BuiltinAttribute, Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.access import decimal
from compiler.types.elements import DType, Dtype, element_bytes, row_of

MOST_INLINE = 64
"""The most elements that print as `dense<...>`, unless all are equal."""

_INTEGERS: dict[int, DType] = {1: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8")}
"""The unsigned integer dtype by size in bytes."""

_HEX = re.compile(r"0x([0-9A-Fa-f]{2})*+")

_DIGITS = 16
"""The number of digits of a digest in the name of a resource."""


class Dense:
    """The elements of a tensor in row-major order, little-endian; a truth value is a byte, 0 or 1.

    `data` must not change. `name` is a label for printing, "c" if it is no identifier; constants that differ in their
    name only are equal.
    """

    def __init__(self, type: TensorType, data: bytes | memoryview, name: str = "c") -> None:
        self.type = type
        self.data = memoryview(data).cast("B")
        self.name = name if re.fullmatch(r"[A-Za-z_][\w$.]*", name, re.ASCII) else "c"

    @cached_property
    def digest(self) -> str:
        """The SHA-256 digest of dtype, shape and elements, in hexadecimal digits."""
        digest = hashlib.sha256(f"{self.type}:".encode())
        digest.update(self.data)
        return digest.hexdigest()

    @property
    def row(self) -> Dtype:
        """The dtype. Raises VerifyException if the element type has none."""
        dtype = row_of(self.type.element_type)
        if dtype is None:
            raise VerifyException(f"a constant has elements of type {self.type.element_type}, which is no dtype")
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tensor."""
        return tuple(self.type.get_shape())

    @cached_property
    def bits(self) -> NDArray[Any]:
        """The bits of the elements as unsigned integers, in one dimension."""
        return np.frombuffer(self.data, _INTEGERS[element_bytes(self.type.element_type)])

    @cached_property
    def is_splat(self) -> bool:
        """Whether all elements have the same bits."""
        bits = self.bits
        return all(bool((part == bits[0]).all()) for part in (bits[:MOST_INLINE], bits))

    @property
    def is_inline(self) -> bool:
        """Whether the elements, at most MOST_INLINE or all equal, are printed at their use, not in the trailer."""
        return prod(self.shape) <= MOST_INLINE or self.is_splat

    @property
    def handle(self) -> str:
        """The name of the bytes in the trailer; equal names mean equal elements."""
        return f"{self.name}_{self.digest[:_DIGITS]}"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Dense) or self.type != other.type:
            return False
        return self.data is other.data or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"Dense({self.type})"


class Lost(Dense):
    """Elements that were freed after their last use; only their name is printed."""

    is_inline = False

    @property
    def handle(self) -> str:
        """The name of the constant, without a digest."""
        return self.name


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
    if name and len(digits) == _DIGITS and dense.digest.startswith(digits):
        dense.name = name
    return DenseAttr(dense)


def literal(dense: Dense) -> str:
    """Return the text in the brackets of `dense<...>`: nested lists, one element for a splat, hexadecimal for NaN."""
    if dense.row.kind == "f" and _has_nan(dense):
        first = dense.data[: element_bytes(dense.type.element_type)]
        return f'"0x{(first if dense.is_splat else dense.data).hex().upper()}"'
    if dense.is_splat:
        return _number(dense.row, int(dense.bits[0]))
    texts = [_number(dense.row, int(bits)) for bits in dense.bits]
    for size in reversed(dense.shape):
        texts = [f"[{', '.join(texts[at : at + size])}]" for at in range(0, len(texts), size)]
    return texts[0]


def _has_nan(dense: Dense) -> bool:
    """Whether an element is NaN, whose bits a decimal does not represent."""
    bits = dense.bits[:1] if dense.is_splat else dense.bits
    return bool(np.isnan(np.array([_float(dense.row, int(b)) for b in bits])).any())


def _float(row: Dtype, bits: int) -> float:
    if row.name == "bf16":
        return float(np.uint32(bits << 16).view(np.float32))
    return float(_INTEGERS[row.bits // 8].type(bits).view(row.numpy))


def _number(row: Dtype, bits: int) -> str:
    """Print an element, given by its bits, so that upstream's parser reads the same bits."""
    if row.kind == "b":
        return "true" if bits else "false"
    if row.kind == "u":
        return str(bits)
    if row.kind == "i":
        return str(bits - (1 << row.bits if bits >> row.bits - 1 else 0))
    value = _float(row, bits)
    if np.isinf(value):
        return f"0x{bits:0{row.bits // 4}X}"
    if row.name == "f32" and np.float32(float(str(np.float32(value)))) == value:
        value = float(str(np.float32(value)))
    return decimal(value)


def constants_in(op: Operation) -> Iterator[Dense]:
    """The elements of all constants at and inside an op."""
    for inner in op.walk():
        for attribute in (*inner.properties.values(), *inner.attributes.values()):
            for each in attribute if isinstance(attribute, ArrayAttr) else (attribute,):
                if isinstance(each, DenseAttr):
                    yield each.data


def without_elements(module: ModuleOp) -> ModuleOp:
    """Copy a module for display, without the elements of its large constants."""
    copy = module.clone()
    for op in copy.walk():
        for name, attribute in op.properties.items():
            if isinstance(attribute, DenseAttr) and not attribute.data.is_inline:
                op.properties[name] = DenseAttr.new(Lost(attribute.type, b"", attribute.data.name))
    return copy


def trailer(constants: Iterable[Dense]) -> str:
    """The text of a module's trailer, with the bytes of the constants that are not inline; empty without such ones."""
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
