"""The elements of one block's accesses, their strides over lanes, and their masks.

A guard's condition that no test around the block has checked masks its accesses. A deferred condition (see
`deferred_conditions`) masks the accumulator only: the block then reads at its indices, clamped into the buffers'
bounds, so that the reduction's loop has neither test nor mask. A blended block (see `blends`) masks its reads, and
stores all lanes of its accumulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import vector
from xdsl.dialects.arith import AndIOp
from xdsl.dialects.builtin import MemRefType, i1
from xdsl.ir import Attribute, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.upstream import builders
from compiler.dialects.upstream.arith import CmpiOp
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.fragments import thread_element, warp_loop
from compiler.lowering.loop_to_low.scopes import INDEX
from compiler.lowering.loop_to_low.warp import fragment_use
from compiler.program.tree import Access, Block, Buffer


@dataclass(frozen=True)
class Element:
    """An element of a buffer, or one for each lane if the index, whose forms are over loops, has the lane variable."""

    buffer: SSAValue
    index: Sequence[Linear]

    @property
    def shape(self) -> Sequence[int]:
        """The extents of the buffer."""
        assert isinstance(self.buffer.type, MemRefType)
        return self.buffer.type.get_shape()

    @property
    def type(self) -> Attribute:
        """The element type."""
        assert isinstance(self.buffer.type, MemRefType)
        type: Attribute = self.buffer.type.element_type
        return type

    @cached_property
    def offset(self) -> Linear:
        """The offset from the buffer's first element, in elements in row-major order."""
        return lin.joined(lin.offset(self.index, self.shape))

    def stride(self, lane: int) -> int | None:
        """Return the distance of neighbouring lanes in elements, 0 if no index has the lane; None if it differs between
        lanes. Example: [i, 2*l] and [l, j] of a buffer [8, 16] have the strides 2 and 16 over l."""
        factors = [form.coefficient(lane) for form in self.index]
        if None in factors:
            return self.offset.coefficient(lane)
        return sum(factor * size for factor, size in zip(factors, lin.strides(self.shape), strict=True) if factor)


@dataclass(frozen=True)
class Strided:
    """An access with a constant stride: the first lane's indices, the lanes' offsets from it in elements, the mask. All
    lanes are active in the mask of an access without tests."""

    indices: list[SSAValue]
    offsets: SSAValue
    mask: SSAValue


