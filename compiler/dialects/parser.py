"""xDSL's parser, which reads hexadecimal floats in dense attributes for numbers where they are bits."""

from __future__ import annotations

import struct

from xdsl import parser as upstream
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, ComplexType, Float32Type, IndexType, IntegerType, ModuleOp
from xdsl.ir import Attribute
from xdsl.parser.attribute_parser import AttrParser
from xdsl.utils.exceptions import ParseError

from compiler.dialects.foreign import FOREIGN, said
from compiler.elements import FLOATS, element_bits

_CODES = {16: ("<H", "<e"), 32: ("<I", "<f"), 64: ("<Q", "<d")}
"""How `struct` names the bits of so many, and the float that they are."""


class _Element(AttrParser._TensorLiteralElement):
    """One element of a dense attribute."""

    def to_type(self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType) -> object:
        """The element as a number of a type."""
        if not isinstance(type, FLOATS) or not isinstance(self.value, int) or self.span.text[:2].lower() != "0x":
            return super().to_type(parser, type)
        if self.value >= 1 << element_bits(type):
            parser.raise_error(f"{self.span.text} has more bits than {type}", at_position=self.span)
        return float_of(self.value, type)


class Parser(upstream.Parser):
    """A parser of modules at any of Strata's levels."""

    _TensorLiteralElement = _Element

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parse everything. Raises ParseError, also where xDSL's parser ends in another exception or too deeply."""
        try:
            return super().parse_module(allow_implicit_module)
        except FOREIGN as error:
            raise ParseError(self._current_token.span, f"this cannot be read: {said(error)}") from error
        except RecursionError as error:
            raise ParseError(self._current_token.span, "the program is nested too deeply") from error


def float_of(bits: int, type: Attribute) -> float:
    """The float whose bits in a type are a number, as upstream writes infinities and what decimals do not say."""
    if isinstance(type, BFloat16Type):
        bits, type = bits << 16, Float32Type()
    integer, code = _CODES[element_bits(type)]
    return float(struct.unpack(code, struct.pack(integer, bits))[0])
