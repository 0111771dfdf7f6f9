"""The writes of one block.

A write with stride one along the lanes is a vector store, one with another stride a scatter, masked if a guard differs
between lanes; any other is done lane by lane.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler.dialects.upstream import builders
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import emit_under
from compiler.lowering.loop_to_low.lanes import Element
from compiler.lowering.loop_to_low.reads import Reader
from compiler.program.tree import Access
from compiler.support.errors import LoweringError


class Accessor(Reader):
    """The emitter of one block's reads and writes."""

    def _write(self, access: Access, value: SSAValue) -> None:
        element = self._element(access)
        if not self._varies(element.index):
            if scalars.lanes_of(value) is not None:
                raise LoweringError(
                    f"block '{self.block.label}' writes different values to one element in a vectorized loop"
                )
            self.scopes.run(builders.store(value, element.buffer, self.scopes.indices(element.index)))
            return
        value = scalars.broadcast_to_lanes(self.scopes, value, self.context.lanes)
        if not self.contiguous(element):
            strided_access = self._strided(element, self.guard)
            if strided_access is None:
                self._write_lanes(element, value)
            else:
                self.scopes.run(
                    builders.scatter(
                        element.buffer, strided_access.indices, strided_access.offsets, strided_access.mask, value
                    )
                )
            return
        indices = self._first_indices(element)
        if self.accumulator_mask is None:
            streamed = access.buffer in self.context.streamed
            self.scopes.run(builders.store_lanes(value, element.buffer, indices, streamed))
        else:
            self.scopes.run(builders.store_masked(element.buffer, indices, self.accumulator_mask, value))

    def _write_lanes(self, element: Element, value: SSAValue) -> None:
        self._count_lanes()
        for lane in range(self.context.lanes):
            lane_element, lane_guard = self._in_lane(element, lane), self._conditions_of_lane(lane, self.guard)
            if any(test.never(self.scopes.ranges) for test in lane_guard):
                continue

            def store(lane: int = lane, lane_element: Element = lane_element) -> None:
                scalar = scalars.extract_lane(self.scopes, value, lane)
                self.scopes.run(builders.store(scalar, lane_element.buffer, self.scopes.indices(lane_element.index)))

            emit_under(self.context, [test for test in lane_guard if not test.always(self.scopes.ranges)], store)
