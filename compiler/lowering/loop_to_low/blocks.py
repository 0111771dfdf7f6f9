"""One block: read the inputs, evaluate the body, combine, write. With a lane variable, all lanes at once.

A value that does not differ from lane to lane stays a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, MemRefType
from xdsl.ir import Attribute, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.barriers import ASYNC, THREADS
from compiler.dialects.combiner import identity
from compiler.dialects.upstream.arith import SelectOp
from compiler.dialects.upstream.nvgpu import CopyOp
from compiler.lowering.loop_to_low import scalars, selections
from compiler.lowering.loop_to_low.accesses import Accessor
from compiler.lowering.loop_to_low.context import Context, under
from compiler.program.body import Index, Read, read
from compiler.program.combiner import Joint
from compiler.program.tree import Access, Block, Loop, Program, blocks_in, touched
from compiler.program.write import hint
from compiler.types.elements import row_of
from compiler.types.scopes import SCOPES, space_of


def emit_block(context: Context, block: Block, guard: Sequence[Condition]) -> None:
    """Emit a block; `guard` holds the conditions that differ between lanes or that it is free of, no others."""
    free = free_of(context, block, guard)
    tested = [c for c in guard if c not in free]
    if blends(context, block):
        _unless_never(context, tested, lambda open: Emitter(context, block, open, free, blended=True).emit())
    else:
        under_guard(context, tested, lambda open: Emitter(context, block, open, free).emit())


def blends(context: Context, block: Block) -> bool:
    """Whether a reduction may store its accumulators whole where its guard fails in some lanes, those as they were.

    The masked end of a cut loop does so: it accesses the same elements as the whole iterations, and both keep them in
    registers. Requires that no other block writes those lanes meanwhile, as in a temporary of the same thread, and that
    they are inside the buffer.
    """
    if not context.ending or context.lane is None or not _combines_each(block):
        return False
    emitter = Emitter(context, block, [], [])
    return all(_is_own(context.program, block, a.buffer) and emitter.is_whole(a) for a in block.writes)


def _combines_each(block: Block) -> bool:
    """Whether a block is a reduction that combines each target by itself."""
    return bool(block.combiners) and not isinstance(block.combiners[0], Joint)


def _is_own(program: Program, block: Block, buffer: str) -> bool:
    """Whether a buffer is a temporary that only the thread which runs the block accesses."""
    if buffer not in program.allocs:
        return False
    around = program.enclosing((buffer,))
    return all(loop in around for loop in program.enclosing(block.label) if loop.kind == "parallel")


def free_of(context: Context, block: Block, guard: Sequence[Condition]) -> list[Condition]:
    """The conditions that a reduction in lanes need not test: its accumulator is masked, outside the innermost loop.

    That is possible where neither the accumulator's place nor the condition depends on that loop.
    """
    if not guard or not _combines_each(block) or any(access.buffer in context.private for access in block.writes):
        return []
    around = context.program.enclosing(block.label)
    lane = next((loop.number for loop in around if loop.kind == "vectorized"), None)
    inner = next((loop.number for loop in reversed(around) if loop.kind in ("serial", "parallel")), None)
    if lane is None or inner is None:
        return []
    axes = context.axes(block)
    if not all(_steps(context.over(axes, access.index), lane, inner) for access in block.writes):
        return []
    moving = _moving(context, block, inner)
    open = [c for c in guard if c not in moving and not c.always(context.scopes.ranges)]
    return [c for c in open if inner not in c.form.variables()]


def _moving(context: Context, block: Block, inner: int) -> list[Condition]:
    """The conditions of a guard that depend on a loop of which only one iteration is emitted."""
    if inner not in context.values:
        return []
    now = context.values
    ever = {number: form for number, form in now.items() if number != inner}
    pairs = zip(context.conditions(block.guard, now), context.conditions(block.guard, ever), strict=True)
    return [c for c, general in pairs if inner in general.form.variables()]


def _steps(forms: Sequence[Linear], lane: int, inner: int) -> bool:
    """Whether a place steps by one element a lane and stays where it is in the innermost loop."""
    if not forms or forms[-1].coefficient(lane) != 1:
        return False
    outer_variables = set().union(*(form.variables() for form in forms[:-1]))
    return lane not in outer_variables and inner not in outer_variables | forms[-1].variables()


def under_guard(context: Context, guard: Sequence[Condition], emit: Callable[[list[Condition]], None]) -> None:
    """Emit code under conditions that differ between lanes; it is skipped if no lane is active."""

    def tested(open: list[Condition]) -> None:
        possible = [Condition(_most(context, c.form), c.equal) for c in open if not c.equal]
        tests = [c for c in possible if not c.always(context.scopes.ranges) and not context.is_implied(c)]
        under(context, tests, lambda: emit(open))

    _unless_never(context, guard, tested)


def _unless_never(context: Context, guard: Sequence[Condition], emit: Callable[[list[Condition]], None]) -> None:
    """Emit code under the conditions that may fail; nothing if one always fails."""
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


def _drop_unused(reads: Iterable[SSAValue]) -> None:
    """Drop loads that constants have made dead."""
    for value in dict.fromkeys(reads):
        if isinstance(value.owner, memref.LoadOp | vector.LoadOp) and not value.uses:
            value.owner.detach()
            value.owner.erase()


class Emitter(Accessor):
    """The emission of one block."""

    def emit(self) -> None:
        """Reads, body, combination, writes; or a copy that goes on by itself."""
        block = self.block
        if self._is_async():
            self._begin_copy()
            return
        numbers = {n: number for n, access in enumerate(block.reads) if (number := self.known(access)) is not None}
        if numbers:
            self.policy = self.policy.of_literals
        body = selections.decided(block.body, self.axes, self.scopes.ranges)
        used = range(len(block.reads)) if body is block.body else selections.reads_of(body)
        reads = {n: self._read(block.reads[n]) for n in used if n not in numbers}
        for n, value in reads.items():
            value.name_hint = value.name_hint or hint(block.reads[n].buffer.lower())
        emitter = scalars.Expressions(self.scopes, lambda leaf: self._leaf(leaf, reads), self.context.policy, numbers)
        if not (numbers and self._changes_nothing(emitter)):
            self._finish([emitter.value(root) for root in body])
        if numbers:
            _drop_unused(reads.values())

    def _finish(self, yielded: list[SSAValue]) -> None:
        """Combination and writes."""
        block = self.block
        if block.combiners:
            joint = block.combiners[0]
            yielded = self._jointly(joint, yielded) if isinstance(joint, Joint) else self._each(yielded)
        for access, value in zip(block.writes, yielded, strict=True):
            self._write(access, value)

    def _changes_nothing(self, emitter: scalars.Expressions) -> bool:
        """Whether the block combines only identities into its targets."""
        if not _combines_each(self.block):
            return False
        pairs = zip(self.block.combiners, map(emitter.known, self.block.body), strict=True)
        return all(scalars.drops_out(str(combiner), number, self.context.policy) for combiner, number in pairs)

    def _leaf(self, leaf: Read | Index, reads: Mapping[int, SSAValue]) -> SSAValue:
        return reads[leaf.position] if isinstance(leaf, Read) else self._index(self.axes[leaf.axis])

    def _is_async(self) -> bool:
        """Whether the block copies whole elements from global to shared memory asynchronously: its loop asks for it,
        and nothing else in the stage touches the elements, since a stage has no wait."""
        if self.context.threads is None or self.mask is not None:
            return False
        block, around = self.block, self.context.program.enclosing(self.block.label)
        if not any(ASYNC in dict(loop.attributes) for loop in around):
            return False
        if block.combiners or len(block.reads) != 1 or block.body != (read(0, block.read_types[0]),):
            return False
        if block.reads[0].where or not self._is_alone(block.writes[0].buffer, around):
            return False
        accesses = (block.reads[0], block.writes[0])
        source, target = (self.context.buffers[access.buffer].type for access in accesses)
        assert isinstance(source, MemRefType) and isinstance(target, MemRefType)
        if space_of(source) is not None or space_of(target) != SCOPES["shared"]:
            return False
        lanes = 1 if self.context.lane is None else self.context.lanes
        is_contiguous = lanes == 1 or all(self.contiguous(self._element(access)) for access in accesses)
        row = row_of(source.element_type)
        return is_contiguous and row is not None and row.kind != "b" and lanes * row.bits // 8 in (4, 8, 16)

    def _is_alone(self, target: str, around: Sequence[Loop]) -> bool:
        """Whether no other block of the stage touches a buffer."""
        stage = next((loop for loop in around if loop.kind in THREADS), None)
        neighbours = [block for block in blocks_in(stage) if block is not self.block] if stage else []
        reads, writes = touched(neighbours)
        return target not in reads | writes

    def _begin_copy(self) -> None:
        places = []
        for access in (self.block.writes[0], self.block.reads[0]):
            element = self._element(access)
            indices = self.scopes.indices(element.index) if self.context.lane is None else self._first(element)
            places.append((element.buffer, indices))
        (target, to), (source, at) = places
        self.scopes.run(CopyOp(target, to, source, at, 1 if self.context.lane is None else self.context.lanes))

    def _each(self, yielded: Sequence[SSAValue]) -> list[SSAValue]:
        """The values to store: each combined with its target's value."""
        combined = zip(self.block.combiners, self.block.writes, yielded, strict=True)
        return [self._combined(str(combiner), access, value) for combiner, access, value in combined]

    def _jointly(self, joint: Joint, yielded: Sequence[SSAValue]) -> list[SSAValue]:
        """The values to store: all targets combined with all values by the block's region."""
        accumulators = [self._read(access) for access in self.block.writes]
        if self.context.lane is None or any(self._varies(self._element(access).index) for access in self.block.writes):
            return self._joined(joint, accumulators, yielded)
        self._count_lanes()
        added = [yielded] * self.context.lanes
        if self.mask is not None or any(scalars.lanes_of(v) for v in yielded):
            added = self._lane_values(joint, yielded)
        for values in added:
            accumulators = self._joined(joint, accumulators, values)
        return accumulators

    def _lane_values(self, joint: Joint, yielded: Sequence[SSAValue]) -> list[Sequence[SSAValue]]:
        """The values of each lane; a lane outside the mask adds the identity."""
        wide = [self._or_neutral(value, neutral) for value, neutral in zip(yielded, joint.identities, strict=True)]
        return [[scalars.lane(self.scopes, v, n) for v in wide] for n in range(self.context.lanes)]

    def _or_neutral(self, value: SSAValue, neutral: FloatAttr | IntegerAttr) -> SSAValue:
        """A value of all lanes, in those outside the mask the identity."""
        value = scalars.widen(self.scopes, value, self.context.lanes)
        if self.mask is None:
            return value
        outside = self.scopes.constant(scalars.splat(neutral, self.context.lanes))
        return self.scopes.add(SelectOp(self.mask, value, outside))

    def _joined(self, joint: Joint, accumulators: Sequence[SSAValue], added: Sequence[SSAValue]) -> list[SSAValue]:
        """One application of the region, on scalars or, where one of them is a vector, on vectors."""
        given = [*accumulators, *added]

        def operand(leaf: Read | Index) -> SSAValue:
            assert isinstance(leaf, Read)
            return given[leaf.position]

        combined = scalars.evaluate(self.scopes, joint.body, operand, self.context.policy)
        lanes = next((n for v in given if (n := scalars.lanes_of(v)) is not None), None)
        return combined if lanes is None else [scalars.widen(self.scopes, v, lanes) for v in combined]

    def _combined(self, combiner: str, access: Access, value: SSAValue) -> SSAValue:
        element = self._buffer(access).element
        if self.context.lane is not None and not self._varies(self._element(access).index):
            value = self._horizontal(combiner, element, value)
        old = self._held(access)
        lanes = scalars.lanes_of(old)
        if lanes is not None:
            value = scalars.widen(self.scopes, value, lanes)
        new = scalars.combine(self.scopes, combiner, old, value, element, self.policy)
        if self.blended and self.mask is not None and lanes is not None:
            return self.scopes.add(SelectOp(self.mask, new, old))
        return new

    def _horizontal(self, combiner: str, element: Attribute, value: SSAValue) -> SSAValue:
        """All lanes combined into one scalar; lanes outside the mask count as the identity."""
        value = self._or_neutral(value, identity(combiner, element))
        return self.scopes.add(scalars.reduction(combiner, value, element, self.context.policy))
