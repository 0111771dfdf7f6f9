"""One block: read the inputs, evaluate the body, combine, write. With a lane variable, all lanes at once.

A value that does not differ from lane to lane stays a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.barriers import ASYNC, THREADS
from compiler.dialects import loop
from compiler.dialects.checks import element_type
from compiler.dialects.combiner import identity
from compiler.dialects.upstream.arith import SelectOp
from compiler.dialects.upstream.nvgpu import CopyOp
from compiler.elements import row_of
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.accesses import Accessor, under
from compiler.lowering.loop_to_low.context import Context
from compiler.scopes import SCOPES, space_of


def emit_block(context: Context, block: loop.BlockOp, guard: Sequence[Condition]) -> None:
    """Emit a block; `guard` holds the conditions that differ between lanes or that it is free of, no others."""
    free = free_of(context, block, guard)
    tested = [c for c in guard if c not in free]
    if blends(context, block):
        _unless_never(context, tested, lambda open: Emitter(context, block, open, free, blended=True).emit())
    else:
        under_guard(context, tested, lambda open: Emitter(context, block, open, free).emit())


def blends(context: Context, block: loop.BlockOp) -> bool:
    """Whether a reduction may store its accumulators whole where its guard fails in some lanes, those as they were.

    So it does at the end of a loop that is cut: the end accesses the places that the whole iterations do, and both
    keep them in registers. That is possible where nobody else writes those lanes meanwhile, as in a temporary of the
    same thread, and they are inside the buffer.
    """
    if not context.ending or context.lane is None or not block.is_reduction or block.joint is not None:
        return False
    whole = Emitter(context, block, [], [])
    return all(_is_own(block, v) and whole.is_whole(v, a) for v, a in zip(block.targets, block.writes, strict=True))


def _is_own(block: loop.BlockOp, buffer: SSAValue) -> bool:
    """Whether a buffer is a temporary that only the thread which runs the block accesses."""
    alloc = buffer.owner
    if not isinstance(alloc, loop.AllocOp):
        return False
    parallel = [o for o in loop.enclosing_loops(block) if o.loop_kind == "parallel"]
    return all(o.is_ancestor(alloc) for o in parallel)


def free_of(context: Context, block: loop.Placed, guard: Sequence[Condition]) -> list[Condition]:
    """The conditions that a reduction in lanes need not test: its accumulator is masked, outside the innermost loop.

    That is possible where neither the accumulator's place nor the condition depends on that loop.
    """
    if not isinstance(block, loop.BlockOp) or not block.is_reduction or block.joint is not None:
        return []
    if any(target in context.private for target in block.targets):
        return []
    around = loop.enclosing_loops(block)
    lane = next((context.variables[o.iv] for o in around if o.loop_kind == "vectorized"), None)
    inner = next((context.variables[o.iv] for o in reversed(around) if o.loop_kind in ("serial", "parallel")), None)
    if lane is None or inner is None or not all(_steps(context, f, lane, inner) for f in _targets(context, block)):
        return []
    moving = _moving(context, block, inner)
    open = [c for c in guard if c not in moving and not c.always(context.scopes.ranges)]
    return [c for c in open if inner not in c.form.variables()]


def _moving(context: Context, block: loop.BlockOp, inner: int) -> list[Condition]:
    """The conditions of a guard that depend on a loop of which one iteration is emitted."""
    if inner not in context.values or block.guard is None:
        return []
    now = [context.form_of(value) for value in block.loops]
    loops = [context.variables[value] for value in block.loops]
    ever = [lin.variable(inner) if v == inner else form for v, form in zip(loops, now, strict=True)]
    pairs = zip(context.conditions(block.guard, now), context.conditions(block.guard, ever), strict=True)
    return [c for c, other in pairs if inner in other.form.variables()]


def _targets(context: Context, block: loop.BlockOp) -> list[list[Linear]]:
    ranges = context.scopes.ranges
    dims = [context.form_of(value) for value in block.loops]
    axes = [lin.linear(e, dims, ranges) for e in block.bindings.data.results]
    return [[lin.linear(e, axes, ranges) for e in access.affine_map.results] for access in block.writes]


def _steps(context: Context, forms: Sequence[Linear], lane: int, inner: int) -> bool:
    """Whether a place steps by one element a lane and stays where it is in the innermost loop."""
    if not forms or forms[-1].coefficient(lane) != 1:
        return False
    others = set().union(*(form.variables() for form in forms[:-1]))
    return lane not in others and inner not in others | forms[-1].variables()


def under_guard(context: Context, guard: Sequence[Condition], emit: Callable[[list[Condition]], None]) -> None:
    """Emit what runs under conditions that differ between lanes, skipped where no lane is active."""

    def tested(open: list[Condition]) -> None:
        possible = [Condition(_most(context, c.form), c.equal) for c in open if not c.equal]
        tests = [c for c in possible if not c.always(context.scopes.ranges) and not context.is_implied(c)]
        under(context, tests, lambda: emit(open))

    _unless_never(context, guard, tested)


def _unless_never(context: Context, guard: Sequence[Condition], emit: Callable[[list[Condition]], None]) -> None:
    """Emit what runs under conditions, given those of them that may fail; nothing where one always does."""
    open = [c for c in guard if not c.always(context.scopes.ranges)]
    if not any(c.never(context.scopes.ranges) for c in open):
        emit(open)


def _most(context: Context, form: Linear) -> Linear:
    """The form in the lane where it is greatest: if it is negative there, no lane is active."""
    assert context.lane is not None
    factor = form.coefficient(context.lane)
    if factor is None:
        return lin.constant(0)
    return context.at_lane(form, context.lanes - 1 if factor > 0 else 0)


class Emitter(Accessor):
    """The emission of one block."""

    def emit(self) -> None:
        """Reads, body, combination, writes; or a copy that goes on by itself."""
        block = self.block
        if self._is_async():
            self._begin_copy()
            return
        values: dict[SSAValue, SSAValue] = {}
        for argument, buffer, access in zip(block.body.block.args, block.inputs, block.reads, strict=True):
            values[argument] = self._read(buffer, access)
            values[argument].name_hint = values[argument].name_hint or argument.name_hint
        yielded = self._body(values)
        stores = self._jointly(yielded) if block.joint is not None else self._each(yielded)
        for (target, access), value in zip(zip(block.targets, block.writes, strict=True), stores, strict=True):
            self._write(target, access, value)

    def _is_async(self) -> bool:
        """Whether the block copies whole elements from global to shared memory, and its loop says not to wait; nothing
        else of the stage touches them there, since nobody waits within a stage."""
        block, around = self.block, loop.enclosing_loops(self.block)
        if self.context.threads is None or not any(ASYNC in o.attributes for o in around) or self.mask is not None:
            return False
        body = list(block.body.block.ops)
        if block.is_reduction or len(body) != 1 or list(body[0].operands) != list(block.body.block.args):
            return False
        pairs = list(zip((*block.inputs, *block.targets), (*block.reads, *block.writes), strict=True))
        if len(pairs) != 2 or pairs[0][1].condition is not None or not self._is_alone(block.targets[0], around):
            return False
        source, target = (self.context.buffers[v].type for v, _ in pairs)
        assert isinstance(source, MemRefType) and isinstance(target, MemRefType)
        if space_of(source) is not None or space_of(target) != SCOPES["shared"]:
            return False
        lanes = 1 if self.context.lane is None else self.context.lanes
        whole = lanes == 1 or all(self.contiguous(self.context.buffers[v], self._forms(v, a)) for v, a in pairs)
        row = row_of(source.element_type)
        return whole and row is not None and row.kind != "b" and lanes * row.bits // 8 in (4, 8, 16)

    def _is_alone(self, target: SSAValue, around: Sequence[loop.ForOp]) -> bool:
        """Whether no other block of the stage touches a buffer."""
        stage = next((o for o in around if o.loop_kind in THREADS), None)
        others = [op for op in stage.walk() if isinstance(op, loop.Placed) and op is not self.block] if stage else []
        return not any(target in op.operands for op in others)

    def _begin_copy(self) -> None:
        block, lanes = self.block, 1 if self.context.lane is None else self.context.lanes
        places = []
        for value, access in ((block.targets[0], block.writes.data[0]), (block.inputs[0], block.reads.data[0])):
            forms = self._forms(value, access)
            first = forms if self.context.lane is None else [self.context.at_lane(form, 0) for form in forms]
            places.append((self.context.buffers[value], [self.scopes.index(form) for form in first]))
        (target, to), (source, at) = places
        self.scopes.run(CopyOp(target, to, source, at, lanes))

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
        lane = self.context.lane is not None and not any(map(self._varies, self.written()))
        if lane:
            self._count_lanes()
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
        old = self._held(target, access)
        lanes = scalars.lanes_of(old)
        if lanes is not None:
            value = scalars.widen(self.scopes, value, lanes)
        new = scalars.combine(self.scopes, combiner, old, value, self._element(position), self.context.policy)
        if self.blended and self.mask is not None and lanes is not None:
            return self.scopes.add(SelectOp(self.mask, new, old))
        return new

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
