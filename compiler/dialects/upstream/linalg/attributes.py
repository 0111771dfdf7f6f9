"""Attributes of linalg ops that are a word: how integers are converted, and the kind of an elementwise op."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from compiler.dialects.upstream.linalg.structures import KINDS


class WordAttr(Data[str]):
    """The base of attributes `#linalg.NAME<word>`. WORDS: the words that the parser accepts."""

    WORDS: ClassVar[Collection[str]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Parse the word in angle brackets. Raises ParseError for other text, and for a word that is not in WORDS."""
        with parser.in_angle_brackets():
            position = parser.pos
            word = parser.parse_identifier()
            if word not in cls.WORDS:
                parser.raise_error(f"'{word}' is none of {', '.join(cls.WORDS)}", position)
        return word

    def print_parameter(self, printer: Printer) -> None:
        """Print the word in angle brackets."""
        with printer.in_angle_brackets():
            printer.print_string(self.data)


@irdl_attr_definition
class TypeFunctionAttr(WordAttr):
    """The conversion of integers in a named op, signed or unsigned: `#linalg.type_fn<cast_unsigned>`."""

    name = "linalg.type_fn"
    WORDS: ClassVar = ("cast_signed", "cast_unsigned")


@irdl_attr_definition
class ElementwiseKindAttr(WordAttr):
    """The function of a linalg.elementwise: `#linalg.elementwise_kind<add>`."""

    name = "linalg.elementwise_kind"
    WORDS: ClassVar = tuple(KINDS)
