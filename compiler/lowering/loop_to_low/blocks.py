"""One block: read the inputs, evaluate the body, combine, write. With a lane variable, all lanes at once.

A value that does not differ from lane to lane stays a scalar. An access that steps by one element a lane is a
vector load or store, masked where a guard or condition differs between lanes; any other goes lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.arith import AddiOp, AndIOp
from xdsl.dialects.builtin import MemRefType, VectorType, i1
from xdsl.ir import Attribute, Block, Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition, conditions
from compiler.affine.linear import Linear
from compiler.dialects import loop
from compiler.dialects.access import AccessAttr
from compiler.dialects.checks import element_type
from compiler.dialects.combiner import identity
from compiler.dialects.vector_arith import CmpiOp, SelectOp
from compiler.errors import LoweringError
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.scopes import INDEX, Scope


def emit_block(context: Context, block: loop.BlockOp, guard: Sequence[Condition]) -> None:
    """Emit a block; `guard` holds the conditions that differ between lanes, all others are settled."""
    under_guard(context, guard, lambda open: Emitter(context, block, open).emit())


def under_guard(context: Context, guard: Sequence[Condition], emit: Callable[[list[Condition]], None]) -> None:
    """Emit what runs under conditions that differ between lanes, skipped where no lane is active."""
    open = [c for c in guard if not c.always(context.scopes.ranges)]
    possible = [Condition(_most(context, c.form), c.equal) for c in open if not c.equal]
    tests = [c for c in possible if not c.always(context.scopes.ranges)]
    _under(context, tests, lambda: emit(open))


def _most(context: Context, form: Linear) -> Linear:
    """The form in the lane where it is greatest: if it is negative there, no lane is active."""
    assert context.lane is not None
    factor = form.coefficient(context.lane)
    if factor is None:
        return lin.constant(0)
    return context.at_lane(form, context.lanes - 1 if factor > 0 else 0)


def _under(context: Context, tests: Sequence[Condition], emit: Callable[[], None]) -> None:
    """Emit under the conjunction of tests without lanes."""
    if not tests:
        emit()
        return
    truth = context.all_of(tests)
    body = Block()
    context.scopes.stack.append(Scope(body))
    emit()
    context.scopes.stack.pop()
    body.add_op(scf.YieldOp())
    context.scopes.run(scf.IfOp(truth, [], Region(body)))


class Emitter:
    """The emission of one block: the forms of its axes, its mask, its scalars."""

    block: Any  # a loop.BlockOp; in gathers.py, a loop.GatherOp

    def __init__(self, context: Context, block: loop.Placed, guard: Sequence[Condition]) -> None:
        self.context = context
        self.scopes = context.scopes
        self.block = block
        dims = [context.form_of(value) for value in block.loops]
        self.axes = [lin.linear(e, dims, self.scopes.ranges) for e in block.bindings.data.results]
        self.guard = list(guard)
        self.mask = self._mask(self.guard)

    def emit(self) -> None:
        """Reads, body, combination, writes."""
        block = self.block
        values: dict[SSAValue, SSAValue] = {}
        for argument, buffer, access in zip(block.body.block.args, block.inputs, block.reads, strict=True):
            values[argument] = self._read(buffer, access)
            values[argument].name_hint = values[argument].name_hint or argument.name_hint
        yielded = self._body(values)
        stores = self._jointly(yielded) if block.joint is not None else self._each(yielded)
        for (target, access), value in zip(zip(block.targets, block.writes, strict=True), stores, strict=True):
            self._write(target, access, value)

    def _body(self, values: dict[SSAValue, SSAValue]) -> list[SSAValue]:
        for op in self.block.body.block.ops:
            if isinstance(op, loop.YieldOp):
                return [values[v] for v in op.values]
            if isinstance(op, loop.IndexOp):
                labels = [axis.label for axis in self.block.axes]
                values[op.value] = self._index(self.axes[labels.index(op.label.data)])
            else:
                operands = [values[v] for v in op.operands]
                values[op.results[0]] = scalars.apply(self.scopes, op, operands, self.context.policy)
        raise AssertionError("the verifier requires a yield")

    def _each(self, yielded: Sequence[SSAValue]) -> list[SSAValue]:
        """The values to store: combined with the targets' where the block is a reduction."""
        if not self.block.is_reduction:
            return list(yielded)
        return [self._combined(i, value) for i, value in enumerate(yielded)]

    def _jointly(self, yielded: Sequence[SSAValue]) -> list[SSAValue]:
        """The values to store: all targets combined with all values by the block's region."""
        held = [self._read(v, access) for v, access in zip(self.block.targets, self.block.writes, strict=True)]
        lane = self.context.lane is not None and not any(map(self._varies, self._written()))
        if lane and (self.mask is not None or any(scalars.lanes_of(v) for v in yielded)):
            for values in self._lane_values(yielded):
                held = self._joined(held, values)
            return held
        if lane:
            for _ in range(self.context.lanes):
                held = self._joined(held, yielded)
            return held
        return self._joined(held, yielded)

    def _lane_values(self, yielded: Sequence[SSAValue]) -> list[list[SSAValue]]:
        """The values of each lane; a lane outside the mask adds the identity."""
        wide = []
        for position, value in enumerate(yielded):
            value = scalars.widen(self.scopes, value, self.context.lanes)
            if self.mask is not None:
                neutral = scalars.splat(self.block.neutral(self._element(position), position), self.context.lanes)
                value = self.scopes.add(SelectOp(self.mask, value, self.scopes.constant(neutral)))
            wide.append(value)
        return [[scalars.lane(self.scopes, v, n) for v in wide] for n in range(self.context.lanes)]

    def _joined(self, held: Sequence[SSAValue], added: Sequence[SSAValue]) -> list[SSAValue]:
        """One application of the region, on scalars or, where one of them is a vector, on vectors."""
        assert self.block.joint is not None
        block, given = self.block.joint.block, [*held, *added]
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, given, strict=True))
        for op in block.ops:
            if isinstance(op, loop.YieldOp):
                results = [values[v] for v in op.values]
                lanes = next((n for v in given if (n := scalars.lanes_of(v)) is not None), None)
                return results if lanes is None else [scalars.widen(self.scopes, v, lanes) for v in results]
            operands = [values[v] for v in op.operands]
            values[op.results[0]] = scalars.apply(self.scopes, op, operands, self.context.policy)
        raise AssertionError("the verifier requires a yield")

    def _combined(self, position: int, value: SSAValue) -> SSAValue:
        combiner = self.block.combiners.data[position].data
        access, target = self.block.writes.data[position], self.block.targets[position]
        if self.context.lane is not None and not self._varies(self._forms(target, access)):
            value = self._horizontal(position, value)
        old = self._read(target, access)
        lanes = scalars.lanes_of(old)
        if lanes is not None:
            value = scalars.widen(self.scopes, value, lanes)
        return scalars.combine(self.scopes, combiner, old, value, self._element(position), self.context.policy)

    def _element(self, position: int) -> Attribute:
        """The element type of a target, which says the sign."""
        return element_type(self.block.targets[position])

    def _horizontal(self, position: int, value: SSAValue) -> SSAValue:
        """All lanes combined into one scalar; lanes outside the mask count as the identity."""
        combiner = self.block.combiners.data[position].data
        value = scalars.widen(self.scopes, value, self.context.lanes)
        if self.mask is not None:
            neutral = scalars.splat(identity(combiner, self._element(position)), self.context.lanes)
            value = self.scopes.add(SelectOp(self.mask, value, self.scopes.constant(neutral)))
        return self.scopes.add(scalars.reduction(combiner, value, self._element(position), self.context.policy))

    def _forms(self, buffer: SSAValue, access: AccessAttr) -> list[Linear]:
        """Where a buffer is accessed; one that lives inside a vectorized loop has the lane as its last dimension."""
        forms = [lin.linear(e, self.axes, self.scopes.ranges) for e in access.affine_map.results]
        if buffer in self.context.private:
            assert self.context.lane is not None
            forms.append(lin.variable(self.context.lane))
        return forms

    def _written(self) -> list[list[Linear]]:
        return [self._forms(v, access) for v, access in zip(self.block.targets, self.block.writes, strict=True)]

    def _varies(self, forms: Sequence[Linear]) -> bool:
        return any(self.context.has_lanes(form) for form in forms)

    def _contiguous(self, forms: Sequence[Linear]) -> bool:
        lane = self.context.lane
        return lane is not None and forms[-1].coefficient(lane) == 1 and not self._varies(forms[:-1])

    def _index(self, form: Linear) -> SSAValue:
        """The value of an axis, one a lane where it differs."""
        if not self.context.has_lanes(form):
            return self.scopes.index(form)
        lane, count = self.context.lane, self.context.lanes
        assert lane is not None
        factor = form.coefficient(lane)
        if factor is None:
            values = [self.scopes.index(self.context.at_lane(form, n)) for n in range(count)]
            return self._gathered(values, INDEX)
        steps = self.scopes.constant(scalars.dense([factor * n for n in range(count)], INDEX))
        base = self.context.at_lane(form, 0)
        if base == lin.constant(0):
            return steps
        start = scalars.widen(self.scopes, self.scopes.index(base), count)
        return self.scopes.add(AddiOp(start, steps))

    def _gathered(self, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
        type = VectorType(element, [len(values)])
        result = scalars.widen(self.scopes, values[0], len(values))
        for position, value in enumerate(values[1:], 1):
            result = self.scopes.add(vector.InsertOp(value, result, [position], type))
        return result

    def _mask(self, tests: Sequence[Condition]) -> SSAValue | None:
        """The lanes in which conditions hold, or None where that is all of them."""
        mask: SSAValue | None = None
        for test in tests:
            truth = self._lane_truth(test)
            mask = truth if mask is None else self.scopes.add(AndIOp(mask, truth))
        return mask

    def _lane_truth(self, test: Condition) -> SSAValue:
        lane, count = self.context.lane, self.context.lanes
        assert lane is not None
        if not self.context.has_lanes(test.form):
            return scalars.widen(self.scopes, self.context.truth(test), count)
        if not test.equal and test.form.coefficient(lane) == -1:
            left = self.scopes.index(self.context.at_lane(test.form, 0) + lin.constant(1))
            return self.scopes.add(vector.CreateMaskOp([left], VectorType(i1, [count])))
        values = self._index(test.form)
        zero = self.scopes.constant(scalars.dense([0] * count, INDEX))
        return self.scopes.add(CmpiOp(values, zero, "eq" if test.equal else "sge"))

    def _read(self, buffer: SSAValue, access: AccessAttr) -> SSAValue:
        """The value read, a vector where it differs from lane to lane."""
        forms = self._forms(buffer, access)
        buffer = self.context.buffers[buffer]
        tests: list[Condition] = []
        if access.condition is not None:
            tests = conditions(access.condition, self.axes, self.scopes.ranges)
        if any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(access.otherwise)
        tests = [test for test in tests if not test.always(self.scopes.ranges)]
        uniform = [test for test in tests if not self.context.has_lanes(test.form)]
        lanes = [test for test in tests if self.context.has_lanes(test.form)]
        otherwise = access.otherwise
        if not uniform:
            return self._load(buffer, forms, lanes, otherwise)
        wide = bool(lanes) or self._varies(forms)
        return self._either(uniform, wide, lambda: self._load(buffer, forms, lanes, otherwise), otherwise)

    def _either(
        self,
        tests: Sequence[Condition],
        wide: bool,
        load: Callable[[], SSAValue],
        otherwise: Attribute | None,
    ) -> SSAValue:
        """scf.if over tests without lanes, with the value read where they fail."""
        truth = self.context.all_of(tests)
        body = Block()
        self.scopes.stack.append(Scope(body))
        value = load()
        body.add_op(scf.YieldOp(value))
        self.scopes.stack.pop()
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
        tests: Sequence[Condition],
        otherwise: Attribute | None,
    ) -> SSAValue:
        """Load under tests that differ between lanes and under the block's mask."""
        if not self._varies(forms) and not tests:
            return self.scopes.add(memref.LoadOp.get(buffer, [self.scopes.index(f) for f in forms]))
        assert isinstance(buffer.type, MemRefType)
        type = VectorType(buffer.type.element_type, [self.context.lanes])
        if not self._contiguous(forms):
            return self._load_lanes(buffer, forms, tests, otherwise)
        places = [self.scopes.index(self.context.at_lane(form, 0)) for form in forms]
        mask = self._mask([*self.guard, *tests]) if tests else self.mask
        if mask is None:
            return self.scopes.add(vector.LoadOp(buffer, places, type))
        rest = otherwise if otherwise is not None else _zero(buffer.type.element_type)
        through = self.scopes.constant(self._literal(rest, True))
        return self.scopes.add(vector.MaskedLoadOp(buffer, places, mask, through))

    def _load_lanes(
        self,
        buffer: SSAValue,
        forms: Sequence[Linear],
        tests: Sequence[Condition],
        otherwise: Attribute | None,
    ) -> SSAValue:
        assert isinstance(buffer.type, MemRefType)
        element = buffer.type.element_type
        rest = otherwise if otherwise is not None else _zero(element)
        values = []
        for lane in range(self.context.lanes):
            at = [self.context.at_lane(form, lane) for form in forms]
            values.append(self._load_lane(buffer, at, self._at(lane, [*self.guard, *tests]), rest))
        return self._gathered(values, element)

    def _load_lane(
        self, buffer: SSAValue, forms: Sequence[Linear], tests: Sequence[Condition], rest: Attribute
    ) -> SSAValue:
        if any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(rest)

        def load() -> SSAValue:
            return self.scopes.add(memref.LoadOp.get(buffer, [self.scopes.index(f) for f in forms]))

        open = [test for test in tests if not test.always(self.scopes.ranges)]
        return self._either(open, False, load, rest) if open else load()

    def _at(self, lane: int, tests: Sequence[Condition]) -> list[Condition]:
        return [Condition(self.context.at_lane(test.form, lane), test.equal) for test in tests]

    def _write(self, target: SSAValue, access: AccessAttr, value: SSAValue) -> None:
        buffer = self.context.buffers[target]
        forms = self._forms(target, access)
        if not self._varies(forms):
            if scalars.lanes_of(value) is not None:
                raise LoweringError(
                    f"block '{self.block.label.data}' writes different values to one element in a vectorized loop"
                )
            places = [self.scopes.index(form) for form in forms]
            self.scopes.run(memref.StoreOp.get(value, buffer, places))
            return
        value = scalars.widen(self.scopes, value, self.context.lanes)
        if not self._contiguous(forms):
            self._write_lanes(buffer, forms, value)
            return
        places = [self.scopes.index(self.context.at_lane(form, 0)) for form in forms]
        if self.mask is None:
            self.scopes.run(vector.StoreOp(value, buffer, places))
        else:
            self.scopes.run(vector.MaskedStoreOp(buffer, places, self.mask, value))

    def _write_lanes(self, buffer: SSAValue, forms: Sequence[Linear], value: SSAValue) -> None:
        assert isinstance(value.type, VectorType)
        element = value.type.element_type
        for lane in range(self.context.lanes):
            at = [self.context.at_lane(form, lane) for form in forms]
            tests = self._at(lane, self.guard)
            if any(test.never(self.scopes.ranges) for test in tests):
                continue
            tests = [test for test in tests if not test.always(self.scopes.ranges)]

            def store(lane: int = lane, at: Sequence[Linear] = at) -> None:
                one = self.scopes.add(vector.ExtractOp(value, [lane], element))
                self.scopes.run(memref.StoreOp.get(one, buffer, [self.scopes.index(f) for f in at]))

            _under(self.context, tests, store)


def _zero(element: Attribute) -> Attribute:
    return identity("add", element)
