"""A tensorized nest as the intrinsics' module sees it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.dialects import loop
from compiler.dialects.access import AccessAttr
from compiler.dialects.checks import element_type, shape_of
from compiler.intrinsics import Fit, Nest, Reference
from compiler.intrinsics.fit import NestLoop
from compiler.lowering.loop_to_low.context import Context
from compiler.program import body


def is_fragment(buffer: SSAValue) -> bool:
    """Whether a buffer lies in registers that a thread, or a warp, holds as a matrix."""
    return isinstance(buffer.owner, loop.AllocOp) and buffer.owner.scope.data == "fragment"


@dataclass(frozen=True)
class TensorNest:
    """A nest, the buffers of its references, the target last, and whether it adds to what the target holds."""

    context: Context
    shape: Nest
    buffers: tuple[SSAValue, ...]
    accumulates: bool

    @staticmethod
    def of(context: Context, op: loop.ForOp) -> TensorNest:
        """The nest from the outermost tensorized loop inward, which has been matched."""
        loops: list[NestLoop] = []
        inner: Operation = op
        while isinstance(inner, loop.ForOp):
            loops.append(NestLoop(context.variables[inner.iv], inner.label.data, inner.size))
            (inner,) = inner.body.block.ops
        assert isinstance(inner, loop.BlockOp), "run_whole has matched the nest"
        dims = [context.form_of(value) for value in inner.loops]
        axes = [lin.linear(e, dims, context.scopes.ranges) for e in inner.bindings.data.results]

        def reference(buffer: SSAValue, access: AccessAttr) -> Reference:
            forms = tuple(lin.linear(e, axes, context.scopes.ranges) for e in access.affine_map.results)
            shape = tuple(shape_of(buffer))
            conditional = access.condition is not None
            return Reference(
                buffer.name_hint or "", element_type(buffer), shape, forms, conditional, is_fragment(buffer)
            )

        labels = [axis.label for axis in inner.axes]
        return TensorNest(
            context,
            Nest(
                tuple(loops),
                inner.label.data,
                tuple(map(reference, inner.inputs, inner.reads.data)),
                tuple(map(reference, inner.targets, inner.writes.data)),
                body.from_block(inner.body.block, labels),
                tuple(c.data for c in inner.combiners.data),
            ),
            (*inner.inputs, *inner.targets),
            inner.accumulate is not None,
        )

    def at(self, reference: Reference, moved: dict[int, Linear] | None = None) -> list[Linear]:
        """Where an operand is at some iteration of the nest's loops, at the first of those that are not named."""
        values = {found.variable: lin.constant(0) for found in self.shape.loops} | (moved or {})
        return [lin.substitute(form, values, self.context.scopes.ranges) for form in reference.index]

    def operands(self, found: Fit) -> list[tuple[SSAValue, Reference]]:
        """The buffer and the reference of each operand, the target last."""
        numbers = [*found.reads, len(self.shape.reads)]
        return [(self.buffers[n], (*self.shape.reads, *self.shape.targets)[n]) for n in numbers]

    def places(self, reference: Reference) -> list[SSAValue]:
        """The indices at which an operand begins."""
        return [self.context.scopes.index(form) for form in self.at(reference)]
