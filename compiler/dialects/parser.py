"""xDSL's parser, which reads hexadecimal floats in dense attributes for numbers where they are bits."""

from __future__ import annotations

import struct
from typing import Any

from xdsl import parser as upstream
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, ModuleOp
from xdsl.ir import Attribute
from xdsl.parser.attribute_parser import AttrParser
from xdsl.utils.exceptions import ParseError

from compiler.dialects.foreign import FOREIGN, said

_CODES: dict[type[Attribute], tuple[str, str]] = {
    Float16Type: ("<H", "<e"),
    Float32Type: ("<I", "<f"),
    Float64Type: ("<Q", "<d"),
}
_BITS: dict[type[Attribute], int] = {Float16Type: 16, BFloat16Type: 16, Float32Type: 32, Float64Type: 64}


class _Element(AttrParser._TensorLiteralElement):
    """One element of a dense attribute."""

    def to_type(self, parser: AttrParser, type: Any) -> Any:
        if (
            type.__class__ not in _BITS
            or not isinstance(self.value, int)
            or not self.span.text.lower().startswith("0x")
        ):
            return super().to_type(parser, type)
        assert isinstance(self.value, int)
        if self.value >= 1 << _BITS[type.__class__]:
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
    integer, code = _CODES[type.__class__]
    return float(struct.unpack(code, struct.pack(integer, bits))[0])
