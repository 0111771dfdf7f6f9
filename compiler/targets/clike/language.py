"""`Language`: the spelling of types, literals, helpers and conversions in a language of the C family."""

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
from compiler.targets.clike.expressions import CExpr, cast

NARROW_FLOATS = (Float16Type, BFloat16Type)


@dataclass(frozen=True)
class Integer:
    """The spellings of an integer width: the signed and the unsigned type, and the type whose arithmetic wraps."""

    bits: int
    signed: str
    unsigned: str
    wrapping: str


def may_contract(op: Operation) -> bool:
    """Return whether an op on floats may be contracted with another one, such as a product and a sum to an fma."""
    flags = getattr(op, "fastmath", None)
    return isinstance(flags, FastMathFlagsAttr) and FastMathFlag.ALLOW_CONTRACT in flags.data


class Language(ABC):
    """A language of the C family; `subject` begins its error messages. `integers` has the spellings by bits; an index
    that is not wide has `index_bits`. `no_type` and `no_constant` are the error messages for types and constants that
    the language lacks."""

    subject: ClassVar[str]
    integers: ClassVar[Mapping[int, Integer]]
    index_bits: ClassVar[int]
    no_type: ClassVar[str]
    no_constant: ClassVar[str]

    @abstractmethod
    def spelled(self, type_: Attribute) -> str:
        """Return the spelling of a scalar type, or of a vector type if the language has any. Raises LoweringError for a
        type that the language lacks."""

    @abstractmethod
    def suffix(self, number: int, bits: int) -> str:
        """Return the suffix of the literal of a signed integer, of a width in bits; "" for none."""

    @abstractmethod
    def real(self, number: float, type_: Attribute) -> str:
        """Return the literal of a float of a type, NaN and infinities included; a bf16 may be its bits."""

    @abstractmethod
    def helper(self, name: str, type_: str) -> str:
        """Add the numeric helper `name`, such as a key of NUMBERS, for the spelled type `type_` to the definitions of
        the text; return its name there."""

    @abstractmethod
    def exact(self, op: Operation, texts: Sequence[CExpr]) -> CExpr | None:
        """Return the expression of a float op, on the operands `texts`, whose infix operator would round or contract
        differently; None for other ops."""

    def integer(self, type_: Attribute, is_wide: bool = False) -> Integer | None:
        """Return the spelling of an integer type or of index, which has 64 bits if `is_wide`, else `index_bits`; None
        for truth values and floats. `is_wide` is ignored for integers. Raises LoweringError for a width that the
        language lacks."""
        if isinstance(type_, IndexType):
            return self.integers[64 if is_wide else self.index_bits]
        if not isinstance(type_, IntegerType) or type_ == i1:
            return None
        if type_.width.data not in self.integers:
            raise LoweringError(self.no_type.format(type_))
        return self.integers[type_.width.data]

    def literal(self, value: Attribute) -> str:
        """Return the literal of a constant number. Raises LoweringError for a constant that is no number, and for a
        width that the language lacks."""
        if isinstance(value, IntegerAttr):
            return self.whole(value.value.data, value.type)
        if isinstance(value, FloatAttr):
            return self.real(value.value.data, value.type)
        raise LoweringError(self.no_constant.format(value))

    def whole(self, number: int, type_: Attribute) -> str:
        """Spell an integer literal, wrapped to its type: `true` or `false` for i1, and `(-max - 1)` for the minimum of
        32 or 64 bits, which has no literal in C."""
        if type_ == i1:
            return "true" if number % 2 else "false"
        spelling = self.integer(type_)
        assert spelling is not None
        half = 1 << spelling.bits - 1
        wrapped = (number + half) % (2 * half) - half
        suffix = self.suffix(wrapped, spelling.bits)
        return f"(-{half - 1}{suffix} - 1)" if wrapped == -half and spelling.bits >= 32 else f"{wrapped}{suffix}"

    def function(self, name: str, type_: Attribute) -> str:
        """Return the name of the function `name` of <math.h> for a float type: with the suffix f for f32, else without
        one. Narrower floats are converted to f32 by the caller."""
        return f"{name}{'f' if isinstance(type_, Float32Type) else ''}"

    def converted(self, text: CExpr, source: Attribute, target: Attribute) -> CExpr:
        """Return the conversion of an expression of type `source` to the float type `target`; f16 and bf16 become
        double through float."""
        through_float = isinstance(source, NARROW_FLOATS) and isinstance(target, Float64Type)
        return cast(self.spelled(target), cast("float", text) if through_float else text)

    def lacks(self, what: str) -> LoweringError:
        """Return a LoweringError for a construct that the language lacks; `what` names it."""
        return LoweringError(f"{self.subject} have no {what}")
