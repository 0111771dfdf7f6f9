"""The reads and writes of one block: plain, masked, lane by lane, under conditions.

An access that steps by one element a lane is a vector load or store, one with another stride a gather or scatter,
masked where a guard or condition differs between lanes; any other goes lane by lane.

Guards come in two kinds. Those that a test around the block has not settled mask what it does. Those that the block
is free of (see `free_of`) only decide which lanes of its accumulator are kept: it computes on whatever its reads find
there, moved into the buffers' bounds, so that no test and no mask stands inside the reduction's loop. A block that is
blended (see `blends`) masks its reads, and stores its accumulator whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.arith import AddiOp, AndIOp
from xdsl.dialects.builtin import BoolAttr, MemRefType, VectorType, i1
from xdsl.ir import Attribute, Block, Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.combiner import identity
from compiler.dialects.upstream.arith import CmpiOp
from compiler.dialects.upstream.vector import GatherOp, ScatterOp
from compiler.errors import LoweringError
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.scopes import INDEX
from compiler.program.tree import Access, Buffer
from compiler.program.tree import Block as Computed


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
        self.guard = list(guard)
        self.free = list(free)
        self.blended = blended
        self.mask = self._mask(self.guard)
        if blended:
            self.kept = self._mask(self.free)
        else:
            self.kept = self._mask([*self.guard, *self.free]) if free else self.mask

    def _forms(self, access: Access) -> list[Linear]:
        """Where a buffer is accessed; one that lives inside a vectorized loop has the lane as its last dimension."""
        forms = self.context.over(self.axes, access.index)
        threads = self.context.threads
        if threads is not None and access.buffer in threads.parts:
            forms = threads.parts[access.buffer].at(forms, threads.numbers)
        if access.buffer in self.context.private:
            assert self.context.lane is not None
            forms.append(lin.variable(self.context.lane))
        return forms

    def _buffer(self, access: Access) -> Buffer:
        """The buffer of an access as the program has it, whose element type says the sign."""
        return self.context.program.buffers[access.buffer]

    def _varies(self, forms: Sequence[Linear]) -> bool:
        return any(self.context.has_lanes(form) for form in forms)

    def contiguous(self, buffer: SSAValue, forms: Sequence[Linear]) -> bool:
        """Whether an access steps by one element a lane; on a GPU also from a multiple of the lanes, as it must."""
        if self.context.lane is None or self._stride(buffer, forms) != 1:
            return False
        if self.context.threads is None:
            return True
        first = self.context.at_lane(self._offset(buffer, forms), 0)
        return all(number % self.context.lanes == 0 for number in (first.constant, *(f for _, f in first.terms)))

    def _stride(self, buffer: SSAValue, forms: Sequence[Linear]) -> int | None:
        """By how many elements of a buffer in row-major order an access steps a lane; None if that differs."""
        assert self.context.lane is not None
        return self._offset(buffer, forms).coefficient(self.context.lane)

    def _offset(self, buffer: SSAValue, forms: Sequence[Linear]) -> Linear:
        """The place of an access among a buffer's elements in row-major order."""
        assert isinstance(buffer.type, MemRefType)
        shape, offset = buffer.type.get_shape(), lin.constant(0)
        for d, form in enumerate(forms):
            offset = offset + form.scaled(prod(shape[d + 1 :]))
        return lin.joined(offset)

    def _strided(self, buffer: SSAValue, forms: Sequence[Linear], tests: Sequence[Condition]) -> _Strided | None:
        """The places and the mask of an access that steps by the same number of elements from lane to lane."""
        stride = self._stride(buffer, forms)
        assert isinstance(buffer.type, MemRefType)
        if stride is None or buffer.type.element_type == i1:
            return None
        count = self.context.lanes
        places = self._first(forms)
        steps = self.scopes.constant(scalars.dense([stride * n for n in range(count)], INDEX))
        mask = self._mask(tests)
        if mask is None:
            mask = self.scopes.constant(scalars.dense([1] * count, i1))
        return _Strided(places, steps, mask)

    def _first(self, forms: Sequence[Linear]) -> list[SSAValue]:
        """The indices of the first lane."""
        return self.scopes.indices(self.context.at_lane(form, 0) for form in forms)

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
        steps = self.scopes.constant(scalars.dense([factor * n for n in range(count)], INDEX))
        base = self.context.at_lane(form, 0)
        if base == lin.constant(0):
            return steps
        start = scalars.widen(self.scopes, self.scopes.index(base), count)
        return self.scopes.add(AddiOp(start, steps))

    def _count_lanes(self) -> None:
        """Count what is done lane by lane as unrolled code."""
        self.context.add_copies(self.context.lanes, f"block '{self.block.label}'")

    def _gathered(self, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
        type = VectorType(element, [len(values)])
        result = self.scopes.constant(scalars.zeros(type))  # LLVM takes cubic time over a chain that begins otherwise
        for position, value in enumerate(values):
            result = self.scopes.add(vector.InsertOp(value, result, [position], type))
        return result

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

    def _both(self, level: int, one: SSAValue, other: SSAValue) -> SSAValue:
        return self.scopes.once(level, (one, "and", other), lambda: AndIOp(one, other))

    def _lane_truth(self, test: Condition) -> SSAValue:
        count = self.context.lanes
        type, level = VectorType(i1, [count]), self._level(test)
        if not self.context.has_lanes(test.form):
            truth = self.context.truth(test)
            return self.scopes.once(level, (truth, "lanes", count), lambda: vector.BroadcastOp(truth, type))
        if self._cuts(test):
            left = self.scopes.index(self.context.at_lane(test.form, 0) + lin.constant(1))
            return self.scopes.once(level, (left, "mask", count), lambda: vector.CreateMaskOp([left], type))
        values = self._index(test.form)
        zero = self.scopes.constant(scalars.dense([0] * count, INDEX))
        return self.scopes.add(CmpiOp(values, zero, "eq" if test.equal else "sge"))

    def _read(self, access: Access) -> SSAValue:
        """The value read, a vector where it differs from lane to lane."""
        forms, otherwise = self._forms(access), access.otherwise
        buffer = self.context.buffers[access.buffer]
        tests = self.context.conditions(access.where, self.axes)
        if otherwise is not None and any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(otherwise)
        tests = [test for test in tests if not test.always(self.scopes.ranges)]
        uniform = [test for test in tests if not self.context.has_lanes(test.form)]
        lanes = [test for test in tests if self.context.has_lanes(test.form)]
        own = self._masking(buffer, forms, tests)
        if not uniform:
            return self._load(buffer, forms, own, lanes, otherwise)
        wide = bool(lanes) or self._varies(forms)
        return self._either(uniform, wide, lambda: self._load(buffer, forms, own, lanes, otherwise), otherwise)

    def _held(self, access: Access) -> SSAValue:
        """What a target holds before this block combines: of the lanes that the block will write."""
        forms = self._forms(access)
        buffer = self.context.buffers[access.buffer]
        if not self.contiguous(buffer, forms) or (self.kept is None and not self.blended):
            return self._read(access)
        assert isinstance(buffer.type, MemRefType)
        places = self._first(forms)
        if self.kept is None:
            return self.scopes.add(
                vector.LoadOp(buffer, places, VectorType(buffer.type.element_type, [self.context.lanes]))
            )
        through = self.scopes.constant(self._literal(_zero(buffer.type.element_type), True))
        return self.scopes.add(vector.MaskedLoadOp(buffer, places, self.kept, through))

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
        other = Block([scf.YieldOp(default)])
        return self.scopes.add(scf.IfOp(truth, [value.type], Region(body), Region(other)))

    def _literal(self, value: Attribute | None, wide: bool) -> Attribute:
        assert value is not None
        return scalars.splat(value, self.context.lanes) if wide else value  # type: ignore[arg-type]

    def _load(
        self,
        buffer: SSAValue,
        forms: Sequence[Linear],
        own: Sequence[Condition],
        tests: Sequence[Condition],
        otherwise: Attribute | None,
    ) -> SSAValue:
        """Load under tests that differ between lanes and under those of the block's own conditions that mask reads."""
        if not self._varies(forms) and not tests:
            return self.scopes.add(memref.LoadOp.get(buffer, self._places(buffer, forms)))
        assert isinstance(buffer.type, MemRefType)
        type = VectorType(buffer.type.element_type, [self.context.lanes])
        tests = [*own, *tests]
        rest = otherwise if otherwise is not None else _zero(buffer.type.element_type)
        through = self._literal(rest, True)
        if not self.contiguous(buffer, forms):
            found = self._strided(buffer, forms, tests)
            if found is None:
                return self._load_lanes(buffer, forms, tests, rest)
            return self.scopes.add(
                GatherOp(buffer, found.places, found.steps, found.mask, self.scopes.constant(through))
            )
        places = self._first(forms)
        mask = self._mask(tests)
        if mask is None:
            return self.scopes.add(vector.LoadOp(buffer, places, type))
        return self.scopes.add(vector.MaskedLoadOp(buffer, places, mask, self.scopes.constant(through)))

    def _masking(self, buffer: SSAValue, forms: Sequence[Linear], tests: Sequence[Condition]) -> list[Condition]:
        """The block's conditions that mask a read under its own tests: of the free ones those that may keep it inside
        its buffer.

        A condition that shares no variable with the place, the tests or any other condition, settled or not, may hold
        wherever the place is, and there it is inside. So rows that may be missing read the same vectors as those that
        are there.
        """
        if not self.free or self._inside(buffer, forms):
            return self.guard
        ranges = self.scopes.ranges
        guard = self.context.conditions(self.block.guard, self.context.values)
        every = [c for c in guard if not c.always(ranges)]
        found = list(self.guard)
        for condition in self.free:
            others = [*forms, *(c.form for c in (*tests, *every) if c != condition)]
            apart = condition.form.variables().isdisjoint(set().union(*(form.variables() for form in others)))
            if condition.equal or not apart:
                found.append(condition)
        return found

    def _inside(self, buffer: SSAValue, forms: Sequence[Linear]) -> bool:
        """Whether an access stays inside its buffer whatever the guards say."""
        assert isinstance(buffer.type, MemRefType)
        spans = [lin.bounds(form, self.scopes.ranges) for form in forms]
        return all(low >= 0 and high < size for (low, high), size in zip(spans, buffer.type.get_shape(), strict=True))

    def is_whole(self, access: Access) -> bool:
        """Whether a target's lanes, all inside its buffer, are neighbours in a vector, or all the same element."""
        if access.buffer in self.context.private:
            return False
        forms, buffer = self._forms(access), self.context.buffers[access.buffer]
        return (not self._varies(forms) or self.contiguous(buffer, forms)) and self._inside(buffer, forms)

    def _places(self, buffer: SSAValue, forms: Sequence[Linear]) -> list[SSAValue]:
        """The indices of one element; where no test stands before a guard, inside the buffer whatever it says."""
        if not self.free and not self.blended:
            return self.scopes.indices(forms)
        assert isinstance(buffer.type, MemRefType)
        return [self.scopes.clamped(form, size) for form, size in zip(forms, buffer.type.get_shape(), strict=True)]

    def _load_lanes(
        self, buffer: SSAValue, forms: Sequence[Linear], tests: Sequence[Condition], rest: Attribute
    ) -> SSAValue:
        assert isinstance(buffer.type, MemRefType)
        self._count_lanes()
        values = []
        for lane in range(self.context.lanes):
            at = [self.context.at_lane(form, lane) for form in forms]
            values.append(self._load_lane(buffer, at, self._at(lane, tests), rest))
        return self._gathered(values, buffer.type.element_type)

    def _load_lane(
        self, buffer: SSAValue, forms: Sequence[Linear], tests: Sequence[Condition], rest: Attribute
    ) -> SSAValue:
        if any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(rest)

        def load() -> SSAValue:
            return self.scopes.add(memref.LoadOp.get(buffer, self.scopes.indices(forms)))

        open = [test for test in tests if not test.always(self.scopes.ranges)]
        return self._either(open, False, load, rest) if open else load()

    def _at(self, lane: int, tests: Sequence[Condition]) -> list[Condition]:
        return [Condition(self.context.at_lane(test.form, lane), test.equal) for test in tests]

    def _write(self, access: Access, value: SSAValue) -> None:
        buffer = self.context.buffers[access.buffer]
        forms = self._forms(access)
        if not self._varies(forms):
            if scalars.lanes_of(value) is not None:
                raise LoweringError(
                    f"block '{self.block.label}' writes different values to one element in a vectorized loop"
                )
            self.scopes.run(memref.StoreOp.get(value, buffer, self.scopes.indices(forms)))
            return
        value = scalars.widen(self.scopes, value, self.context.lanes)
        if not self.contiguous(buffer, forms):
            found = self._strided(buffer, forms, self.guard)
            if found is None:
                self._write_lanes(buffer, forms, value)
            else:
                self.scopes.run(ScatterOp(buffer, found.places, found.steps, found.mask, value))
            return
        places = self._first(forms)
        if self.kept is None:
            streamed = access.buffer in self.context.streamed
            self.scopes.run(vector.StoreOp(value, buffer, places, BoolAttr.from_bool(True) if streamed else None))
        else:
            self.scopes.run(vector.MaskedStoreOp(buffer, places, self.kept, value))

    def _write_lanes(self, buffer: SSAValue, forms: Sequence[Linear], value: SSAValue) -> None:
        assert isinstance(value.type, VectorType)
        element = value.type.element_type
        self._count_lanes()
        for lane in range(self.context.lanes):
            at = [self.context.at_lane(form, lane) for form in forms]
            tests = self._at(lane, self.guard)
            if any(test.never(self.scopes.ranges) for test in tests):
                continue
            tests = [test for test in tests if not test.always(self.scopes.ranges)]

            def store(lane: int = lane, at: Sequence[Linear] = at) -> None:
                one = self.scopes.add(vector.ExtractOp(value, [lane], element))
                self.scopes.run(memref.StoreOp.get(one, buffer, self.scopes.indices(at)))

            under(self.context, tests, store)


def _zero(element: Attribute) -> Attribute:
    return identity("add", element)
