"""The primitive compute_at."""

from __future__ import annotations

from compiler.affine import linear as lin
from compiler.analysis.cover import runs_for_all
from compiler.program.tree import Access, Block, Program, blocks_in
from compiler.schedule.parameters import BLOCK, LOCATION
from compiler.schedule.placement import inserted, moved_nest, require_box, require_visible
from compiler.schedule.plan import Plan, block_place, loop_place, no_table, refuse, sole_writer
from compiler.schedule.primitive import primitive
from compiler.schedule.primitives.inline import inline
from compiler.schedule.region import Interval, folded, hull, moved_alloc, region
from compiler.schedule.state import INLINE, ROOT


@primitive(
    "$block `at` $loop",
    "sched.compute_at %d at %m",
    "compute-at{block=C at=D.m}",
    block=BLOCK,
    loop=LOCATION.called("at"),
)
def compute_at(program: Program, block: str, loop: int) -> Plan:
    """Move a producer into a loop of its consumers: there it computes the elements that one iteration reads.

        loop.for "i" = 10 { T[i] = f(i) }  loop.for "i" = 8 { S[i] = T[i] + T[i + 1] + T[i + 2] }
      ->
        loop.for "i" = 8 { alloc T[3];  loop.for "i.0" = 3 { T[..] = f(i + i.0) }  S[i] = ... }

    The region is exact for boxes, halos are recomputed. The buffer shrinks to the region and lives in the iteration.

    Requires a block that alone writes its temporaries, once an element, and whose readers are all inside the loop;
    several targets get one region, the hull of the elements read of each. Of a recurrence, which reads its own results,
    all iterations of its axis are moved. Refused where a value that the block reads
    would have changed, and where a gather has a target as its table: any element of that may be read. Elsewhere: TVM
    compute_at, Halide compute_at, Exo fuse with recomputation, MLIR fuse_into_containing_op.
    """
    if loop == ROOT:
        return Plan(program)
    if loop == INLINE:
        return inline(program, block)
    moved = program.blocks[block]
    targets = moved.targets
    for buffer in targets:
        sole_writer(program, buffer, block)
    no_table(block_place(block), program.blocks.values(), *targets)
    node = program.loops[loop]
    dims = {access.buffer: _written_axes(moved, access) for access in moved.writes}
    require_box(program, moved)
    consumers = blocks_in(node)
    inner = {b.label for b in consumers}
    if block in inner and loop in program.outer(block):
        refuse(block_place(block), f"it is inside {loop_place(program, loop)} already")
    readers = [b for b in program.blocks.values() if b is not moved and any(a.buffer in targets for a in b.reads)]
    if not readers:
        named = " or ".join(f"'{name}'" for name in targets)
        refuse(block_place(block), f"it has no consumer of {named} but itself")
    for reader in readers:
        if reader.label not in inner:
            reason = f"its consumer '{reader.label}' is not inside {loop_place(program, loop)}"
            refuse(block_place(block), reason)
    outer = program.outer(loop) | {loop}
    require_visible(program, moved, outer)
    spans = _spans_by_axis(program, moved, dims, outer)
    removed = program.replaced(block, lambda _: [])
    position = next(i for i, child in enumerate(node.body) if any(b in readers for b in blocks_in(child)))
    nest = moved_nest(program, moved, spans, node)

    after = inserted(removed, loop, position, nest).pruned()
    if not runs_for_all(after, program, block):
        reason = f"{loop_place(program, loop)} needs elements that are computed in other iterations of the loops around"
        refuse(block_place(block), reason)
    for buffer in targets:
        after = folded(moved_alloc(after, buffer, loop), buffer, [spans[axis] for axis in dims[buffer]])
    return Plan(after, moved=frozenset((block,)))


def _spans_by_axis(program: Program, block: Block, dims: dict[str, list[int]], outer: set[int]) -> dict[int, Interval]:
    """Map each spatial axis to the hull of the spans that readers of the targets need for fixed loops `outer`, and -1
    to one element; `dims` maps each target to the axes of its dimensions, -1 for a dimension without axis."""
    spans_by_axis = {-1: Interval(lin.constant(0), 1)}
    for buffer, axes in dims.items():
        readers = [reader for reader in program.readers[buffer] if reader is not block]
        if not readers:
            continue
        spans = region(program, buffer, readers, outer, writes=False)
        for axis, span in zip(axes, spans, strict=True):
            if axis >= 0:
                spans_by_axis[axis] = (
                    hull(spans_by_axis[axis], span, block.axes[axis].size) if axis in spans_by_axis else span
                )
    for axis in _recurrent_axes(block):
        spans_by_axis[axis] = Interval(lin.constant(0), block.axes[axis].size)
    return spans_by_axis


def _recurrent_axes(block: Block) -> set[int]:
    """The spatial axes along which a block reads its own results at another index than it writes: it needs them all."""
    own = {access.buffer: access.index for access in block.writes}
    pairs = [
        pair for read in block.reads if read.buffer in own for pair in zip(own[read.buffer], read.index, strict=True)
    ]
    return {axis for written, read in pairs if written != read for axis in written.variables() | read.variables()}


def _written_axes(block: Block, access: Access) -> list[int]:
    """The axis of a block that indexes each dimension of its write `access`, -1 for the index 0. Raises ScheduleError
    unless each other index is a spatial axis, and none occurs twice."""
    axes: list[int] = []
    for form in access.index:
        axis = -1 if form == lin.constant(0) else form.as_variable
        if axis is None or axis >= block.spatial or (axis >= 0 and axis in axes):
            refuse(block_place(block.label), "it does not write one element for each of its spatial axes")
        axes.append(axis)
    return axes
