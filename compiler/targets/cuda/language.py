"""`Cuda`: CUDA C++ as a language of the C family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import Attribute, Operation

from compiler.dialects.upstream.arith import element_of
from compiler.targets.clike.expressions import Text, called
from compiler.targets.clike.language import Integer, Language
from compiler.targets.cuda.types import integer, spelled

_ROUNDED: Mapping[type[Operation], str] = {arith.AddfOp: "add", arith.SubfOp: "sub", arith.MulfOp: "mul"}
_OVERLOADED = ("min", "max")
"""Helpers that CUDA C++ has for numbers of any type."""


@dataclass
class Cuda(Language):
    """CUDA C++; `helpers` gains the templates that a text needs."""

    subject = "kernels"
    helpers: set[str]

    def spelled(self, type_: Attribute) -> str:
        """A scalar, a short vector, or what a thread holds of a small matrix."""
        return spelled(type_)

    def integer(self, type_: Attribute, is_wide: bool = False) -> Integer | None:
        """How integers are spelled."""
        return integer(type_, is_wide)

    def helper(self, name: str, type_: str) -> str:
        """An instance of a template."""
        if name in _OVERLOADED:
            return name
        self.helpers.add(name)
        return f"{name}<{type_}>"

    def exact(self, op: Operation, texts: Sequence[Text]) -> Text | None:
        """A sum or product that must not be contracted, as the intrinsic that never is; None where it may be."""
        name, type_ = _ROUNDED.get(type(op)), element_of(op.results[0].type)
        flags = getattr(op, "fastmath", None)
        if name is None or not isinstance(type_, Float32Type | Float64Type):
            return None
        if flags is not None and any(
            str(flag) in ("contract", "fast") or "contract" in str(flag) for flag in flags.data
        ):
            return None
        return called(f"__{'f' if isinstance(type_, Float32Type) else 'd'}{name}_rn", texts)
