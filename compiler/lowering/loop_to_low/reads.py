"""The reads of one block: plain, masked, lane by lane, under conditions; constants that are known.

A read that steps by one element a lane is a vector load, one with another stride a gather, masked where a guard or
condition differs between lanes; any other goes lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Region, SSAValue

from compiler.affine.condition import Condition
from compiler.dialects.combiner import identity
from compiler.dialects.upstream import builders
from compiler.dialects.upstream.vector import GatherOp
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.lanes import Element, Lanes
from compiler.lowering.loop_to_low.literals import Number, element
from compiler.program.tree import Access


class Reader(Lanes):
    """The reads of one block."""

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

    def _load_lanes(self, element: Element, tests: Sequence[Condition], fallback: Attribute) -> SSAValue:
        self._count_lanes()
        values = []
        for lane in range(self.context.lanes):
            values.append(self._load_lane(self._in_lane(element, lane), self._at(lane, tests), fallback))
        return self._gathered(values, element.type)

    def _load_lane(self, element: Element, tests: Sequence[Condition], fallback: Attribute) -> SSAValue:
        def load() -> SSAValue:
            return self.scopes.add(builders.load(element.buffer, self.scopes.indices(element.index)))

        return self._tested(tests, load, fallback)

    def _tested(self, tests: Sequence[Condition], read: Callable[[], SSAValue], fallback: Attribute) -> SSAValue:
        """What is read of one lane where all tests hold, which are known in part; the fallback elsewhere."""
        if any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(fallback)
        open = [test for test in tests if not test.always(self.scopes.ranges)]
        return self._either(open, False, read, fallback) if open else read()


def _fallback(element: Element, otherwise: Attribute | None) -> Attribute:
    """The value of lanes that are not read."""
    return _zero(element.type) if otherwise is None else otherwise


def _zero(element: Attribute) -> Attribute:
    return identity("add", element)
