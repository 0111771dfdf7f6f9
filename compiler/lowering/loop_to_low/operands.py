"""The operands of a tensorized nest: their buffers and first indices."""

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
    """The operands of a nest that is emitted as its intrinsic; `fit` maps the intrinsic's axes to loops of the nest,
    and its operands to reads of the nest's block."""

    context: Context
    nest: PerfectNest
    intrinsic: Intrinsic
    fit: Fit

    @property
    def reads(self) -> list[Reference]:
        """The operands that are read, in the intrinsic's order."""
        return [self.nest.reads[number] for number in self.fit.reads]

    @property
    def target(self) -> Reference:
        """The operand that is written."""
        return self.nest.targets[0]

    def step(self, number: int) -> int:
        """Return the distance of an operand's rows in elements, 0 if the intrinsic fixes it. number: of the operand in
        the intrinsic's order, reads first, then the target."""
        return next((step for (operand, _), step in self.fit.open_steps.items() if operand == number), 0)

    def buffer(self, reference: Reference) -> SSAValue:
        """Return the buffer of an operand."""
        return self.context.buffers[reference.buffer]

    def vector(self, reference: Reference, operand: NestOperand) -> VectorType:
        """Return the one-dimensional vector type of all elements of an operand."""
        return VectorType(reference.scalar, [self.intrinsic.length(operand)])

    def at(self, reference: Reference, iterations: Mapping[int, Linear] | None = None) -> list[Linear]:
        """Return the index of an operand, over outer loops, at an iteration of the nest's loops. iterations: forms by
        loop number; loops that it lacks are at 0, with None all."""
        values = {loop.number: lin.constant(0) for loop in self.nest.loops} | dict(iterations or {})
        return self.context.substitute_axes(self.context.values | values, reference.index)

    def first_indices(self, reference: Reference) -> list[SSAValue]:
        """Emit the indices of an operand's first element."""
        return self.context.scopes.indices(self.at(reference))
