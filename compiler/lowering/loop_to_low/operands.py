"""The operands of a tensorized nest: where in their buffers each begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.intrinsics import Fit, Intrinsic, NestOperand, PerfectNest, Reference
from compiler.lowering.loop_to_low.context import Context


@dataclass(frozen=True)
class Operands:
    """A nest that is being emitted as its intrinsic."""

    context: Context
    nest: PerfectNest
    intrinsic: Intrinsic
    fit: Fit

    @property
    def reads(self) -> list[Reference]:
        """The operands, in the intrinsic's order."""
        return [self.nest.reads[number] for number in self.fit.reads]

    @property
    def target(self) -> Reference:
        """The target."""
        return self.nest.targets[0]

    def step(self, number: int) -> int:
        """The distance of the rows of an operand, in elements: of a read by its number, of the target after these."""
        return next((step for (operand, _), step in self.fit.open_steps.items() if operand == number), 0)

    def buffer(self, reference: Reference) -> SSAValue:
        """The buffer of an operand."""
        return self.context.buffers[reference.buffer]

    def vector(self, reference: Reference, operand: NestOperand) -> VectorType:
        """The type of all elements of an operand."""
        return VectorType(reference.scalar, [self.intrinsic.length(operand)])

    def at(self, reference: Reference, moved: Mapping[int, Linear] | None = None) -> list[Linear]:
        """The index of an operand at some iteration of the nest's loops; loops not named are at their first
        iteration."""
        values = {loop.number: lin.constant(0) for loop in self.nest.loops} | dict(moved or {})
        return self.context.over(self.context.values | values, reference.index)

    def places(self, reference: Reference) -> list[SSAValue]:
        """The indices at which an operand begins."""
        return self.context.scopes.indices(self.at(reference))
