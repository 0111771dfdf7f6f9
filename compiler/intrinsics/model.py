"""What an intrinsic is: the nest that it replaces, as data."""

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
    """What lies in a buffer: elements of a type and, along each axis that moves it, the step in elements.

    A step of None is any, the same throughout: the distance of two rows. `widened` is the op that makes a value of it
    as wide as the sum, or none. What lies in registers is a `fragment`, and its buffer is of that scope: a tile of AMX,
    or of a product by a warp of a GPU one of its operands a and b or its sums c.
    """

    element: Attribute
    steps: tuple[tuple[str, int | None], ...]
    widened: str = ""
    fragment: Literal["", "tile", "a", "b", "c"] = ""

    def step(self, axis: str) -> int | None:
        """The step along an axis, 0 along one that does not move it."""
        return dict(self.steps).get(axis, 0)


@dataclass(frozen=True)
class Intrinsic:
    """An instruction by the nest that it replaces: `target += product(widened reads)`, over all axes.

        for j = 16 { for k = 4 { C[j] += extend(A[k]) * extend(B[4*j + k]) } }

    Without a `combiner` the target is set: to the one read or, without reads, to zero. `features` are alternatives,
    each all of LLVM's feature names that it needs, or the first architecture of GPUs that has it; `llvm` is LLVM's name
    of it. `form` says how it is emitted: `dot` on vectors in registers, `tile` on two-dimensional registers,
    `interleave` as shuffles, `matrix` and `sum` by the threads of a warp together. What is not `exact` rounds otherwise
    than the nest, and is refused where floating point is strict; what is `narrow` takes fewer digits of its operands
    than they have, and is refused where floating point is not fast.

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
    def is_warps(self) -> bool:
        """Whether the threads of a warp run it together."""
        return self.form in ("matrix", "sum")

    def length(self, operand: NestOperand) -> int:
        """How many elements of an operand's buffer it touches."""
        return prod(axis.extent for axis in self.axes if operand.step(axis.label) != 0)

    def lacking(self, features: Iterable[str]) -> str:
        """The features that none of the alternatives is without, in words; nothing where all are there."""
        present = set(features)
        if any(present.issuperset(needed) for needed in self.features):
            return ""
        return " or ".join(" and ".join(needed) for needed in self.features)
