"""`C`: C11 with the vector extension of gcc and clang."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isinf, isnan
from typing import ClassVar

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    VectorType,
    f32,
    f64,
    i1,
)
from xdsl.ir import Attribute, Operation

from compiler.dialects.upstream.casts import element_of
from compiler.support.errors import LoweringError
from compiler.targets.c.helpers import Helpers
from compiler.targets.clike.expressions import CExpr, cast, function_call, infix
from compiler.targets.clike.language import Integer, Language
from compiler.targets.clike.operations import ARITHMETIC
from compiler.types.dtypes import row_of

SCALARS = {"f16": "_Float16", "bf16": "bf16", "f32": "float", "f64": "double", "i1": "bool"}
"""The C types of floats and truth values, by dtype."""


@dataclass
class C(Language):
    """C11; `helpers` collects the functions and types that a text uses."""

    subject = "texts of C"
    integers: ClassVar[Mapping[int, Integer]] = {
        bits: Integer(bits, f"int{bits}_t", f"uint{bits}_t", f"uint{max(32, bits)}_t") for bits in (8, 16, 32, 64)
    }
    index_bits = 64
    no_type, no_constant = "the type {} has no form in C", "the constant {} has no form in C"
    helpers: Helpers = field(default_factory=Helpers)

    def lacks(self, what: str) -> LoweringError:
        """Return a LoweringError for a construct that C lacks; `what` names it."""
        return LoweringError(f"{what} has no form in C")

    def dtype(self, type_: Attribute) -> str:
        """Return the name of a scalar type's dtype, `i64` for index. Raises LoweringError for other types."""
        row = row_of(type_)
        if row is None and not isinstance(type_, IndexType):
            raise self.lacks(f"the type {type_}")
        return row.name if row is not None else "i64"

    def spelled(self, type_: Attribute) -> str:
        """Spell a scalar type, or a vector type, whose definition is added to the text. Raises LoweringError for a type
        that C lacks."""
        if isinstance(type_, VectorType):
            if len(type_.get_shape()) != 1 or type_.get_num_scalable_dims():
                raise self.lacks(f"the type {type_}")
            return self.helpers.vector(self.dtype(type_.element_type), self.stored(type_.element_type), lanes(type_))
        dtype = self.dtype(type_)
        if dtype == "bf16":
            self.helpers.add("bf16")
        return SCALARS[dtype] if dtype in SCALARS else self.integers[int(dtype[1:])].signed

    def stored(self, type_: Attribute) -> str:
        """Spell the type of a vector's lane: truth values are bytes."""
        return "int8_t" if type_ == i1 else self.spelled(type_)

    def helper(self, name: str, type_: str) -> str:
        """Add the numeric function `name`, rsqrt or one of NUMBERS or EXTREMES, for a C type of SUFFIXES to the
        definitions of the text, with the functions that it calls; return its name there, such as `min_i32`."""
        return self.helpers.number(name, type_)

    def exact(self, op: Operation, texts: Sequence[CExpr]) -> CExpr | None:
        """Return f16 arithmetic on two operands, cast to f16, since C may compute in single precision and round later;
        None for other types, and for ops other than + - * /."""
        if not isinstance(element_of(op.results[0].type), Float16Type) or type(op) not in ARITHMETIC:
            return None
        sign, precedence = ARITHMETIC[type(op)]
        return cast("_Float16", infix(sign, texts[0], texts[1], precedence))

    def function(self, name: str, type_: Attribute) -> str:
        """Return the name in C of the function `name` for a float type: one of <math.h>, or for `rsqrt`, which <math.h>
        lacks, a helper, whose definition is added."""
        if name == "rsqrt":
            return self.helpers.number(name, self.spelled(type_))
        return super().function(name, type_)

    def converted(self, text: CExpr, source: Attribute, target: Attribute) -> CExpr:
        """Return the conversion of an expression between two types of which one is a float; doubles and integers reach
        bf16 through a float rounded to odd. The same type leaves it as it is."""
        if isinstance(source, BFloat16Type):
            return self.converted(function_call(self.helpers.add("float_of_bf16"), [text]), f32, target)
        if not isinstance(target, BFloat16Type):
            return text if source == target else cast(self.spelled(target), text)
        if isinstance(source, Float16Type):
            return self.converted(cast("float", text), f32, target)
        if source == f32:
            return function_call(self.helpers.add("bf16_of_float"), [text])
        as_double = text if source == f64 else cast("double", text)
        return self.converted(function_call(self.helpers.add("float_to_odd"), [as_double]), f32, target)

    def suffix(self, number: int, bits: int) -> str:
        """Return the suffix of an integer literal, for any `bits`: "" below 2^31 in magnitude, so that the digits fit
        an int, else LL."""
        return "" if -(1 << 31) < number < 1 << 31 else "LL"

    def real(self, number: float, type_: Attribute) -> str:
        """Spell a float literal, with a cast unless it is float or double; for bf16 its bits, rounded towards zero, in
        hexadecimal digits. NaN and infinities of other types are the macros of <math.h>."""
        if isinstance(type_, BFloat16Type):
            self.spelled(type_)
            return f"0x{struct.unpack('>H', struct.pack('>f', number)[:2])[0]:04x}"
        if isinf(number) or isnan(number):
            text = "NAN" if isnan(number) else "INFINITY" if number > 0 else "-INFINITY"
        else:
            text = f"{float(number)!r}{'' if isinstance(type_, Float64Type) else 'f'}"
        return text if isinstance(type_, Float32Type | Float64Type) else f"({self.spelled(type_)}){text}"


def lanes(type_: Attribute) -> int:
    """Return the number of lanes of a vector type."""
    assert isinstance(type_, VectorType)
    return int(type_.get_shape()[0])
