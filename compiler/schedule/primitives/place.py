"""compute_at and reverse_compute_at: a block moves into a loop of its consumer, or of its producer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.cover import covered, runs_for_all
from compiler.analysis.legal import Step
from compiler.program.tree import Access, Block, Loop, Node, Program, blocks_in
from compiler.schedule.plan import (
    Plan,
    block_place,
    labels_in,
    loop_place,
    new_label,
    no_table,
    refuse,
    sole_writer,
    target_names,
)
from compiler.schedule.region import Span, alloc_first, folded, hull, inside, moved_alloc, region


def compute_at(program: Program, block: str, loop: int) -> Plan:
    """Move a producer into a loop of its consumers: there it computes just what one iteration reads.

        loop.for "i" = 10 { T[i] = f(i) }  loop.for "i" = 8 { S[i] = T[i] + T[i + 1] + T[i + 2] }
      ->
        loop.for "i" = 8 { alloc T[3];  loop.for "i.0" = 3 { T[..] = f(i + i.0) }  S[i] = ... }

    The region is exact for boxes, halos are recomputed. The buffer shrinks to the region and lives in the iteration.

    Requires a block that alone writes its temporaries, once an element, and whose readers are all inside the loop;
    several targets get one region, the hull of what is read of them. Refused where a value that the block reads would
    have changed, and where a gather has a target as its table: any element of that may be read. Elsewhere: TVM
    compute_at, Halide compute_at, Exo fuse with recomputation, MLIR fuse_into_containing_op.
    """
    moved = program.blocks[block]
    targets = target_names(moved)
    for buffer in targets:
        sole_writer("compute_at", program, buffer, block)
    no_table("compute_at", block_place(block), program.blocks.values(), *targets)
    node = program.loops[loop]
    dims = {access.buffer: _written_axes("compute_at", moved, access) for access in moved.writes}
    _require_box("compute_at", program, moved)
    consumers = blocks_in(node)
    inner = {b.label for b in consumers}
    if block in inner and loop in {n.number for n in program.enclosing(block)}:
        refuse("compute_at", block_place(block), f"it is inside {loop_place(program, loop)} already")
    readers = [b for b in program.blocks.values() if any(a.buffer in targets for a in b.reads)]
    if moved in readers or not readers:
        named = " or ".join(f"'{name}'" for name in targets)
        refuse("compute_at", block_place(block), f"it has no consumer of {named} but itself")
    for reader in readers:
        if reader.label not in inner:
            reason = f"its consumer '{reader.label}' is not inside {loop_place(program, loop)}"
            refuse("compute_at", block_place(block), reason)
    outer = {n.number for n in (*program.enclosing(loop), node)}
    _require_visible("compute_at", program, moved, outer)
    spans = _spans_by_axis(program, moved, dims, outer)
    removed = program.replaced(block, lambda _: [])
    position = next(i for i, child in enumerate(node.body) if any(b in readers for b in blocks_in(child)))
    nest = _nest(program, moved, spans, node)

    def insert(here: Node) -> Sequence[Node]:
        assert isinstance(here, Loop)
        return [replace(here, body=(*here.body[:position], nest, *here.body[position:]))]

    after = removed.replaced(loop, insert)
    after = after.with_body(after.body)
    if not runs_for_all(after, program, block):
        reason = f"{loop_place(program, loop)} needs elements that are computed in other iterations of the loops around"
        refuse("compute_at", block_place(block), reason)
    for buffer in targets:
        after = folded(moved_alloc(after, buffer, loop), buffer, [spans[axis] for axis in dims[buffer]])
    return Plan(Step(after, moved=frozenset((block,))))


def _spans_by_axis(program: Program, block: Block, dims: dict[str, list[int]], outer: set[int]) -> dict[int, Span]:
    """For each spatial axis, what the readers of any target need of it; -1 stands for dimensions without axis."""
    found = {-1: Span(lin.constant(0), 1)}
    for buffer, axes in dims.items():
        if not program.readers[buffer]:
            continue
        spans = region(program, buffer, program.readers[buffer], outer, writes=False)
        for axis, span in zip(axes, spans, strict=True):
            if axis >= 0:
                found[axis] = hull(found[axis], span, block.axes[axis].size) if axis in found else span
    return found


def _require_visible(primitive: str, program: Program, block: Block, outer: set[int]) -> None:
    """Every buffer of the block lives at its new place."""
    for name in dict.fromkeys((*block.sources, *(a.buffer for a in block.writes))):
        around = program.enclosing((name,)) if name in program.allocs else ()
        for loop in around:
            if loop.number not in outer:
                refuse(primitive, block_place(block.label), f"buffer '{name}' lives in loop '{loop.label}' only")


def _written_axes(primitive: str, block: Block, access: Access) -> list[int]:
    """The axis that indexes each dimension of a target of the block, -1 for none; each spatial axis indexes one."""
    found: list[int] = []
    for form in access.index:
        atoms = [atom for atom, factor in form.terms if factor == 1 and isinstance(atom, int)]
        if form.is_constant and form.constant == 0:
            found.append(-1)
            continue
        if form.constant or len(form.terms) != 1 or not atoms or atoms[0] >= block.spatial or atoms[0] in found:
            refuse(primitive, block_place(block.label), "it does not write one element for each of its spatial axes")
        found.append(atoms[0])
    return found


def _nest(program: Program, block: Block, spans: dict[int, Span], node: Loop, when: Sequence[Condition] = ()) -> Node:
    """The block under new loops inside `node`, over the spans of its axes and all of its reductions."""
    taken = {n.label for n in (*program.enclosing(node.number), node)} | labels_in(node.body)
    number = program.fresh_number()
    ranges = dict(program.ranges)
    loops: list[Loop] = []
    bindings: list[Linear] = []
    guard = list(when)
    for position, (axis, bound) in enumerate(zip(block.axes, block.bindings, strict=True)):
        span = spans.get(position)
        if span is None and not axis.is_reduce:
            if bound.variables():
                reason = f"its axis '{axis.label}' indexes no element and is tied to the place where it stands"
                refuse("compute_at", block_place(block.label), reason)
            bindings.append(bound)
            continue
        span = span or Span(lin.constant(0), axis.size)
        form = span.low
        if span.extent > 1:
            label = new_label(axis.label if axis.label not in taken else f"{block.label}.{axis.label}", taken)
            loops.append(Loop(number, label, span.extent, ()))
            ranges[number] = (0, span.extent - 1)
            form = form + lin.variable(number)
            number += 1
        bindings.append(form)
        guard += inside([form], [axis.size], ranges)
    nest: Node = replace(block, bindings=tuple(bindings), guard=tuple(dict.fromkeys(guard)))
    for loop in reversed(loops):
        nest = replace(loop, body=(nest,))
    return nest


def _require_box(primitive: str, program: Program, block: Block) -> None:
    """The axes vary independently of each other: no loop binds two of them."""
    seen: dict[int, str] = {}
    for axis, form in zip(block.axes, block.bindings, strict=True):
        for number in form.variables():
            if number in seen:
                label = program.loops[number].label
                reason = f"its axes '{seen[number]}' and '{axis.label}' are tied to each other by loop '{label}'"
                refuse(primitive, block_place(block.label), reason)
            seen[number] = axis.label


def reverse_compute_at(program: Program, block: str, loop: int) -> Plan:
    """Move a consumer into a loop of its producer: there it consumes what one iteration has finished.

        loop.for "i" = 8 { T[i] = f(i) }  loop.for "i" = 8 { S[i] = g(T[i]) }
      ->
        loop.for "i" = 8 { T[i] = f(i)  S[i] = g(T[i]) }

    Inside a loop of the producer's reduction, it runs in the last iteration of that.

    Requires a block without reduction that reads one element of the producer's buffer for each of its instances,
    through an index that is one axis a dimension, and regions of the loop's iterations that do not overlap and hold
    nothing that it does not read. Refused
    where a dependence would be reversed, as before the producer's reduction has ended, and for a gather from that
    buffer.
    Elsewhere: TVM reverse_compute_at, Exo fuse, MLIR fuse_consumer.
    """
    moved = program.blocks[block]
    node = program.loops[loop]
    if loop in {n.number for n in program.enclosing(block)}:
        refuse("reverse_compute_at", block_place(block), f"it is inside {loop_place(program, loop)} already")
    written = {a.buffer: b for b in blocks_in(node) for a in b.writes}
    no_table("reverse_compute_at", block_place(block), [moved], *written)
    sources = [a for a in moved.reads if a.buffer in written]
    if not sources:
        refuse("reverse_compute_at", block_place(block), f"it reads nothing that {loop_place(program, loop)} writes")
    if any(axis.is_reduce for axis in moved.axes):
        refuse("reverse_compute_at", block_place(block), "it is a reduction, which is spread over several iterations")
    buffer = sources[0].buffer
    _require_box("reverse_compute_at", program, moved)
    _require_visible("reverse_compute_at", program, moved, {n.number for n in (*program.enclosing(loop), node)})
    outer = {n.number for n in (*program.enclosing(loop), node)}
    producers = [b for b in blocks_in(node) if any(a.buffer == buffer for a in b.writes)]
    spans = region(program, buffer, producers, outer, writes=True)
    by_axis = _consumed_axes(program, moved, sources[0].index, spans, outer)
    last_rounds = _last_rounds(program, block, node, by_axis, producers)
    removed = program.replaced(block, lambda _: [])
    last = max(i for i, child in enumerate(node.body) if any(b in producers for b in blocks_in(child)))
    nest = _nest(program, moved, by_axis, node, last_rounds)

    def insert(here: Node) -> Sequence[Node]:
        assert isinstance(here, Loop)
        return [replace(here, body=(*here.body[: last + 1], nest, *here.body[last + 1 :]))]

    after = removed.replaced(loop, insert)
    after = after.with_body(after.body)
    if not runs_for_all(program, after, block):
        reason = f"{loop_place(program, loop)} does not produce all of '{buffer}' that it reads"
        refuse("reverse_compute_at", block_place(block), reason)
    if not runs_for_all(after, program, block):
        reason = f"{loop_place(program, loop)} produces elements of '{buffer}' that it does not read"
        refuse("reverse_compute_at", block_place(block), reason)
    for access in moved.writes:
        after = alloc_first(after, access.buffer)
    after = _shrunk(after, buffer, spans, outer, loop)
    return Plan(Step(after, moved=frozenset((block,))))


def _consumed_axes(
    program: Program, block: Block, index: Sequence[Linear], spans: Sequence[Span], outer: set[int]
) -> dict[int, Span]:
    """The span of each axis of the consumer in one iteration; an axis bound outside keeps its value."""
    found: dict[int, Span] = {}
    for form, span in zip(index, spans, strict=True):
        if form.is_constant:
            continue
        atom, factor = form.terms[0]
        if len(form.terms) > 1 or factor != 1 or not isinstance(atom, int) or atom in found:
            refuse("reverse_compute_at", block_place(block.label), "it does not read one element at its own axes")
        found[atom] = Span(span.low - lin.constant(form.constant), span.extent)
    for number, (axis, bound) in enumerate(zip(block.axes, block.bindings, strict=True)):
        if number not in found and not bound.variables() <= outer:
            found[number] = Span(lin.constant(0), axis.size)
        elif number not in found and bound.variables():
            found[number] = Span(bound, 1)
    return found


def _last_rounds(
    program: Program, block: str, node: Loop, spans: dict[int, Span], producers: Sequence[Block]
) -> list[Condition]:
    """When the consumer runs: in the last iteration of the loops of the producers' reductions.

    Different iterations of all other loops around must have different regions, one beside the other.
    """
    around = [*program.enclosing(node.number), node]
    common = {n.number for n in program.enclosing(block)}
    new = [n for n in around if n.number not in common and n.extent > 1]
    used: set[int] = set()
    for span in spans.values():
        terms = [(a, f) for a, f in span.low.terms if not isinstance(a, int) or a not in common]
        if any(not isinstance(atom, int) for atom, _ in terms):
            refuse("reverse_compute_at", block_place(block), "the region of one iteration is not a box that moves")
        reach = span.extent
        for atom, factor in sorted(terms, key=lambda t: abs(t[1])):
            assert isinstance(atom, int)
            if abs(factor) < reach:
                label = program.loops[atom].label
                refuse("reverse_compute_at", block_place(block), f"the regions of iterations of loop '{label}' overlap")
            reach += abs(factor) * (program.loops[atom].extent - 1)
            used.add(atom)
    rounds, reductions = [], [p for p in producers if p.combiners]
    for loop in new:
        if loop.number in used:
            continue
        if not reductions or any(loop.number not in p.loops_of(True) - p.loops_of(False) for p in reductions):
            reason = f"iterations of loop '{loop.label}' have the same region: it would run more than once"
            refuse("reverse_compute_at", block_place(block), reason)
        rounds.append(Condition(lin.variable(loop.number) - lin.constant(loop.extent - 1), equal=True))
    return rounds


def _shrunk(after: Program, buffer: str, spans: Sequence[Span], outer: set[int], loop: int) -> Program:
    """The buffer lives in the iteration, and is no larger than its region, where all that touches it is inside."""
    node = after.loops[loop]
    inside_now = {b.label for b in blocks_in(node)}
    users = after.readers.get(buffer, []) + after.writers[buffer]
    if buffer not in after.allocs or any(b.label not in inside_now for b in users):
        return after
    if any(b.table is not None and b.table.buffer == buffer for b in users):
        return after  # any element may be read
    if any(n.number not in outer for n in after.enclosing((buffer,))):
        return after
    private = moved_alloc(after, buffer, loop)
    if not covered(private, buffer, len(after.enclosing(loop)) + 1):
        return after
    return folded(private, buffer, spans)
