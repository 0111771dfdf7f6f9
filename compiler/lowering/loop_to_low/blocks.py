"""One block: read the inputs, evaluate the body, combine, write; in a vectorized loop for all lanes at once.

A value that is equal in all lanes stays a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import copysign

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, MemRefType
from xdsl.ir import Attribute, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.barriers import ASYNC
from compiler.analysis.stages import THREADS
from compiler.dialects.combiner import identity
from compiler.dialects.upstream.arith import SelectOp
from compiler.dialects.upstream.nvgpu import CopyOp
from compiler.lowering.loop_to_low import scalars, selections
from compiler.lowering.loop_to_low.accesses import Accessor
from compiler.lowering.loop_to_low.context import Context, emit_under
from compiler.program.body import Index, Read, read
from compiler.program.combiner import Joint
from compiler.program.tree import Access, Block, Loop, Program, blocks_in, touched
from compiler.program.write import hint
from compiler.types.dtypes import row_of
from compiler.types.scopes import SCOPES, space_of


def emit_block(context: Context, block: Block, guard: Sequence[Condition]) -> None:
    """Emit a block. guard: the conditions over loops that no test around the block checks, since they differ between
    lanes; those of `deferred_conditions` are not tested, the others are tests or the mask."""
    deferred = deferred_conditions(context, block, guard)
    untested = [c for c in guard if c not in deferred]
    if blends(context, block):
        _emit_unless_never(context, untested, lambda open: Emitter(context, block, open, deferred, blended=True).emit())
    else:
        emit_under_guard(context, untested, lambda open: Emitter(context, block, open, deferred).emit())


def blends(context: Context, block: Block) -> bool:
    """Return whether a reduction may store all lanes of its accumulators, with the old value where its guard fails. The
    masked end of a cut loop does so: it accesses the same elements as the full iterations, and both keep them in
    registers. Requires that no other thread writes those lanes, as in a thread's own temporary, and that they are
    within the buffer. Always False outside of a masked end and of a vectorized loop."""
    if not context.in_masked_end or context.lane is None or not _is_separate_reduction(block):
        return False
    emitter = Emitter(context, block, [], [])
    return all(_is_thread_private(context.program, block, a.buffer) and emitter.is_whole(a) for a in block.writes)


def _is_separate_reduction(block: Block) -> bool:
    """Return whether a block is a reduction with a combiner for each target."""
    return bool(block.combiners) and not isinstance(block.combiners[0], Joint)


def _is_thread_private(program: Program, block: Block, buffer: str) -> bool:
    """Return whether a buffer is a temporary that only the thread which runs the block accesses: it is allocated inside
    all parallel loops around the block. Loops of other kinds do not count; a kernel has no masked end."""
    if buffer not in program.allocs:
        return False
    enclosing_loops = program.enclosing((buffer,))
    return all(loop in enclosing_loops for loop in program.enclosing(block.label) if loop.kind == "parallel")


def deferred_conditions(context: Context, block: Block, guard: Sequence[Condition]) -> list[Condition]:
    """Return the conditions of `guard` that a vectorized reduction need not test, since the mask of its accumulator,
    outside of the innermost loop, applies them: those that may fail and do not depend on that loop. The innermost loop
    is the deepest serial or parallel one around the block. Empty unless each target has a stride of one over the lanes,
    no copy for each lane, and an index that does not depend on that loop."""
    if (
        not guard
        or not _is_separate_reduction(block)
        or any(access.buffer in context.private for access in block.writes)
    ):
        return []
    enclosing_loops = context.program.enclosing(block.label)
    lane = next((loop.number for loop in enclosing_loops if loop.kind == "vectorized"), None)
    innermost = next((loop.number for loop in reversed(enclosing_loops) if loop.kind in ("serial", "parallel")), None)
    if lane is None or innermost is None:
        return []
    axes = context.axes(block)
    if not all(
        _is_fixed_vector(context.substitute_axes(axes, access.index), lane, innermost) for access in block.writes
    ):
        return []
    varying = _conditions_of_loop(context, block, innermost)
    open_conditions = [c for c in guard if c not in varying and not c.always(context.scopes.ranges)]
    return [c for c in open_conditions if innermost not in c.form.variables()]


def _conditions_of_loop(context: Context, block: Block, inner: int) -> list[Condition]:
    """Return a block's conditions that depend on the unrolled loop `inner`, at its current value; empty for a loop that
    is not unrolled."""
    if inner not in context.values:
        return []
    values = context.values
    other_values = {number: form for number, form in values.items() if number != inner}
    pairs = zip(context.conditions(block.guard, values), context.conditions(block.guard, other_values), strict=True)
    return [c for c, general_condition in pairs if inner in general_condition.form.variables()]


def _is_fixed_vector(forms: Sequence[Linear], lane: int, inner: int) -> bool:
    """Return whether an index has stride one over lanes, in the last dimension only, and does not depend on the
    innermost loop; False for an index without dimensions."""
    if not forms or forms[-1].coefficient(lane) != 1:
        return False
    outer_variables = set().union(*(form.variables() for form in forms[:-1]))
    return lane not in outer_variables and inner not in outer_variables | forms[-1].variables()


def emit_under_guard(context: Context, guard: Sequence[Condition], emit: Callable[[list[Condition]], None]) -> None:
    """Emit code by `emit` under conditions that differ between lanes, with a branch that skips it if an inequality
    fails in all lanes; equalities are tested by the mask only. `emit` is called with the conditions that may fail, as
    its mask, an empty list for none; not at all if one always fails. Requires a vectorized loop around if a condition
    may fail."""

    def emit_tested(open_conditions: list[Condition]) -> None:
        necessary_conditions = [
            Condition(_largest_over_lanes(context, c.form), c.equal) for c in open_conditions if not c.equal
        ]
        tests = [c for c in necessary_conditions if not c.always(context.scopes.ranges) and not context.is_implied(c)]
        emit_under(context, tests, lambda: emit(open_conditions))

    _emit_unless_never(context, guard, emit_tested)


def _emit_unless_never(context: Context, guard: Sequence[Condition], emit: Callable[[list[Condition]], None]) -> None:
    """Call `emit` with the conditions that may fail; emit nothing if one always fails."""
    open_conditions = [c for c in guard if not c.always(context.scopes.ranges)]
    if not any(c.never(context.scopes.ranges) for c in open_conditions):
        emit(open_conditions)


def _largest_over_lanes(context: Context, form: Linear) -> Linear:
    """Return a form at the lane where it is largest; if it is negative there, no lane is active. Example: 3 - lane is
    3, lane - 3 over 8 lanes is 4. For a form that is not linear in the lane return 0, which skips nothing."""
    assert context.lane is not None
    factor = form.coefficient(context.lane)
    if factor is None:
        return lin.constant(0)
    return context.at_lane(form, context.lanes - 1 if factor > 0 else 0)


def _drop_unused(reads: Iterable[SSAValue]) -> None:
    for value in dict.fromkeys(reads):
        if isinstance(value.owner, memref.LoadOp | vector.LoadOp) and not value.uses:
            value.owner.detach()
            value.owner.erase()


class Emitter(Accessor):
    """The emitter of one block: its reads, body, combination and writes."""

    def emit(self) -> None:
        """Emit an asynchronous copy, or the reads, body, combination and writes; nothing if known elements show that
        the block combines only identities."""
        block = self.block
        if self._is_async():
            self._begin_copy()
            return
        known_reads = {n: number for n, access in enumerate(block.reads) if (number := self.known(access)) is not None}
        if known_reads:
            self.policy = self.policy.of_literals
        body = selections.resolve_selections(block.body, self.axes, self.scopes.ranges, self.context.is_implied)
        used_reads = range(len(block.reads)) if body is block.body else selections.reads_of(body)
        reads = {n: self._read(block.reads[n]) for n in used_reads if n not in known_reads}
        for n, value in reads.items():
            value.name_hint = value.name_hint or hint(block.reads[n].buffer.lower())
        emitter = scalars.Expressions(
            self.scopes, lambda leaf: self._leaf(leaf, reads), self.context.policy, known_reads
        )
        if not (known_reads and self._changes_nothing(emitter)):
            self._finish([emitter.value(root) for root in body])
        if known_reads:
            _drop_unused(reads.values())

    def _finish(self, yielded: list[SSAValue]) -> None:
        block = self.block
        if block.combiners:
            joint = block.combiners[0]
            yielded = self._combine_jointly(joint, yielded) if isinstance(joint, Joint) else self._combine_each(yielded)
        for access, value in zip(block.writes, yielded, strict=True):
            self._write(access, value)

    def _changes_nothing(self, emitter: scalars.Expressions) -> bool:
        """Return whether the values of the block that `emitter` knows are the identities of all its combiners; False
        for other blocks and joint combiners."""
        if not _is_separate_reduction(self.block):
            return False
        pairs = zip(self.block.combiners, map(emitter.known, self.block.body), strict=True)
        return all(scalars.is_identity(str(combiner), number, self.context.policy) for combiner, number in pairs)

    def _leaf(self, leaf: Read | Index, reads: Mapping[int, SSAValue]) -> SSAValue:
        return reads[leaf.position] if isinstance(leaf, Read) else self._index(self.axes[leaf.axis])

    def _is_async(self) -> bool:
        """Return whether the block is an asynchronous copy of 4, 8 or 16 bytes from global to shared memory: a loop
        around requests it, the block only copies, without a mask and at contiguous lanes, with +0.0 or 0 where its
        read's condition fails, and no other block of the stage accesses the target, since a stage has no wait."""
        if self.context.threads is None or self.mask is not None:
            return False
        block, enclosing_loops = self.block, self.context.program.enclosing(self.block.label)
        if not any(ASYNC in dict(loop.attributes) for loop in enclosing_loops):
            return False
        if block.combiners or len(block.reads) != 1 or block.body != (read(0, block.read_types[0]),):
            return False
        if not self._is_alone(block.writes[0].buffer, enclosing_loops):
            return False
        if any(map(self.context.has_lanes, (c.form for c in self._missing(block.reads[0])))):
            return False
        if block.reads[0].where and not _is_positive_zero(block.reads[0].otherwise):
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

    def _is_alone(self, target: str, enclosing_loops: Sequence[Loop]) -> bool:
        stage = next((loop for loop in enclosing_loops if loop.kind in THREADS), None)
        neighbours = [block for block in blocks_in(stage) if block is not self.block] if stage else []
        reads, writes = touched(neighbours)
        return target not in reads | writes

    def _missing(self, access: Access) -> list[Condition]:
        """Return the conditions of a read that do not always hold."""
        conditions = self.context.conditions(access.where, self.axes)
        return [c for c in conditions if not c.always(self.scopes.ranges)]

    def _begin_copy(self) -> None:
        """Begin an asynchronous copy; where a condition of the read fails, nothing is read, and zeros are written."""
        lanes, missing = 1 if self.context.lane is None else self.context.lanes, self._missing(self.block.reads[0])
        count = None
        if missing:
            all_of_them, none = self.scopes.index_constant(lanes), self.scopes.index_constant(0)
            count = self.scopes.add(SelectOp(self.context.all_of(missing), all_of_them, none))
        endpoints = []
        for access in (self.block.writes[0], self.block.reads[0]):
            element = self._element(access)
            indices = self.scopes.indices(element.index) if self.context.lane is None else self._first_indices(element)
            endpoints.append((element.buffer, indices))
        (target, target_indices), (source, source_indices) = endpoints
        self.scopes.run(CopyOp(target, target_indices, source, source_indices, lanes, count))

    def _combine_each(self, yielded: Sequence[SSAValue]) -> list[SSAValue]:
        combined = zip(self.block.combiners, self.block.writes, yielded, strict=True)
        return [self._combine(str(combiner), access, value) for combiner, access, value in combined]

    def _combine_jointly(self, joint: Joint, yielded: Sequence[SSAValue]) -> list[SSAValue]:
        """Combine the accumulators of all targets with the yielded values by the block's region, one lane after the
        other if no target's index varies with the lane; return the new accumulators."""
        accumulators = [self._read(access) for access in self.block.writes]
        if self.context.lane is None or any(self._varies(self._element(access).index) for access in self.block.writes):
            return self._apply_region(joint, accumulators, yielded)
        self._count_lanes()
        contributions = [yielded] * self.context.lanes
        if self.mask is not None or any(scalars.lanes_of(v) for v in yielded):
            contributions = self._lane_values(joint, yielded)
        for values in contributions:
            accumulators = self._apply_region(joint, accumulators, values)
        return accumulators

    def _lane_values(self, joint: Joint, yielded: Sequence[SSAValue]) -> list[Sequence[SSAValue]]:
        """Extract the scalars of the yielded values, as result[lane][value]; a masked lane has the identities."""
        vectors = [
            self._with_identity(value, identity_value)
            for value, identity_value in zip(yielded, joint.identities, strict=True)
        ]
        return [[scalars.extract_lane(self.scopes, v, n) for v in vectors] for n in range(self.context.lanes)]

    def _with_identity(self, value: SSAValue, identity_value: FloatAttr | IntegerAttr) -> SSAValue:
        """Broadcast a value to all lanes; masked lanes have the identity."""
        value = scalars.broadcast_to_lanes(self.scopes, value, self.context.lanes)
        if self.mask is None:
            return value
        identity_vector = self.scopes.constant(scalars.splat(identity_value, self.context.lanes))
        return self.scopes.add(SelectOp(self.mask, value, identity_vector))

    def _apply_region(
        self, joint: Joint, accumulators: Sequence[SSAValue], contribution: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Return the results of the region for accumulators and one contribution; all are vectors if an operand is a
        vector."""
        operands = [*accumulators, *contribution]

        def operand(leaf: Read | Index) -> SSAValue:
            assert isinstance(leaf, Read)
            return operands[leaf.position]

        combined = scalars.evaluate(self.scopes, joint.body, operand, self.context.policy)
        lanes = next((n for v in operands if (n := scalars.lanes_of(v)) is not None), None)
        return combined if lanes is None else [scalars.broadcast_to_lanes(self.scopes, v, lanes) for v in combined]

    def _combine(self, combiner: str, access: Access, value: SSAValue) -> SSAValue:
        element = self._buffer(access).element
        if self.context.lane is not None and not self._varies(self._element(access).index):
            value = self._reduce_lanes(combiner, element, value)
        old = self._accumulator(access)
        lanes = scalars.lanes_of(old)
        if lanes is not None:
            value = scalars.broadcast_to_lanes(self.scopes, value, lanes)
        new = scalars.combine(self.scopes, combiner, old, value, element, self.policy)
        if self.blended and self.mask is not None and lanes is not None:
            return self.scopes.add(SelectOp(self.mask, new, old))
        return new

    def _reduce_lanes(self, combiner: str, element: Attribute, value: SSAValue) -> SSAValue:
        """Reduce the lanes of a value to a scalar by the op of `combiner`; masked lanes have the identity."""
        value = self._with_identity(value, identity(combiner, element))
        return self.scopes.add(scalars.reduction(combiner, value, element, self.context.policy))


def _is_positive_zero(value: FloatAttr | IntegerAttr | None) -> bool:
    return value is not None and value.value.data == 0 and copysign(1, value.value.data) > 0
