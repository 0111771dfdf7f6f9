"""The parser of locations: as xDSL's, with aliases that are defined behind their uses, ranges, and metadata."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl import parser as upstream
from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute
from xdsl.utils.hints import isa
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRTokenKind

_ALIAS = re.compile(r"^[ \t]*(#[\w.$-]*)[ \t]*=[ \t]*(?=loc[ \t]*\()", re.MULTILINE)
"""The start of a definition `#loc3 = loc(...)`, up to the location."""


class LocationParser(upstream.Parser):
    """Parser of locations, also `"f.py":3:4 to 5:6` (its first position is kept) and `fused<"...">[...]`.

    Aliases of locations may be defined anywhere in the text, since mlir-opt prints them behind the module.
    """

    _source: Input

    @dataclass
    class LocatedArgument(upstream.Parser.UnresolvedArgument):
        """A block argument without a type, with the location behind its name; None without one."""

        location: LocationAttr | None = None

        def resolve(self, type: Attribute) -> upstream.Parser.Argument:
            """Return the argument with a type, at the same location."""
            return upstream.Parser.Argument(self.name, type, self.location)

    def parse_optional_argument(self, expect_type: bool = True) -> Any:
        """Parse a block argument if there is one, with its type; without `expect_type`, the variable of a loop and its
        location if there is one. Return None without an argument."""
        argument = super().parse_optional_argument(expect_type)
        if argument is None or expect_type:
            return argument
        return self.LocatedArgument(argument.name, self.parse_optional_location())

    def _parse_location(self) -> LocationAttr:
        if self._current_token.kind is MLIRTokenKind.HASH_IDENT:
            return self._location_alias()
        if self._current_token.kind is MLIRTokenKind.STRING_LIT:
            return self._name_or_position()
        if self.parse_optional_keyword("fused") is not None:
            metadata: Attribute = NoneAttr()
            if self.parse_optional_punctuation("<") is not None:
                metadata = self.parse_attribute()
                self.parse_punctuation(">")
            parts = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
            return FusedLoc(ArrayAttr[Attribute](parts), metadata)
        return super()._parse_location()

    def _name_or_position(self) -> LocationAttr:
        """Parse `"name"`, `"name"(location)`, `"file":line:column` or the start of a range of a file."""
        text = StringAttr(self.parse_str_literal())
        if self.parse_optional_punctuation(":") is None:
            if self._current_token.kind is not MLIRTokenKind.L_PAREN:
                return NameLoc(text, NoneAttr())
            with self.in_parens():
                return NameLoc(text, self._parse_location())
        line = self.parse_integer(False, False)
        self.parse_punctuation(":")
        column = self.parse_integer(False, False)
        if self.parse_optional_keyword("to") is not None:
            self.parse_optional_integer(False, False)
            self.parse_punctuation(":")
            self.parse_integer(False, False)
        return FileLineColLoc(text, IntAttr(line), IntAttr(column))

    def _location_alias(self) -> LocationAttr:
        """Parse the name of an alias; if its definition, anywhere in the text, was not parsed yet, parse it now. Raises
        ParseError for an alias that is undefined, of something else, or defined by itself."""
        span = self._current_token.span
        name = span.text
        if name not in self.attribute_aliases and name in self._definitions:
            resumed, start = span.end, self._definitions.pop(name)
            self._resume_from(start)
            self.attribute_aliases[name] = self._stated_location()
            self._resume_from(resumed)
        else:
            self._consume_token()
        location = self.attribute_aliases.get(name)
        if not isa(location, LocationAttr):
            self.raise_error(
                f"the location '{name}' is not defined" if location is None else f"'{name}' is no location", span
            )
        return location

    def _stated_location(self) -> LocationAttr:
        location = self.parse_optional_location()
        return self.raise_error("a location is expected") if location is None else location

    def _parse_alias_def(self) -> None:
        """Parse a definition of an alias; one of a location may have been parsed before, at its first use. Raises
        ParseError for a second definition."""
        definition = _ALIAS.match(self._source.content, self._current_token.span.start)
        if definition is None:
            super()._parse_alias_def()
            return
        name = definition[1]
        if name in self.attribute_aliases and self._starts[name] != definition.end():
            self.raise_error(f"re-declaration of alias '{name}'")
        self._definitions.pop(name, None)
        self._resume_from(definition.end())
        self.attribute_aliases[name] = self._stated_location()

    @cached_property
    def _starts(self) -> dict[str, int]:
        """Map each alias of a location to the offset of its first definition in the text."""
        starts: dict[str, int] = {}
        for match in _ALIAS.finditer(self._source.content):
            starts.setdefault(match[1], match.end())
        return starts

    @cached_property
    def _definitions(self) -> dict[str, int]:
        """The offsets of the definitions of aliases that were not parsed yet, by alias."""
        return dict(self._starts)