class BlockLanes:
    """The accesses of one block: its axes as forms over loops, its elements, and its masks. `mask` is of the conditions
    `guard`, `accumulator_mask` of these and `deferred`, or if `blended` of `deferred` alone; each is None without
    conditions."""

    def __init__(
        self,
        context: Context,
        block: Block,
        guard: Sequence[Condition],
        deferred: Sequence[Condition] = (),
        blended: bool = False,
    ) -> None:
        self.context = context
        self.scopes = context.scopes
        self.block = block
        self.axes = context.axes(block)
        self.policy = context.policy
        self.guard = list(guard)
        self.deferred = list(deferred)
        self.blended = blended
        self._by_access: dict[int, Element] = {}  # by identity: they are the block's
        self.mask = self._mask(self.guard)
        if blended:
            self.accumulator_mask = self._mask(self.deferred)
        else:
            self.accumulator_mask = self._mask([*self.guard, *self.deferred]) if deferred else self.mask

    def _element(self, access: Access) -> Element:
        """Return the element of an access; a buffer inside a vectorized loop has the lane as its last dimension, a
        private one has an index in its thread's or warp's part."""
        element = self._by_access.get(id(access))
        if element is None:
            element = self._by_access[id(access)] = self._new_element(access)
        return element

    def _new_element(self, access: Access) -> Element:
        forms = self.context.substitute_axes(self.axes, access.index)
        threads = self.context.threads
        program = self.context.program
        if threads is not None and access.buffer in threads.parts:
            forms = threads.parts[access.buffer].at(forms, threads.numbers_of(program, access.buffer))
        if threads is not None and program.buffers[access.buffer].scope == "fragment":
            kind, *_ = fragment_use(program, program.buffers[access.buffer])
            lane, subject = warp_loop(program, self.block).number, f"block '{self.block.label}'"
            forms = [*forms[:-2], *thread_element(kind, forms[-2:], lane, self.scopes.ranges, subject)]
        if access.buffer in self.context.private:
            assert self.context.lane is not None
            forms.append(lin.variable(self.context.lane))
        return Element(self.context.buffers[access.buffer], forms)

    def _buffer(self, access: Access) -> Buffer:
        """Return the buffer of an access in the program, whose element type has the signedness."""
        return self.context.program.buffers[access.buffer]

    def _varies(self, forms: Sequence[Linear]) -> bool:
        return any(self.context.has_lanes(form) for form in forms)

    def contiguous(self, element: Element) -> bool:
        """Return whether an access has stride one over lanes, and on a GPU begins at a multiple of the lane count;
        false outside a vectorized loop."""
        lane = self.context.lane
        if lane is None or element.stride(lane) != 1:
            return False
        if self.context.threads is None:
            return True
        first_offset = self.context.at_lane(element.offset, 0)
        return all(
            number % self.context.lanes == 0 for number in (first_offset.constant, *(f for _, f in first_offset.terms))
        )

    def _strided(self, element: Element, tests: Sequence[Condition]) -> Strided | None:
        """Return an access with a constant stride over lanes, masked by `tests`; None for any other, and for i1."""
        assert self.context.lane is not None
        stride = element.stride(self.context.lane)
        if stride is None or element.type == i1:
            return None
        count = self.context.lanes
        indices = self._first_indices(element)
        offsets = self.scopes.constant(scalars.lane_offsets(stride, count))
        mask = self._mask(tests)
        if mask is None:
            mask = self.scopes.constant(scalars.all_lanes(count))
        return Strided(indices, offsets, mask)

    def _first_indices(self, element: Element) -> list[SSAValue]:
        return self.scopes.indices(self._in_lane(element, 0).index)

    def _in_lane(self, element: Element, lane: int) -> Element:
        return Element(element.buffer, [self.context.at_lane(form, lane) for form in element.index])

    def _index(self, form: Linear) -> SSAValue:
        """Return the value of an index form: a scalar, or a vector if it differs between lanes, put together lane by
        lane if the form is not linear in the lane. Raises LoweringError if these lanes exceed MAX_STATEMENTS."""
        if not self.context.has_lanes(form):
            return self.scopes.index(form)
        lane, count = self.context.lane, self.context.lanes
        assert lane is not None
        factor = form.coefficient(lane)
        if factor is None:
            self._count_lanes()
            values = [self.scopes.index(self.context.at_lane(form, n)) for n in range(count)]
            return self._vector_of(values, INDEX)
        offsets = self.scopes.constant(scalars.lane_offsets(factor, count))
        base = self.context.at_lane(form, 0)
        if base == lin.constant(0):
            return offsets
        start = scalars.broadcast_to_lanes(self.scopes, self.scopes.index(base), count)
        return self.scopes.add(builders.added(start, offsets))

    def _count_lanes(self) -> None:
        """Add the number of lanes to the statements of the nest's unrolled code. Raises LoweringError above
        MAX_STATEMENTS."""
        self.context.count_statements(self.context.lanes, f"block '{self.block.label}'")

    def _vector_of(self, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
        type = builders.vector_type(element, len(values))
        vector_ = self.scopes.constant(scalars.zeros(type))  # another start costs LLVM cubic time
        for position, value in enumerate(values):
            vector_ = self.scopes.add(vector.InsertOp(value, vector_, [position], type))
        return vector_

    def _mask(self, tests: Sequence[Condition]) -> SSAValue | None:
        """Emit the mask of the lanes in which all `tests` hold; None without tests. Requires a vectorized loop around
        for tests."""
        mask: SSAValue | None = None
        level = 0
        for test in tests:
            level = max(level, self._level(test))
            truth = self._lane_truth(test)
            mask = truth if mask is None else self._both(level, mask, truth)
        return mask

    def _level(self, test: Condition) -> int:
        """Return the level of the scope that computes a condition's mask: the innermost for a mask that is neither the
        same in all lanes nor a prefix, else the one that binds the condition's variables."""
        if self.context.has_lanes(test.form) and not self._is_prefix(test):
            return len(self.scopes.stack) - 1
        return self.scopes.level(self.context.at_lane(test.form, 0))

    def _is_prefix(self, test: Condition) -> bool:
        """Return whether a condition is true in a prefix of the lanes: its form decreases by one a lane."""
        assert self.context.lane is not None
        return not test.equal and test.form.coefficient(self.context.lane) == -1

    def _both(self, level: int, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.scopes.once(level, (left, "and", right), lambda: AndIOp(left, right))

    def _lane_truth(self, test: Condition) -> SSAValue:
        count = self.context.lanes
        type, level = builders.vector_type(i1, count), self._level(test)
        if not self.context.has_lanes(test.form):
            truth = self.context.truth(test)
            return self.scopes.once(level, (truth, "lanes", count), lambda: builders.broadcast(truth, count))
        if self._is_prefix(test):
            left = self.scopes.index(self.context.at_lane(test.form, 0) + lin.constant(1))
            return self.scopes.once(level, (left, "mask", count), lambda: vector.CreateMaskOp([left], type))
        values = self._index(test.form)
        zero = self.scopes.constant(scalars.dense([0] * count, INDEX))
        return self.scopes.add(CmpiOp(values, zero, "eq" if test.equal else "sge"))

    def _literal(self, value: Attribute | None, is_vector: bool) -> Attribute:
        assert value is not None
        return scalars.splat(value, self.context.lanes) if is_vector else value

    def _inside(self, element: Element) -> bool:
        """Return whether the ranges of the loops prove that an element is within its buffer even if its guard fails."""
        spans = [lin.bounds(form, self.scopes.ranges) for form in element.index]
        return all(low >= 0 and high < size for (low, high), size in zip(spans, element.shape, strict=True))

    def _inside_along_lanes(self, element: Element) -> bool:
        """Return whether the lanes are contiguous and the ranges of the loops prove that they are within the last
        dimension even if the guard fails."""
        if not self.contiguous(element):
            return False
        low, high = lin.bounds(element.index[-1], self.scopes.ranges)
        return low >= 0 and high < element.shape[-1]

    def is_whole(self, access: Access) -> bool:
        """Return whether a target is in bounds in all lanes even if the guard fails, and the lanes are contiguous or
        one element; false for a buffer with a copy for each lane."""
        if access.buffer in self.context.private:
            return False
        element = self._element(access)
        return (not self._varies(element.index) or self.contiguous(element)) and self._inside(element)

    def _safe_indices(self, element: Element) -> list[SSAValue]:
        """Emit an element's indices, scalars; clamped into the buffer if the block is blended or has deferred
        conditions."""
        if not self.deferred and not self.blended:
            return self.scopes.indices(element.index)
        return [self.scopes.clamped(form, size) for form, size in zip(element.index, element.shape, strict=True)]

    def _conditions_of_lane(self, lane: int, tests: Sequence[Condition]) -> list[Condition]:
        return [Condition(self.context.at_lane(test.form, lane), test.equal) for test in tests]
