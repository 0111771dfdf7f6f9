"""The reads and writes of one block: plain, masked, lane by lane, under conditions.

A write that steps by one element a lane is a vector store, one with another stride a scatter, masked where a guard
differs between lanes; any other goes lane by lane.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler.dialects.upstream import builders
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import under
from compiler.lowering.loop_to_low.lanes import Element
from compiler.lowering.loop_to_low.reads import Reader
from compiler.program.tree import Access
from compiler.support.errors import LoweringError


class Accessor(Reader):
    """The accesses of one block."""

    def _write(self, access: Access, value: SSAValue) -> None:
        element = self._element(access)
        if not self._varies(element.index):
            if scalars.lanes_of(value) is not None:
                raise LoweringError(
                    f"block '{self.block.label}' writes different values to one element in a vectorized loop"
                )
            self.scopes.run(builders.store(value, element.buffer, self.scopes.indices(element.index)))
            return
        value = scalars.widen(self.scopes, value, self.context.lanes)
        if not self.contiguous(element):
            strided = self._strided(element, self.guard)
            if strided is None:
                self._write_lanes(element, value)
            else:
                self.scopes.run(builders.scatter(element.buffer, strided.places, strided.steps, strided.mask, value))
            return
        places = self._first(element)
        if self.kept is None:
            streamed = access.buffer in self.context.streamed
            self.scopes.run(builders.store_lanes(value, element.buffer, places, streamed))
        else:
            self.scopes.run(builders.store_masked(element.buffer, places, self.kept, value))

    def _write_lanes(self, element: Element, value: SSAValue) -> None:
        self._count_lanes()
        for lane in range(self.context.lanes):
            lane_element, tests = self._in_lane(element, lane), self._at(lane, self.guard)
            if any(test.never(self.scopes.ranges) for test in tests):
                continue

            def store(lane: int = lane, lane_element: Element = lane_element) -> None:
                scalar = scalars.lane(self.scopes, value, lane)
                self.scopes.run(builders.store(scalar, lane_element.buffer, self.scopes.indices(lane_element.index)))

            under(self.context, [test for test in tests if not test.always(self.scopes.ranges)], store)
