"""`Language`: how a language of the C family spells what its texts are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type
from xdsl.ir import Attribute, Operation

from compiler.support.errors import LoweringError
from compiler.targets.clike.expressions import Text, cast

NARROW_FLOATS = (Float16Type, BFloat16Type)


@dataclass(frozen=True)
class Integer:
    """Integers of a width: their types with a sign and without one, and that in which arithmetic wraps."""

    bits: int
    signed: str
    unsigned: str
    wrapping: str


class Language(ABC):
    """How a language spells types, helpers and conversions; `subject` is what its refusals begin with."""

    subject: ClassVar[str]

    @abstractmethod
    def spelled(self, type_: Attribute) -> str:
        """A type. Raises LoweringError for one that the language lacks."""

    @abstractmethod
    def integer(self, type_: Attribute, is_wide: bool = False) -> Integer | None:
        """How integers of a type are spelled, or indices, of 64 bits if they are wide; None for truth values and
        others."""

    @abstractmethod
    def helper(self, name: str, type_: str) -> str:
        """The name of a helper on numbers of a type, which the text defines from now on."""

    @abstractmethod
    def exact(self, op: Operation, texts: Sequence[Text]) -> Text | None:
        """An operation on floats that an infix operator would not compute as the IR says; None for others."""

    def function(self, name: str, type_: Attribute) -> str:
        """The name of a function of the library of mathematics for floats of a type."""
        return f"{name}{'f' if isinstance(type_, Float32Type) else ''}"

    def converted(self, text: Text, source: Attribute, target: Attribute) -> Text:
        """A number as a float of another type: narrow ones become doubles by way of single precision."""
        by_single = isinstance(source, NARROW_FLOATS) and isinstance(target, Float64Type)
        return cast(self.spelled(target), cast("float", text) if by_single else text)

    def lacks(self, what: str) -> LoweringError:
        """The refusal of something that the language has no form for."""
        return LoweringError(f"{self.subject} have no {what}")
