"""`Cuda`: CUDA C++ as a language of the C family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isinf, isnan

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, IndexType
from xdsl.ir import Attribute, Operation

from compiler.dialects.upstream.casts import element_of
from compiler.targets.clike.expressions import CExpr, function_call
from compiler.targets.clike.language import Language, may_contract
from compiler.targets.cuda.helpers import EXTREMA
from compiler.targets.cuda.types import INTEGERS, spelled

_ROUNDED: Mapping[type[Operation], str] = {arith.AddfOp: "add", arith.SubfOp: "sub", arith.MulfOp: "mul"}
_OVERLOADED = ("min", "max")
"""Helpers that CUDA C++ overloads for all numeric types."""


@dataclass
class Cuda(Language):
    """CUDA C++; `helpers` collects the templates that a text uses."""

    subject = "kernels"
    integers, index_bits = INTEGERS, 32
    no_type, no_constant = "kernels have no numbers of type {}", "{} is not a constant that kernels have"
    helpers: set[str]

    def spelled(self, type_: Attribute) -> str:
        """Spell a scalar, a vector, or a fragment, which is a vector of two dimensions. Raises LoweringError for a type
        that CUDA C++ lacks."""
        return spelled(type_)

    def suffix(self, number: int, bits: int) -> str:
        """Return the suffix of an integer literal: LL for 64 bits, whatever the number, else ""."""
        return "LL" if bits == 64 else ""

    def whole(self, number: int, type_: Attribute) -> str:
        """Spell an integer literal; one of type index has no suffix and does not wrap."""
        return str(number) if isinstance(type_, IndexType) else super().whole(number, type_)

    def real(self, number: float, type_: Attribute) -> str:
        """Spell a float literal; a type other than float or double is constructed from a float. NaN and infinities are
        macros of float, from which double is constructed too."""
        if isinf(number) or isnan(number):
            text = "NAN" if isnan(number) else "INFINITY" if number > 0 else "-INFINITY"
        elif isinstance(type_, Float64Type):
            return repr(float(number))
        else:
            text = f"{float(number)!r}f"
        return text if isinstance(type_, Float32Type) else f"{spelled(type_)}({text})"

    def helper(self, name: str, type_: str) -> str:
        """Add a helper template to the text; return its name with the type argument, such as `maximum<float>`. `min`
        and `max` are CUDA C++'s own, and returned as they are."""
        if name in _OVERLOADED:
            return name
        self.helpers |= {name, f"{name}<{type_}>"} if f"{name}<{type_}>" in EXTREMA else {name}
        return f"{name}<{type_}>"

    def exact(self, op: Operation, texts: Sequence[CExpr]) -> CExpr | None:
        """Return a sum or product without contraction, such as `__fadd_rn`; None if the op's flags allow it, for f16
        and bf16, and for ops other than sums, differences and products."""
        name, type_ = _ROUNDED.get(type(op)), element_of(op.results[0].type)
        if name is None or not isinstance(type_, Float32Type | Float64Type) or may_contract(op):
            return None
        return function_call(f"__{'f' if isinstance(type_, Float32Type) else 'd'}{name}_rn", texts)
