"""`Intrinsic`: an instruction as the nest that it replaces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Literal

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerType, Signedness
from xdsl.ir import Attribute

BF16, F16, F32, I32, I8 = BFloat16Type(), Float16Type(), Float32Type(), IntegerType(32), IntegerType(8)
U8 = IntegerType(8, Signedness.UNSIGNED)


@dataclass(frozen=True)
class NestAxis:
    """A loop of an intrinsic's nest."""

    label: str
    extent: int


@dataclass(frozen=True)
class NestOperand:
    """The layout of an operand: its element type and, along each axis that indexes it, the step in elements. A step of
    None is any positive constant: the distance of two rows. widened: the op that extends an element to the type of the
    accumulator, or "". fragment: for an operand in registers its kind: an AMX tile, or operand a, operand b or
    accumulator c of an MMA; "" for an operand in memory."""

    element: Attribute
    steps: tuple[tuple[str, int | None], ...]
    widened: str = ""
    fragment: Literal["", "tile", "a", "b", "c"] = ""

    def step(self, axis: str) -> int | None:
        """Return the step along an axis, None for one that is free; 0 along an axis that does not index the operand."""
        return dict(self.steps).get(axis, 0)


@dataclass(frozen=True)
class Intrinsic:
    """An instruction by the nest that it replaces: `target += product(widened reads)`, over all axes.

        for j = 16 { for k = 4 { C[j] += extend(A[k]) * extend(B[4*j + k]) } }

    Without a `combiner` the target is set: to the single read, or to zero. features: alternatives, each a set of LLVM
    features or the oldest GPU architecture. mnemonic: its name in assembly. llvm: its name in LLVM. product: the op
    that multiplies, "" for none. form: `dot` on vector registers, `tile` on AMX tiles, `interleave` by shuffles,
    `matrix` and `sum` by a warp. exact: False if rounding differs from the nest's; then policy strict refuses it.
    narrow: whether it drops digits of its operands; then only policy fast takes it.

    >>> dot = strata.intrinsics.find("dot.f32.bf16x2")
    >>> [(axis.label, axis.extent) for axis in dot.axes], dot.form, dot.features
    ([('j', 16), ('k', 2)], 'dot', (('avx512bf16',),))
    """

    name: str
    axes: tuple[NestAxis, ...]
    reads: tuple[NestOperand, ...]
    target: NestOperand
    features: tuple[tuple[str, ...], ...]
    mnemonic: str
    llvm: str = ""
    product: str = ""
    combiner: str = ""
    form: str = "dot"
    exact: bool = True
    narrow: bool = False

    @property
    def runs_on_warp(self) -> bool:
        """Whether the threads of a warp execute the instruction together."""
        return self.form in ("matrix", "sum")

    def length(self, operand: NestOperand) -> int:
        """Return the number of elements of an operand."""
        return prod(axis.extent for axis in self.axes if operand.step(axis.label) != 0)

    def lacking(self, features: Iterable[str]) -> str:
        """Return the alternatives of required features in words; empty if `features` has all of one alternative."""
        available = set(features)
        if any(available.issuperset(needed) for needed in self.features):
            return ""
        return " or ".join(" and ".join(needed) for needed in self.features)
