"""The primitive reverse_inline."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.cover import runs_once
from compiler.program import body
from compiler.program.tree import Access, Block, Program, access_at, index_at
from compiler.schedule.inlining import inverse, without_unused
from compiler.schedule.parameters import BLOCK
from compiler.schedule.plan import Plan, block_place, no_gather, only_target, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.region import alloc_first
from compiler.support.origins import fused


@primitive("$block", "sched.reverse_inline %c", "reverse-inline{block=D}", consumes=["block"], block=BLOCK)
def reverse_inline(program: Program, block: str) -> Plan:
    """Apply an elementwise consumer where its producer writes, and drop the consumer.

        loop.for "i" { T[i] = f(A[i]) }  loop.for "i" { S[i] = g(T[i], B[i]) }
      ->
        loop.for "i" { S[i] = g(f(A[i]), B[i]) }

    Requires a consumer without reduction, the only reader of a temporary that one block without reduction writes; it
    reads one element at its own axes and writes one for each. Neither of them is a gather. Elsewhere: TVM
    reverse_compute_inline, MLIR linalg elementwise fusion.
    """
    consumer = program.blocks[block]
    place = block_place(block)
    if consumer.combiners:
        refuse(place, "it is a reduction")
    no_gather(place, consumer)
    read = next((access for access in consumer.reads if _is_plain(program, access.buffer)), None)
    if read is None:
        refuse(place, "it reads no temporary of a single block without reduction")
    buffer = read.buffer
    producer = program.writers[buffer][0]
    no_gather(place, producer)
    if len(producer.writes) != 1:
        refuse(place, f"block '{producer.label}' writes several buffers")
    if [r.label for r in program.readers[buffer]] != [block]:
        refuse(place, f"it is not the only reader of '{buffer}'")
    if sum(access.buffer == buffer for access in consumer.reads) > 1:
        refuse(place, f"it reads '{buffer}' more than once")
    if read.where:
        refuse(place, f"it reads '{buffer}' under a condition")
    target = program.buffers[only_target(consumer)]
    if sum(w is not consumer for w in program.writers[target.name]):
        refuse(place, f"'{target.name}' is written by another block as well")
    inverse(consumer)
    by_dim = _consumed_axes(program, consumer, read)
    inverse(producer)
    if not runs_once(program, producer.label):
        refuse(place, f"block '{producer.label}' writes elements of '{buffer}' more than once")
    _require_readable(program, producer, consumer)
    axes = {atom: producer.writes[0].index[dim] for dim, atom in by_dim.items()}
    axes |= {n: lin.constant(0) for n in range(len(consumer.axes)) if n not in axes}
    merged = _applied(producer, consumer, buffer, axes)
    after = program.replaced(block, lambda _: []).replaced((buffer,), lambda _: [])
    after = after.replaced(producer.label, lambda _: [merged])
    after = alloc_first(after.pruned(), target.name)
    sources = {(merged.label, False): (producer.label, False)}
    return Plan(after, sources=sources)


def _is_plain(program: Program, buffer: str) -> bool:
    """Whether a buffer is a temporary that one block writes, without reduction."""
    writers = program.writers[buffer]
    return buffer in program.allocs and len(writers) == 1 and not writers[0].combiners


def _consumed_axes(program: Program, consumer: Block, read: Access) -> dict[int, int]:
    """Map each dimension of the buffer that the consumer reads to the axis that indexes it, without dimensions of
    extent 1. Refuses a consumer that does not read each element once."""
    place, buffer, shape = block_place(consumer.label), read.buffer, program.buffers[read.buffer].shape
    by_dim: dict[int, int] = {}
    for dim, form in enumerate(read.index):
        if form == lin.constant(0) and shape[dim] == 1:
            continue
        axis = form.as_variable
        if axis is None or axis in by_dim.values():
            refuse(place, f"it does not read one element of '{buffer}' at its own axes")
        if consumer.axes[axis].size != shape[dim]:
            refuse(place, f"it does not read all of '{buffer}'")
        by_dim[dim] = axis
    if any(n not in by_dim.values() and axis.size > 1 for n, axis in enumerate(consumer.axes)):
        refuse(place, f"it reads an element of '{buffer}' more than once")
    return by_dim


def _require_readable(program: Program, producer: Block, consumer: Block) -> None:
    """Raise ScheduleError unless the other buffers of the consumer live in the loops of the producer, no block writes
    its other inputs after the producer has begun, and nothing reads its target before the consumer."""
    outer = program.outer(producer.label)
    for access in (*consumer.reads, *consumer.writes):
        if not outer.issuperset(program.private_loops(access.buffer)):
            reason = f"'{access.buffer}' does not live where block '{producer.label}' runs"
            refuse(block_place(consumer.label), reason)
    start = program.places[producer.label].positions[0]
    for access in consumer.reads:
        for writer in program.writers[access.buffer]:
            if writer is not producer and program.places[writer.label].positions[0] >= start:
                reason = (
                    f"block '{writer.label}' writes '{access.buffer}', which it reads, after its producer has begun"
                )
                refuse(block_place(consumer.label), reason)
    target = consumer.writes[0].buffer
    here = program.places[consumer.label].positions
    users = [u for u in program.readers[target] if program.places[u.label].positions < here]
    if users or target in {a.buffer for a in producer.reads}:
        refuse(block_place(consumer.label), f"'{target}' is read before it")


def _applied(producer: Block, consumer: Block, buffer: str, axes: dict[int, Linear]) -> Block:
    reads: list[Access] = list(producer.reads)
    types: list[Attribute] = list(producer.read_types)
    ranges = producer.axis_ranges
    values: dict[int, body.Scalar] = {}
    for position, (access, type) in enumerate(zip(consumer.reads, consumer.read_types, strict=True)):
        if access.buffer == buffer:
            values[position] = producer.body[0]
            continue
        reads.append(access_at(access, axes, ranges))
        types.append(type)
        values[position] = body.read(len(reads) - 1, type)

    origin = consumer.origin
    if origin is not None:
        origin = origin[0], index_at(origin[1], axes, ranges)
    elif len(consumer.reads) == 1 and isinstance(consumer.body[0], body.Read):
        origin = producer.origin
    return without_unused(
        replace(
            producer,
            label=consumer.label,
            reads=tuple(reads),
            read_types=tuple(types),
            writes=(access_at(consumer.writes[0], axes, ranges),),
            body=tuple(body.rewrite(node, values, axes) for node in consumer.body),
            origin=origin,
            location=fused((producer.location, consumer.location)),
        )
    )
