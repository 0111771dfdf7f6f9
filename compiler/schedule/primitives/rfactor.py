"""The primitive rfactor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.dialects.access import AxisAttr
from compiler.program import body
from compiler.program.init import init_depth, init_nest
from compiler.program.names import fresh
from compiler.program.tree import Access, Alloc, Block, Buffer, Loop, Program, index_at, renumbered
from compiler.schedule.parameters import BLOCK, LOOP
from compiler.schedule.plan import Plan, block_place, loop_place, loops_around, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.region import insert_axis


@primitive(
    "$block `along` $loop",
    "%partial = sched.rfactor %c along %k",
    "rfactor{block=C loop=k.0}",
    gives={"partial": "block"},
    block=BLOCK,
    loop=LOOP,
)
def rfactor(program: Program, block: str, loop: int) -> Plan:
    """Reduce along one loop into a buffer of partial results, and combine those afterwards.

        loop.for "k.0" = 4 { loop.for "k.1" = 8 { C[] += A[8*k.0 + k.1] } }        // rfactor C along k.0
      ->
        loop.for "k.0" { loop.for "k.1" { C.rf[k.0] += A[8*k.0 + k.1] } }
        loop.for "k.0" { C[] += C.rf[k.0] }

    The loop becomes spatial for the partial results, so it can run concurrently. It is the first axis of their buffer,
    also where the result has axes: C.rf[k.0, i]. `transform_layout` with `lambda k, i: (i, k)` makes vectors along the
    loop contiguous. If the loop steps from part to part of the reduce axes, the partial results reduce over one part
    each. Works for any combiner, joint ones too; floating-point sums are reassociated, which a te reduction permits.
    Several targets have a buffer each.

    Requires a reduction with an implicit init, and a loop that binds reduce axes of it only.
    Elsewhere: TVM rfactor, Halide rfactor.
    """
    reduction = program.blocks[block]
    place = block_place(block)
    if not reduction.has_init:
        refuse(place, "it is not a reduction with an implicit init")
    around, _ = loops_around(program, block, loop)
    if loop not in reduction.loops_of(True) or loop in reduction.loops_of(False):
        refuse(loop_place(program, loop), f"it does not bind reduce axes, and only those, of {place}")
    node = program.loops[loop]
    targets = [program.buffers[access.buffer] for access in reduction.writes]
    partials = [
        Buffer(program.fresh_buffer(f"{target.name}.rf"), (node.extent, *target.shape), target.element)
        for target in targets
    ]
    spatial = reduction.spatial
    partial = _of_a_part(program, _with_spatial_axis(reduction, node), node)
    writes = tuple(
        Access(buffer.name, (lin.variable(spatial), *access.index))
        for buffer, access in zip(partials, partial.writes, strict=True)
    )
    partial = replace(partial, label=program.fresh_block(f"{block}.rf"), writes=writes)
    depth = init_depth(reduction, around)
    final = _final(program, reduction, around, node, partials)
    inner = [replace(n, kind="serial") for n in (*(n for n in around[depth:] if n is not node), node)]
    nest = init_nest(program, final, inner, program.fresh_number())
    after = program.replaced(block, lambda _: [partial])
    after = after.replaced(around[depth].number, lambda old: [*map(Alloc, partials), old, nest.node])
    links = {number: copy for number, copy in nest.values.items() if number in reduction.loops_of(False)}
    return Plan(after, sources={(block, True): (block, True)}, shifts={block: links}, blocks=(partial.label,))


def _with_spatial_axis(block: Block, node: Loop) -> Block:
    """Append an axis bound to the loop `node` to the spatial axes of a block."""
    label = fresh(node.label, [axis.label for axis in block.axes])
    return insert_axis(block, block.spatial, AxisAttr(label, node.extent), lin.variable(node.number))


def _of_a_part(program: Program, block: Block, node: Loop) -> Block:
    """Shift the reduce axes of a block to count from the beginning of a part, if the loop, its last spatial axis, steps
    from part to part: then only that axis depends on the loop. Otherwise return the block as it is.

    Axis k = 8*k.0 + k.1 along k.0: the reduce axis becomes k.1, and accesses at k are at 8*k.0 + k.1.
    """
    part_axis = block.spatial - 1
    axes, bindings = list(block.axes), list(block.bindings)
    values: dict[int, Linear] = {}
    for n, form in enumerate(block.bindings[block.spatial :], block.spatial):
        if node.number not in form.variables():
            continue
        terms = [(atom, factor, lin.variables_of(atom)) for atom, factor in form.terms]
        within_part = Linear(tuple((atom, factor) for atom, factor, over in terms if node.number not in over), 0)
        begin = Linear(tuple((atom, factor) for atom, factor, over in terms if over == {node.number}), form.constant)
        if len(within_part.terms) + len(begin.terms) < len(terms) or not _is_dense(within_part, program.ranges):
            return block
        bindings[n] = within_part
        axes[n] = AxisAttr(axes[n].label, lin.bounds(within_part, program.ranges)[1] + 1, reduce=True)
        at_axis = lin.substitute(begin, {node.number: lin.variable(part_axis)}, {part_axis: (0, node.extent - 1)})
        values[n] = at_axis + lin.variable(n)
    ranges = lin.box([axis.size for axis in axes])
    return replace(renumbered(block, values, ranges), axes=tuple(axes), bindings=tuple(bindings))


def _is_dense(form: Linear, ranges: lin.Ranges) -> bool:
    """Whether a form, less its constant, has each value from 0 to its largest exactly once over ranges that begin at 0:
    4*i + j with j in [0, 4). False for a form with a floordiv or mod."""
    step = 1
    for atom, factor in sorted(form.terms, key=lambda term: term[1]):
        if not isinstance(atom, int) or factor != step:
            return False
        step *= ranges[atom][1] + 1
    return True


def _final(program: Program, block: Block, around: Sequence[Loop], node: Loop, partials: Sequence[Buffer]) -> Block:
    """Return the block that combines the partial results, in `partials`, along the loop `node`; `program` and `around`
    are not used."""
    spatial = block.spatial
    reduce_loops = block.loops_of(True) - block.loops_of(False) - {node.number}
    guard = tuple(c for c in block.guard if not c.form.variables() & reduce_loops)  # where partial results have an init
    axis_label = fresh(node.label, [axis.label for axis in block.axes[:spatial]])
    gone = {n: lin.constant(0) for n in range(spatial, len(block.axes))}
    writes = [replace(access, index=index_at(access.index, gone, block.axis_ranges)) for access in block.writes]
    types = tuple(buffer.scalar for buffer in partials)
    return Block(
        block.label,
        (*block.axes[:spatial], AxisAttr(axis_label, node.extent, reduce=True)),
        (*block.bindings[:spatial], lin.variable(node.number)),
        guard,
        tuple(Access(b.name, (lin.variable(spatial), *a.index)) for b, a in zip(partials, writes, strict=True)),
        types,
        tuple(writes),
        tuple(body.read(n, type) for n, type in enumerate(types)),
        block.combiners,
        location=block.location,
    )
