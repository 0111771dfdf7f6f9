"""The primitive inline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.cover import covered
from compiler.program import body
from compiler.program.tree import Access, Block, Program, access_at, index_at, walk
from compiler.schedule.inlining import inverse, without_unused
from compiler.schedule.parameters import BLOCK
from compiler.schedule.plan import Plan, block_place, no_gather, no_table, refuse, sole_writer
from compiler.schedule.primitive import primitive
from compiler.schedule.region import conditional
from compiler.support.origins import fused


@primitive("$block", "sched.inline %c", "inline{block=D}", consumes=["block"], block=BLOCK)
def inline(program: Program, block: str) -> Plan:
    """Replace every read of a block's result by the block's body, and drop the block.

        loop.for "i" { T[i] = f(A[i]) }  loop.for "i" { S[i] = g(T[i + 1]) }
      ->
        loop.for "i" { S[i] = g(f(A[i + 1])) }

    Requires a block without reduction that alone writes its temporaries, one element for each of its spatial axes, and
    inputs that nothing changes until the last consumer has read. Gathers are neither inlined nor inlined into.
    Elsewhere: TVM compute_inline, Halide compute_inline, Exo inline_assign, MLIR linalg elementwise fusion.
    """
    dropped = program.blocks[block]
    place = block_place(block)
    if dropped.combiners:
        refuse(place, "it is a reduction, whose value takes a loop")
    no_gather(place, dropped)
    targets = dropped.targets
    no_table(place, program.blocks.values(), *targets)
    readers = [b for b in program.blocks.values() if any(a.buffer in targets for a in b.reads)]
    for reader in readers:
        no_gather(place, reader)
    for buffer in targets:
        sole_writer(program, buffer, block)
    inverses = {a.buffer: (n, inverse(dropped, n)) for n, a in enumerate(dropped.writes)}
    if not readers:
        refuse(place, f"nothing reads '{targets[0]}'")
    for buffer in targets:
        for reader in program.readers[buffer]:
            shared = program.outer(block) & program.outer(reader.label)
            if not covered(program, buffer, len(shared), reader.label):
                reason = f"block '{reader.label}' reads elements of '{buffer}' that it has not written in the iteration"
                refuse(place, reason)
    _require_stable(program, dropped, readers)

    consuming = {reader.label for reader in readers}

    def change(consumer: Block) -> Block:
        return _absorbed(consumer, dropped, inverses, program) if consumer.label in consuming else consumer

    after = program.replaced(block, lambda _: [])
    for buffer in targets:
        after = after.replaced((buffer,), lambda _: [])
    after = after.map_blocks(change)
    return Plan(after.pruned())


def _require_stable(program: Program, block: Block, readers: list[Block]) -> None:
    """Raise ScheduleError if one of a block's inputs is written between the block and its last consumer, or does not
    live where a consumer reads."""
    order = [node.label for node in walk(program.body) if isinstance(node, Block)]
    top = {b: program.places[b].positions[0] for b in order}
    last = max(top[r.label] for r in readers)
    for access in block.reads:
        for writer in program.writers[access.buffer]:
            if top[block.label] <= top[writer.label] <= last and not _before_both(
                program, writer, access.buffer, block, readers
            ):
                reason = f"block '{writer.label}' writes its input '{access.buffer}' before the last consumer has read"
                refuse(block_place(block.label), reason)
        private = set(program.private_loops(access.buffer))
        for reader in readers:
            if not private <= program.outer(reader.label):
                reason = f"its input '{access.buffer}' does not live where block '{reader.label}' reads"
                refuse(block_place(block.label), reason)


def _before_both(program: Program, writer: Block, buffer: str, block: Block, readers: list[Block]) -> bool:
    """Whether a writer of a buffer precedes the block and its readers in each iteration of their common loops, all of
    which privatise the buffer: then it does not write again before the readers have read."""
    paths = [[n.number for n in program.enclosing(b.label)] for b in (writer, block, *readers)]
    depth = 0
    while all(len(p) > depth and p[depth] == paths[0][depth] for p in paths):
        depth += 1
    positions = [program.places[b.label].positions[depth] for b in (writer, block, *readers)]
    return positions[0] < min(positions[1:]) and set(paths[0][:depth]) <= set(program.private_loops(buffer))


def _absorbed(
    consumer: Block, dropped: Block, inverses: dict[str, tuple[int, dict[int, int]]], program: Program
) -> Block:
    """Return the consumer with each read of a target replaced by the reads and the body of the dropped block.
    `inverses` maps each target to its position and the dimension that each axis indexes."""
    reads: list[Access] = []
    types: list[Attribute] = []
    values: dict[int, body.Scalar] = {}

    def add(access: Access, type: Attribute) -> body.Scalar:
        for position, (earlier, earlier_type) in enumerate(zip(reads, types, strict=True)):
            if earlier == access and earlier_type == type:
                return body.read(position, type)
        reads.append(access)
        types.append(type)
        return body.read(len(reads) - 1, type)

    ranges = consumer.axis_ranges
    for position, (access, type) in enumerate(zip(consumer.reads, consumer.read_types, strict=True)):
        if access.buffer not in inverses:
            values[position] = add(access, type)
            continue
        number, inverse = inverses[access.buffer]
        axes = {n: access.index[inverse[n]] if n in inverse else lin.constant(0) for n in range(len(dropped.axes))}
        inner = _inner_reads(dropped, axes, access.where, ranges)
        copied = dropped.body[number]
        if isinstance(copied, body.Read) and access.where:
            read = inner[copied.position]
            if not read.where[len(access.where) :] or read.otherwise == access.otherwise:
                values[position] = add(replace(read, otherwise=access.otherwise), dropped.read_types[copied.position])
                continue
        if access.where and access.otherwise is not None:
            inner = [_unconditional(a, access.where, program, ranges) for a in inner]
        typed_reads = [add(a, t) for a, t in zip(inner, dropped.read_types, strict=True)]
        value = body.rewrite(dropped.body[number], dict(enumerate(typed_reads)), axes)
        if access.where and access.otherwise is not None:
            value = body.select(access.where, value, body.constant(access.otherwise), type)
        values[position] = value

    new = tuple(body.rewrite(node, values) for node in consumer.body)
    origin = consumer.origin or _inherited(consumer, dropped, inverses)
    location = fused((consumer.location, dropped.location))
    merged = replace(consumer, reads=tuple(reads), read_types=tuple(types), body=new, origin=origin, location=location)
    return without_unused(merged)


def _inherited(
    consumer: Block, dropped: Block, inverses: dict[str, tuple[int, dict[int, int]]]
) -> tuple[str, tuple[Linear, ...]] | None:
    """The origin of the dropped block, translated to a consumer that only copies its results; None for any other."""
    if dropped.origin is None or consumer.combiners or len(consumer.writes) != len(dropped.writes):
        return None
    copy_reads = [consumer.reads[v.position] for v in consumer.body if isinstance(v, body.Read)]
    if [access.buffer for access in copy_reads] != [access.buffer for access in dropped.writes]:
        return None
    index, inverse = copy_reads[0].index, inverses[copy_reads[0].buffer][1]
    if any(access.index != index for access in copy_reads):
        return None
    bounded = [inner for form in index for inner in (form, *_dividends(form))]
    for condition in copy_reads[0].where:  # a packed copy's padding lies beyond the buffer's elements
        if not any((condition.form + form).is_constant for form in bounded):
            return None
    axes = {n: index[inverse[n]] if n in inverse else lin.constant(0) for n in range(len(dropped.axes))}
    return dropped.origin[0], index_at(dropped.origin[1], axes, consumer.axis_ranges)


def _unconditional(access: Access, where: Sequence[Condition], program: Program, ranges: lin.Ranges) -> Access:
    """Remove the conditions `where` from a read if its index does not depend on their variables and is inside the
    buffer: it then reads the same element in all lanes of a vector, by one load."""
    moving = set().union(*(form.variables() for form in access.index))
    if access.where != tuple(where) or any(moving & condition.form.variables() for condition in where):
        return access
    shape = program.buffers[access.buffer].shape
    spans = [lin.bounds(form, ranges) for form in access.index]
    if any(low < 0 or high >= size for (low, high), size in zip(spans, shape, strict=True)):
        return access
    return replace(access, where=(), otherwise=None)


def _dividends(form: Linear) -> list[Linear]:
    """The dividends of the floordivs in a form: `p` of `p floordiv 14`."""
    return [atom.form for atom, _ in form.terms if isinstance(atom, lin.Quotient) and not atom.is_mod]


def _inner_reads(
    dropped: Block, axes: dict[int, Linear], where: tuple[Condition, ...], ranges: lin.Ranges
) -> list[Access]:
    """The reads of the dropped block under the conditions `where`, with its axes replaced by `axes`, forms over the
    consumer's axes."""
    inner_reads = []
    for access, type in zip(dropped.reads, dropped.read_types, strict=True):
        moved_access = access_at(access, axes, ranges)
        inner_reads.append(
            conditional(moved_access, (*where, *(c for c in moved_access.where if not c.always(ranges))), type)
        )
    return inner_reads
