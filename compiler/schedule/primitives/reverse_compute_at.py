"""The primitive reverse_compute_at."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.cover import covered, runs_for_all
from compiler.program.tree import Block, Loop, Program, blocks_in
from compiler.schedule.parameters import BLOCK, LOCATION
from compiler.schedule.placement import inserted, moved_nest, require_box, require_visible
from compiler.schedule.plan import Plan, block_place, loop_place, no_table, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.primitives.reverse_inline import reverse_inline
from compiler.schedule.region import Interval, alloc_first, folded, moved_alloc, region
from compiler.schedule.state import INLINE, ROOT


@primitive(
    "$block `at` $loop",
    "sched.reverse_compute_at %d at %m",
    "reverse-compute-at{block=D at=C.m}",
    block=BLOCK,
    loop=LOCATION.called("at"),
)
def reverse_compute_at(program: Program, block: str, loop: int) -> Plan:
    """Move a consumer into a loop of its producer: there it consumes the elements that one iteration has finished.

        loop.for "i" = 8 { T[i] = f(i) }  loop.for "i" = 8 { S[i] = g(T[i]) }
      ->
        loop.for "i" = 8 { T[i] = f(i)  S[i] = g(T[i]) }

    Inside a loop of the producer's reduction, the consumer runs in the last iteration of that loop.

    Requires a block without reduction that reads one element of the producer's buffer for each of its instances,
    through an index that is one axis a dimension, and regions of the loop's iterations that do not overlap and hold
    nothing that it does not read. Refused where a dependence would be reversed, as before the producer's reduction has
    ended, and for a gather from that buffer. Elsewhere: TVM reverse_compute_at, Exo fuse, MLIR fuse_consumer.
    """
    if loop == ROOT:
        return Plan(program)
    if loop == INLINE:
        return reverse_inline(program, block)
    moved = program.blocks[block]
    node = program.loops[loop]
    if loop in program.outer(block):
        refuse(block_place(block), f"it is inside {loop_place(program, loop)} already")
    written = {a.buffer: b for b in blocks_in(node) for a in b.writes}
    no_table(block_place(block), [moved], *written)
    sources = [a for a in moved.reads if a.buffer in written]
    if not sources:
        refuse(block_place(block), f"it reads nothing that {loop_place(program, loop)} writes")
    if any(axis.is_reduce for axis in moved.axes):
        refuse(block_place(block), "it is a reduction, which is spread over several iterations")
    buffer = sources[0].buffer
    require_box(program, moved)
    outer = program.outer(loop) | {loop}
    require_visible(program, moved, outer)
    producers = [b for b in blocks_in(node) if buffer in b.targets]
    spans = region(program, buffer, producers, outer, writes=True)
    by_axis = _consumed_axes(program, moved, sources[0].index, spans, outer)
    last_rounds = _last_rounds(program, block, node, by_axis, producers)
    removed = program.replaced(block, lambda _: [])
    last = max(i for i, child in enumerate(node.body) if any(b in producers for b in blocks_in(child)))
    nest = moved_nest(program, moved, by_axis, node, last_rounds)

    after = inserted(removed, loop, last + 1, nest).pruned()
    if not runs_for_all(program, after, block):
        reason = f"{loop_place(program, loop)} does not produce all of '{buffer}' that it reads"
        refuse(block_place(block), reason)
    if not runs_for_all(after, program, block):
        reason = f"{loop_place(program, loop)} produces elements of '{buffer}' that it does not read"
        refuse(block_place(block), reason)
    for access in moved.writes:
        after = alloc_first(after, access.buffer)
    for name in dict.fromkeys(access.buffer for access in sources):
        writers = [b for b in blocks_in(node) if name in b.targets]
        after = _shrunk(after, name, region(program, name, writers, outer, writes=True), outer, loop)
    return Plan(after, moved=frozenset((block,)))


def _consumed_axes(
    program: Program, block: Block, index: Sequence[Linear], spans: Sequence[Interval], outer: set[int]
) -> dict[int, Interval]:
    """Map the axes of the consumer to their spans in one iteration: one value if outer loops bind an axis. `index`: of
    its read of the producer's buffer, whose region in an iteration of the loops `outer` is `spans`. Refuses a dimension
    of the index that is not an axis plus a constant."""
    by_axis: dict[int, Interval] = {}
    for form, span in zip(index, spans, strict=True):
        if form.is_constant:
            continue
        atom, factor = form.terms[0]
        if len(form.terms) > 1 or factor != 1 or not isinstance(atom, int) or atom in by_axis:
            refuse(block_place(block.label), "it does not read one element at its own axes")
        by_axis[atom] = Interval(span.low - lin.constant(form.constant), span.extent)
    for number, (axis, bound) in enumerate(zip(block.axes, block.bindings, strict=True)):
        if number not in by_axis and not bound.variables() <= outer:
            by_axis[number] = Interval(lin.constant(0), axis.size)
        elif number not in by_axis and bound.variables():
            by_axis[number] = Interval(bound, 1)
    return by_axis


def _last_rounds(
    program: Program, block: str, node: Loop, spans: dict[int, Interval], producers: Sequence[Block]
) -> list[Condition]:
    """The conditions under which the consumer runs: the last iteration of the reduce loops of its producers. `spans`:
    of its axes.

    Refused unless iterations of all other new loops have disjoint regions: 4 elements from `4*i` are, 4 from `3*i` not.
    """
    around = [*program.enclosing(node.number), node]
    common = program.outer(block)
    new = [n for n in around if n.number not in common and n.extent > 1]
    used: set[int] = set()
    for span in spans.values():
        terms = [(a, f) for a, f in span.low.terms if not isinstance(a, int) or a not in common]
        if any(not isinstance(atom, int) for atom, _ in terms):
            refuse(block_place(block), "the region of one iteration is not a box that moves")
        reach = span.extent
        for atom, factor in sorted(terms, key=lambda t: abs(t[1])):
            assert isinstance(atom, int)
            if abs(factor) < reach:
                label = program.loops[atom].label
                refuse(block_place(block), f"the regions of iterations of loop '{label}' overlap")
            reach += abs(factor) * (program.loops[atom].extent - 1)
            used.add(atom)
    rounds, reductions = [], [p for p in producers if p.combiners]
    for loop in new:
        if loop.number in used:
            continue
        if not reductions or any(loop.number not in p.loops_of(True) - p.loops_of(False) for p in reductions):
            reason = f"iterations of loop '{loop.label}' have the same region: it would run more than once"
            refuse(block_place(block), reason)
        rounds.append(Condition(lin.variable(loop.number) - lin.constant(loop.extent - 1), equal=True))
    return rounds


def _shrunk(after: Program, buffer: str, spans: Sequence[Interval], outer: set[int], loop: int) -> Program:
    """Return a program in which a temporary shrinks to the region `spans` and is allocated in `loop`, the last of the
    loops `outer`, if all uses are inside, none is a gather, and each iteration writes the elements that it reads; else
    return `after`."""
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
