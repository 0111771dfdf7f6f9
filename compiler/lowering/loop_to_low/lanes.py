"""Where the accesses of one block are, and in which lanes they happen: elements, strides, masks.

Guards come in two kinds. A condition that no test around the block has settled masks its accesses. A condition that the
block is free of (see `free_of`) only decides which lanes of the accumulator are kept: the block then reads whatever
lies at its indices, clamped into the buffers' bounds, so that the reduction's loop has neither test nor mask. A blended
block (see `blends`) masks its reads, and stores its accumulator whole.
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
from compiler.lowering.loop_to_low.scopes import INDEX
from compiler.program.tree import Access, Block, Buffer


@dataclass(frozen=True)
class Element:
    """An element of a buffer, or one a lane: the index as forms over loops."""

    buffer: SSAValue
    index: Sequence[Linear]

    @property
    def shape(self) -> Sequence[int]:
        """The buffer's extents."""
        assert isinstance(self.buffer.type, MemRefType)
        return self.buffer.type.get_shape()

    @property
    def type(self) -> Attribute:
        """The type of its value."""
        assert isinstance(self.buffer.type, MemRefType)
        type: Attribute = self.buffer.type.element_type
        return type

    @cached_property
    def offset(self) -> Linear:
        """Its place among the buffer's elements in row-major order."""
        return lin.joined(lin.offset(self.index, self.shape))

    def stride(self, lane: int) -> int | None:
        """By how many elements it steps from lane to lane; None where that is not the same for all lanes."""
        factors = [form.coefficient(lane) for form in self.index]
        if None in factors:
            return self.offset.coefficient(lane)
        return sum(factor * size for factor, size in zip(factors, lin.strides(self.shape), strict=True) if factor)


@dataclass(frozen=True)
class Strided:
    """An access with a stride: where the first lane is, how far behind it the others are, which of them take part."""

    places: list[SSAValue]
    steps: SSAValue
    mask: SSAValue


