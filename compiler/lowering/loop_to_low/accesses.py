"""The reads and writes of one block: plain, masked, lane by lane, under conditions.

An access that steps by one element a lane is a vector load or store, one with another stride a gather or scatter,
masked where a guard or condition differs between lanes; any other goes lane by lane.

Guards come in two kinds. A condition that no test around the block has settled masks its accesses. A condition that the
block is free of (see `free_of`) only decides which lanes of the accumulator are kept: the block then reads whatever
lies at its indices, clamped into the buffers' bounds, so that the reduction's loop has neither test nor mask. A blended
block (see `blends`) masks its reads, and stores its accumulator whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import scf, vector
from xdsl.dialects.arith import AndIOp
from xdsl.dialects.builtin import MemRefType, i1
from xdsl.ir import Attribute, Block, Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.combiner import identity
from compiler.dialects.upstream import builders
from compiler.dialects.upstream.arith import CmpiOp
from compiler.dialects.upstream.vector import GatherOp
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.literals import Number, element
from compiler.lowering.loop_to_low.scopes import INDEX
from compiler.program.tree import Access, Buffer
from compiler.program.tree import Block as Computed
from compiler.support.errors import LoweringError


def under(context: Context, tests: Sequence[Condition], emit: Callable[[], None]) -> None:
    """Emit under the conjunction of tests without lanes."""
    if not tests:
        emit()
        return
    truth = context.all_of(tests)
    with context.scopes.region() as body:
        emit()
    body.add_op(scf.YieldOp())
    context.scopes.run(scf.IfOp(truth, [], Region(body)))


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
class _Strided:
    """An access with a stride: where the first lane is, how far behind it the others are, which of them take part."""

    places: list[SSAValue]
    steps: SSAValue
    mask: SSAValue


class Accessor:
    """The accesses of one block: the forms of its axes, its mask, its buffers."""

    def __init__(
        self,
        context: Context,
        block: Computed,
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

    def _strided(self, element: Element, tests: Sequence[Condition]) -> _Strided | None:
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
        return _Strided(places, steps, mask)

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

    def _read(self, access: Access) -> SSAValue:
        """The value read, a vector where it differs from lane to lane."""
        element, otherwise = self._element(access), access.otherwise
        tests = self.context.conditions(access.where, self.axes)
        if otherwise is not None and any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(otherwise)
        tests = [test for test in tests if not test.always(self.scopes.ranges)]
        uniform = [test for test in tests if not self.context.has_lanes(test.form)]
        lanes = [test for test in tests if self.context.has_lanes(test.form)]
        masking = self._masking(element, tests)
        if not uniform:
            return self._load(element, masking, lanes, otherwise)
        wide = bool(lanes) or self._varies(element.index)
        return self._either(uniform, wide, lambda: self._load(element, masking, lanes, otherwise), otherwise)

    def _held(self, access: Access) -> SSAValue:
        """The target's value before this block combines, in the lanes that the block will write."""
        element = self._element(access)
        if not self.contiguous(element) or (self.kept is None and not self.blended):
            return self._read(access)
        places = self._first(element)
        if self.kept is None:
            return self.scopes.add(builders.load_lanes(element.buffer, places, self.context.lanes))
        through = self.scopes.constant(self._literal(_zero(element.type), True))
        return self.scopes.add(builders.load_masked(element.buffer, places, self.kept, through))

    def _either(
        self,
        tests: Sequence[Condition],
        wide: bool,
        load: Callable[[], SSAValue],
        otherwise: Attribute | None,
    ) -> SSAValue:
        """scf.if over tests without lanes, with the value read where they fail."""
        truth = self.context.all_of(tests)
        with self.scopes.region() as body:
            value = load()
        body.add_op(scf.YieldOp(value))
        default = self.scopes.constant(self._literal(otherwise, wide))
        fallback = Block([scf.YieldOp(default)])
        return self.scopes.add(scf.IfOp(truth, [value.type], Region(body), Region(fallback)))

    def _literal(self, value: Attribute | None, wide: bool) -> Attribute:
        assert value is not None
        return scalars.splat(value, self.context.lanes) if wide else value

    def _load(
        self, element: Element, masking: Sequence[Condition], tests: Sequence[Condition], otherwise: Attribute | None
    ) -> SSAValue:
        """Load under tests that differ between lanes, and under the block's own conditions that mask reads."""
        buffer = element.buffer
        literal = None if masking or tests else self._literals(element)
        if literal is not None:
            return self.scopes.constant(literal)
        if not self._varies(element.index) and not tests:
            return self.scopes.add(builders.load(buffer, self._places(element)))
        tests = [*masking, *tests]
        if not self.contiguous(element):
            return self._load_apart(element, tests, otherwise)
        mask = self._mask(tests)
        if mask is None:
            places = self._places(self._in_lane(element, 0))
            return self.scopes.add(builders.load_lanes(buffer, places, self.context.lanes))
        places, through = self._first(element), self._literal(_fallback(element, otherwise), True)
        return self.scopes.add(builders.load_masked(buffer, places, mask, self.scopes.constant(through)))

    def _load_apart(self, element: Element, tests: Sequence[Condition], otherwise: Attribute | None) -> SSAValue:
        """Load lanes that are no neighbours."""
        fallback, strided = _fallback(element, otherwise), self._strided(element, tests)
        if strided is None:
            return self._load_lanes(element, tests, fallback)
        default = self.scopes.constant(self._literal(fallback, True))
        return self.scopes.add(GatherOp(element.buffer, strided.places, strided.steps, strided.mask, default))

    def known(self, access: Access) -> Number | None:
        """The number read, if it is an element of a constant that is the same in all lanes, whatever tests say."""
        stated = self.context.program.stated.get(access.buffer)
        if stated is None or not all(t.always(self.scopes.ranges) for t in self._tests(access)):
            return None
        index = self.context.over(self.axes, access.index)
        is_known = stated.data.is_splat or all(form.is_constant for form in index)
        return element(stated, [form.constant for form in index]) if is_known else None

    def _literals(self, place: Element) -> builders.Constant | None:
        """The elements of a constant where the index is known but for the lane: a number, or one a lane."""
        stated = self.context.constants.get(place.buffer)
        if stated is None:
            return None
        if stated.data.is_splat:
            return element(stated, [0] * len(place.index))
        lanes = range(self.context.lanes if self._varies(place.index) else 1)
        index = [self._in_lane(place, n).index if self.context.lane is not None else place.index for n in lanes]
        if not all(form.is_constant for forms in index for form in forms):
            return None
        elements = [element(stated, [form.constant for form in forms]) for forms in index]
        numbers = [number for number in elements if number is not None]
        if len(numbers) < len(elements):
            return None
        return scalars.dense([n.value.data for n in numbers], numbers[0].type) if len(numbers) > 1 else numbers[0]

    def _tests(self, access: Access) -> list[Condition]:
        return self.context.conditions(access.where, self.axes)

    def _masking(self, element: Element, tests: Sequence[Condition]) -> list[Condition]:
        """The block's conditions that mask a read under its own tests: the settled ones, and free conditions that may
        keep the read inside its buffer.

        A free condition that shares no variable with the index, the tests or any other condition does not decide
        whether the index is inside, so it need not mask. So rows that may be missing read the same vectors as rows that
        exist. No condition masks where the lanes are contiguous and inside: clamping the other indices, which all lanes
        share, moves no active lane.
        """
        if not self.free or self._inside(element) or self._inside_along_lanes(element):
            return self.guard
        ranges = self.scopes.ranges
        guard = self.context.conditions(self.block.guard, self.context.values)
        every = [c for c in guard if not c.always(ranges)]
        masking = list(self.guard)
        for condition in self.free:
            other_forms = [*element.index, *(c.form for c in (*tests, *every) if c != condition)]
            apart = condition.form.variables().isdisjoint(set().union(*(form.variables() for form in other_forms)))
            if condition.equal or not apart:
                masking.append(condition)
        return masking

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

    def _load_lanes(self, element: Element, tests: Sequence[Condition], fallback: Attribute) -> SSAValue:
        self._count_lanes()
        values = []
        for lane in range(self.context.lanes):
            values.append(self._load_lane(self._in_lane(element, lane), self._at(lane, tests), fallback))
        return self._gathered(values, element.type)

    def _load_lane(self, element: Element, tests: Sequence[Condition], fallback: Attribute) -> SSAValue:
        if any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(fallback)

        def load() -> SSAValue:
            return self.scopes.add(builders.load(element.buffer, self.scopes.indices(element.index)))

        open = [test for test in tests if not test.always(self.scopes.ranges)]
        return self._either(open, False, load, fallback) if open else load()

    def _at(self, lane: int, tests: Sequence[Condition]) -> list[Condition]:
        return [Condition(self.context.at_lane(test.form, lane), test.equal) for test in tests]

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


def _fallback(element: Element, otherwise: Attribute | None) -> Attribute:
    """The value of lanes that are not read."""
    return _zero(element.type) if otherwise is None else otherwise


def _zero(element: Attribute) -> Attribute:
    return identity("add", element)
