"""`Language`: how a language of the C family spells what its texts are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    i1,
)
from xdsl.dialects.utils import FastMathFlag
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


def may_contract(op: Operation) -> bool:
    """Whether an op on floats may be fused with another one."""
    flags = getattr(op, "fastmath", None)
    return isinstance(flags, FastMathFlagsAttr) and FastMathFlag.ALLOW_CONTRACT in flags.data


class Language(ABC):
    """How a language spells types, constants, helpers and conversions; `subject` is what its refusals begin with.

    `integers` are spelled by their bits, of which an index that is not wide has `index_bits`; `no_type` and
    `no_constant` refuse what is put into them.
    """

    subject: ClassVar[str]
    integers: ClassVar[Mapping[int, Integer]]
    index_bits: ClassVar[int]
    no_type: ClassVar[str]
    no_constant: ClassVar[str]

    @abstractmethod
    def spelled(self, type_: Attribute) -> str:
        """A type. Raises LoweringError for one that the language lacks."""

    @abstractmethod
    def suffix(self, number: int, bits: int) -> str:
        """What the literal of an integer of so many bits ends with."""

    @abstractmethod
    def real(self, number: float, type_: Attribute) -> str:
        """A float."""

    @abstractmethod
    def helper(self, name: str, type_: str) -> str:
        """The name of a helper on numbers of a type, which the text defines from now on."""

    @abstractmethod
    def exact(self, op: Operation, texts: Sequence[Text]) -> Text | None:
        """An operation on floats that an infix operator would not compute as the IR says; None for others."""

    def integer(self, type_: Attribute, is_wide: bool = False) -> Integer | None:
        """How integers of a type are spelled, or indices, of 64 bits if they are wide; None for truth values and
        others. Raises LoweringError for a width that the language lacks."""
        if isinstance(type_, IndexType):
            return self.integers[64 if is_wide else self.index_bits]
        if not isinstance(type_, IntegerType) or type_ == i1:
            return None
        if type_.width.data not in self.integers:
            raise LoweringError(self.no_type.format(type_))
        return self.integers[type_.width.data]

    def literal(self, value: Attribute) -> str:
        """A constant. Raises LoweringError for one that is no number."""
        if isinstance(value, IntegerAttr):
            return self.whole(value.value.data, value.type)
        if isinstance(value, FloatAttr):
            return self.real(value.value.data, value.type)
        raise LoweringError(self.no_constant.format(value))

    def whole(self, number: int, type_: Attribute) -> str:
        """An integer, wrapped to its type; the least of a type has no literal in C."""
        if type_ == i1:
            return "true" if number % 2 else "false"
        spelling = self.integer(type_)
        assert spelling is not None
        half = 1 << spelling.bits - 1
        wrapped = (number + half) % (2 * half) - half
        suffix = self.suffix(wrapped, spelling.bits)
        return f"(-{half - 1}{suffix} - 1)" if wrapped == -half and spelling.bits >= 32 else f"{wrapped}{suffix}"

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