class Lanes:
    """The accesses of one block as places: the forms of its axes, its mask, its buffers."""

    def __init__(
        self,
        context: Context,
        block: Block,
        guard: Sequence[Condition],
        free: Sequence[Condition] = (),
        blended: bool = False,
    ) -> None:
        self.context = context
        self.scopes = context.scopes
        self.block = block
        self.axes = context.axes(block)
        self.policy = context.policy
        self.guard = list(guard)
        self.free = list(free)
        self.blended = blended
        self._by_access: dict[int, Element] = {}  # by identity: they are the block's
        self.mask = self._mask(self.guard)
        if blended:
            self.kept = self._mask(self.free)
        else:
            self.kept = self._mask([*self.guard, *self.free]) if free else self.mask

    def _element(self, access: Access) -> Element:
        """The element of an access; a buffer that lives inside a vectorized loop has the lane as its last dimension."""
        element = self._by_access.get(id(access))
        if element is None:
            element = self._by_access[id(access)] = self._find_element(access)
        return element

    def _find_element(self, access: Access) -> Element:
        forms = self.context.over(self.axes, access.index)
        threads = self.context.threads
        if threads is not None and access.buffer in threads.parts:
            forms = threads.parts[access.buffer].at(forms, threads.numbers)
        if access.buffer in self.context.private:
            assert self.context.lane is not None
            forms.append(lin.variable(self.context.lane))
        return Element(self.context.buffers[access.buffer], forms)

    def _buffer(self, access: Access) -> Buffer:
        """The buffer of an access as the program has it, whose element type says the sign."""
        return self.context.program.buffers[access.buffer]

    def _varies(self, forms: Sequence[Linear]) -> bool:
        return any(self.context.has_lanes(form) for form in forms)

    def contiguous(self, element: Element) -> bool:
        """Whether an access steps by one element a lane; on a GPU also from a multiple of the lanes, as it must."""
        lane = self.context.lane
        if lane is None or element.stride(lane) != 1:
            return False
        if self.context.threads is None:
            return True
        first = self.context.at_lane(element.offset, 0)
        return all(number % self.context.lanes == 0 for number in (first.constant, *(f for _, f in first.terms)))

    def _strided(self, element: Element, tests: Sequence[Condition]) -> Strided | None:
        """The places and the mask of an access that steps by the same number of elements from lane to lane."""
        assert self.context.lane is not None
        stride = element.stride(self.context.lane)
        if stride is None or element.type == i1:
            return None
        count = self.context.lanes
        places = self._first(element)
        steps = self.scopes.constant(scalars.multiples(stride, count))
        mask = self._mask(tests)
        if mask is None:
            mask = self.scopes.constant(scalars.all_lanes(count))
        return Strided(places, steps, mask)

    def _first(self, element: Element) -> list[SSAValue]:
        """The indices of the first lane."""
        return self.scopes.indices(self._in_lane(element, 0).index)

    def _in_lane(self, element: Element, lane: int) -> Element:
        """The element that one lane accesses."""
        return Element(element.buffer, [self.context.at_lane(form, lane) for form in element.index])

    def _index(self, form: Linear) -> SSAValue:
        """The value of an axis, one a lane where it differs."""
        if not self.context.has_lanes(form):
            return self.scopes.index(form)
        lane, count = self.context.lane, self.context.lanes
        assert lane is not None
        factor = form.coefficient(lane)
        if factor is None:
            self._count_lanes()
            values = [self.scopes.index(self.context.at_lane(form, n)) for n in range(count)]
            return self._gathered(values, INDEX)
        steps = self.scopes.constant(scalars.multiples(factor, count))
        base = self.context.at_lane(form, 0)
        if base == lin.constant(0):
            return steps
        start = scalars.widen(self.scopes, self.scopes.index(base), count)
        return self.scopes.add(builders.added(start, steps))

    def _count_lanes(self) -> None:
        """Count accesses that are emitted lane by lane as unrolled code."""
        self.context.add_copies(self.context.lanes, f"block '{self.block.label}'")

    def _gathered(self, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
        type = builders.vector_type(element, len(values))
        gathered = self.scopes.constant(scalars.zeros(type))  # LLVM takes cubic time over a chain that begins otherwise
        for position, value in enumerate(values):
            gathered = self.scopes.add(vector.InsertOp(value, gathered, [position], type))
        return gathered

    def _mask(self, tests: Sequence[Condition]) -> SSAValue | None:
        """The lanes in which conditions hold, or None where that is all of them."""
        mask: SSAValue | None = None
        level = 0
        for test in tests:
            level = max(level, self._level(test))
            truth = self._lane_truth(test)
            mask = truth if mask is None else self._both(level, mask, truth)
        return mask

    def _level(self, test: Condition) -> int:
        """The scope where the mask of a test can stand."""
        if self.context.has_lanes(test.form) and not self._cuts(test):
            return len(self.scopes.stack) - 1
        return self.scopes.level(self.context.at_lane(test.form, 0))

    def _cuts(self, test: Condition) -> bool:
        """Whether a test holds in the first lanes, up to some lane."""
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
        if self._cuts(test):
            left = self.scopes.index(self.context.at_lane(test.form, 0) + lin.constant(1))
            return self.scopes.once(level, (left, "mask", count), lambda: vector.CreateMaskOp([left], type))
        values = self._index(test.form)
        zero = self.scopes.constant(scalars.dense([0] * count, INDEX))
        return self.scopes.add(CmpiOp(values, zero, "eq" if test.equal else "sge"))

    def _literal(self, value: Attribute | None, wide: bool) -> Attribute:
        assert value is not None
        return scalars.splat(value, self.context.lanes) if wide else value

    def _inside(self, element: Element) -> bool:
        """Whether an access stays inside its buffer whatever the guards say."""
        spans = [lin.bounds(form, self.scopes.ranges) for form in element.index]
        return all(low >= 0 and high < size for (low, high), size in zip(spans, element.shape, strict=True))

    def _inside_along_lanes(self, element: Element) -> bool:
        """Whether the lanes are neighbours along the last dimension, all inside it whatever the guards say."""
        if not self.contiguous(element):
            return False
        low, high = lin.bounds(element.index[-1], self.scopes.ranges)
        return low >= 0 and high < element.shape[-1]

    def is_whole(self, access: Access) -> bool:
        """Whether a target's lanes, all inside its buffer, are neighbours in a vector, or all the same element."""
        if access.buffer in self.context.private:
            return False
        element = self._element(access)
        return (not self._varies(element.index) or self.contiguous(element)) and self._inside(element)

    def _places(self, element: Element) -> list[SSAValue]:
        """The indices of one element; where no test stands before a guard, inside the buffer whatever it says."""
        if not self.free and not self.blended:
            return self.scopes.indices(element.index)
        return [self.scopes.clamped(form, size) for form, size in zip(element.index, element.shape, strict=True)]

    def _at(self, lane: int, tests: Sequence[Condition]) -> list[Condition]:
        return [Condition(self.context.at_lane(test.form, lane), test.equal) for test in tests]
