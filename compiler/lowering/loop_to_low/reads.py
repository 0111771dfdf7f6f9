"""The reads of one block: scalar, vector, masked, lane by lane, under conditions; folded elements of constants.

A read with stride one over lanes is a vector load, one with another stride a gather, masked if a guard or condition
differs between lanes; any other is done lane by lane.
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
from compiler.lowering.loop_to_low.lanes import BlockLanes, Element
from compiler.lowering.loop_to_low.literals import Number, constant_element
from compiler.program.tree import Access
from compiler.support import spans
from compiler.support.actions import is_watched, remark


class Reader(BlockLanes):
    """The emitter of one block's reads."""

    def _read(self, access: Access) -> SSAValue:
        """Read an access: a scalar, or a vector if its index or its conditions vary with the lane; `otherwise` where
        its conditions fail."""
        element, otherwise = self._element(access), access.otherwise
        tests = self.context.conditions(access.where, self.axes)
        if otherwise is not None and any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(otherwise)
        tests = [test for test in tests if not test.always(self.scopes.ranges)]
        uniform_tests = [test for test in tests if not self.context.has_lanes(test.form)]
        lane_tests = [test for test in tests if self.context.has_lanes(test.form)]
        masking = self._masking(element, tests)
        if not uniform_tests:
            return self._load(element, masking, lane_tests, otherwise)
        is_vector = bool(lane_tests) or self._varies(element.index)
        return self._either(
            uniform_tests, is_vector, lambda: self._load(element, masking, lane_tests, otherwise), otherwise
        )

    def _accumulator(self, access: Access) -> SSAValue:
        """Read a target before the block combines, in the lanes that the block will write, all if it is blended; other
        lanes are 0. Without a mask, and if the lanes are not contiguous, it is read as any access."""
        element = self._element(access)
        if not self.contiguous(element) or (self.accumulator_mask is None and not self.blended):
            return self._read(access)
        indices = self._first_indices(element)
        if self.accumulator_mask is None:
            return self.scopes.add(builders.load_lanes(element.buffer, indices, self.context.lanes))
        pass_through = self.scopes.constant(self._literal(_zero(element.type), True))
        return self.scopes.add(builders.load_masked(element.buffer, indices, self.accumulator_mask, pass_through))

    def _either(
        self, tests: Sequence[Condition], is_vector: bool, load: Callable[[], SSAValue], otherwise: Attribute | None
    ) -> SSAValue:
        """Emit `load` in an scf.if on `tests`, which are the same in all lanes, and the literal `otherwise`, 0 for
        None, in its else region, in each lane if `is_vector`; return the result."""
        truth = self.context.all_of(tests)
        with self.scopes.region() as body:
            value = load()
        body.add_op(scf.YieldOp(value))
        otherwise_value = self.scopes.constant(self._literal(otherwise, is_vector))
        fallback = Block([scf.YieldOp(otherwise_value)])
        return self.scopes.add(scf.IfOp(truth, [value.type], Region(body), Region(fallback)))

    def _load(
        self, element: Element, masking: Sequence[Condition], tests: Sequence[Condition], otherwise: Attribute | None
    ) -> SSAValue:
        """Load under `tests`, which differ between lanes, and `masking`, the guard's conditions that mask reads. In a
        lane where a test fails the value is `otherwise`, or 0 if that is None."""
        buffer = element.buffer
        literal = None if masking or tests else self._literals(element)
        if literal is not None:
            return self.scopes.constant(literal)
        if not self._varies(element.index) and not tests:
            return self.scopes.add(builders.load(buffer, self._safe_indices(element)))
        tests = [*masking, *tests]
        if not self.contiguous(element):
            return self._load_strided(element, tests, otherwise)
        mask = self._mask(tests)
        if mask is None:
            indices = self._safe_indices(self._in_lane(element, 0))
            return self.scopes.add(builders.load_lanes(buffer, indices, self.context.lanes))
        indices, pass_through = self._first_indices(element), self._literal(_fallback(element, otherwise), True)
        return self.scopes.add(builders.load_masked(buffer, indices, mask, self.scopes.constant(pass_through)))

    def _load_strided(self, element: Element, tests: Sequence[Condition], otherwise: Attribute | None) -> SSAValue:
        """Load lanes that are not contiguous: by a gather if their stride is constant, else lane by lane. Lanes in
        which a test fails are `otherwise`, 0 if that is None."""
        fallback, strided = _fallback(element, otherwise), self._strided(element, tests)
        if is_watched():
            how = "one by one: their stride varies" if strided is None else "by a gather: their stride is not 1"
            lanes = f"the {self.context.lanes} lanes of block '{self.block.label}'"
            sentence = f"{lanes} load '%{element.buffer.name_hint}' {how}"
            remark("missed", "loop-to-low", sentence, spans.of_location(self.block.location))
        if strided is None:
            return self._load_lanes(element, tests, fallback)
        default = self.scopes.constant(self._literal(fallback, True))
        return self.scopes.add(GatherOp(element.buffer, strided.indices, strided.offsets, strided.mask, default))

    def known(self, access: Access) -> Number | None:
        """Return the element of a constant that all lanes read unconditionally; None for other accesses, for NaN, and
        for indices that are not constant unless all elements are equal."""
        constant = self.context.program.stated.get(access.buffer)
        if constant is None or not all(t.always(self.scopes.ranges) for t in self._tests(access)):
            return None
        index = self.context.substitute_axes(self.axes, access.index)
        is_known = constant.data.is_splat or all(form.is_constant for form in index)
        return constant_element(constant, [form.constant for form in index]) if is_known else None

    def _literals(self, element_: Element) -> builders.Constant | None:
        """Return a constant's element as a number if it is a splat or all lanes read the same element, else its
        elements as a vector. None if the buffer is no constant, an element is NaN, or an index into a constant that is
        no splat is not constant in each lane."""
        constant = self.context.constants.get(element_.buffer)
        if constant is None:
            return None
        if constant.data.is_splat:
            return constant_element(constant, [0] * len(element_.index))
        lanes = range(self.context.lanes if self._varies(element_.index) else 1)
        index = [self._in_lane(element_, n).index if self.context.lane is not None else element_.index for n in lanes]
        if not all(form.is_constant for forms in index for form in forms):
            return None
        elements = [constant_element(constant, [form.constant for form in forms]) for forms in index]
        numbers = [number for number in elements if number is not None]
        if len(numbers) < len(elements):
            return None
        return scalars.dense([n.value.data for n in numbers], numbers[0].type) if len(numbers) > 1 else numbers[0]

    def _tests(self, access: Access) -> list[Condition]:
        return self.context.conditions(access.where, self.axes)

    def _masking(self, element: Element, tests: Sequence[Condition]) -> list[Condition]:
        """Return the guard's conditions that mask a read: the untested ones, and deferred ones that may keep the read
        within its buffer.

        A deferred condition that shares no variable with the index, the tests or another condition cannot keep the
        index in bounds, so it need not mask. So partial rows read the same vectors as full rows. No condition masks if
        the lanes are contiguous and in bounds: clamping the other indices, which all lanes share, moves no active lane.
        """
        if not self.deferred or self._inside(element) or self._inside_along_lanes(element):
            return self.guard
        ranges = self.scopes.ranges
        guard = self.context.conditions(self.block.guard, self.context.values)
        conditions = [c for c in guard if not c.always(ranges)]
        masking = list(self.guard)
        for condition in self.deferred:
            other_forms = [*element.index, *(c.form for c in (*tests, *conditions) if c != condition)]
            is_independent = condition.form.variables().isdisjoint(
                set().union(*(form.variables() for form in other_forms))
            )
            if condition.equal or not is_independent:
                masking.append(condition)
        return masking

    def _load_lanes(self, element: Element, tests: Sequence[Condition], fallback: Attribute) -> SSAValue:
        self._count_lanes()
        values = []
        for lane in range(self.context.lanes):
            values.append(
                self._load_lane(self._in_lane(element, lane), self._conditions_of_lane(lane, tests), fallback)
            )
        return self._vector_of(values, element.type)

    def _load_lane(self, element: Element, tests: Sequence[Condition], fallback: Attribute) -> SSAValue:
        def load() -> SSAValue:
            return self.scopes.add(builders.load(element.buffer, self.scopes.indices(element.index)))

        return self._tested(tests, load, fallback)

    def _tested(self, tests: Sequence[Condition], read: Callable[[], SSAValue], fallback: Attribute) -> SSAValue:
        """Emit `read` for one lane, in an scf.if on the `tests` that may fail; the value is `fallback` where a test
        fails. Nothing is read if one always fails."""
        if any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(fallback)
        open_tests = [test for test in tests if not test.always(self.scopes.ranges)]
        return self._either(open_tests, False, read, fallback) if open_tests else read()


def _fallback(element: Element, otherwise: Attribute | None) -> Attribute:
    return _zero(element.type) if otherwise is None else otherwise


def _zero(element: Attribute) -> Attribute:
    return identity("add", element)
