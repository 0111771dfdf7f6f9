"""decompose_reduction and rfactor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.legal import Step
from compiler.analysis.statements import statements
from compiler.dialects.access import AxisAttr
from compiler.program import body
from compiler.program.init import init_block, init_depth, init_nest
from compiler.program.tree import Access, Alloc, Block, Buffer, Loop, Node, Program, fresh, nested, rebound
from compiler.schedule.plan import Plan, block_place, loop_place, new_label, refuse


def decompose_reduction(program: Program, block: str, loop: int) -> Plan:
    """Make the init of a reduction a block of its own, before a loop.

        loop.for "i" { loop.for "k" { C[i] += f(i, k) } }                // decompose C at i
      ->
        loop.for "i" { C[i] = 0 }  loop.for "i" { loop.for "k" { C[i] += f(i, k) } }   // C accumulates

    Before a loop inside the reduction, the init runs in the first iteration of the reduce loops outside: where a tile
    is summed in several rounds, the first round sets it to the identity just before it adds.

    Requires a block whose init is implicit, and a loop around it; between the outermost loop of the reduction and that
    one, loops bind spatial axes or reduce axes of the block, not both. Elsewhere: TVM decompose_reduction, Exo fission
    of the init.
    """
    reduction = program.blocks[block]
    place = block_place(block)
    if not reduction.has_init:
        refuse("decompose_reduction", place, "it has no implicit init")
    around = program.enclosing(block)
    numbers = [n.number for n in around]
    if loop not in numbers:
        refuse("decompose_reduction", loop_place(program, loop), f"it is not around {place}")
    depth = numbers.index(loop)
    first = _first_rounds(program, reduction, around[init_depth(reduction, around) : depth])
    for access in reduction.writes:
        if (access.buffer,) in program.places and len(program.enclosing((access.buffer,))) > depth:
            refuse("decompose_reduction", place, f"'{access.buffer}' does not live there; lift_alloc first")
    former = statements(program)[block, True]
    label = program.fresh_block(f"{block}.init")
    init = init_block(program, reduction, label)
    init = replace(init, guard=(*init.guard, *first))
    nest = init_nest(program, init, around[depth:], program.fresh_number())
    after = program.replaced(block, lambda _: [replace(reduction, accumulate=True)])
    after = after.replaced(loop, lambda node: [nest.node, node])
    shifts = {label: {n: form for n, form in nest.values.items() if n in former.loops}}
    sources = {(label, False): (block, True)}
    return Plan(Step(after, shifts=shifts, sources=sources), blocks=(label,))


def _first_rounds(program: Program, block: Block, loops: Sequence[Loop]) -> list[Condition]:
    """That an init inside some loops of the reduction stands in the first iteration of each."""
    reduced, spatial = block.loops_of(True), block.loops_of(False)
    for node in loops:
        if node.extent > 1 and (node.number in reduced) == (node.number in spatial):
            both = "spatial and reduce axes alike" if node.number in reduced else "no axis"
            reason = f"it binds {both} of {block_place(block.label)}, whose init would run again"
            refuse("decompose_reduction", loop_place(program, node.number), reason)
    return [Condition(lin.variable(n.number), equal=True) for n in loops if n.number in reduced]


def rfactor(program: Program, block: str, loop: int) -> Plan:
    """Reduce along one loop into a buffer of partial results, and combine those afterwards.

        loop.for "k.0" = 4 { loop.for "k.1" = 8 { C[] += A[8*k.0 + k.1] } }        // rfactor C along k.0
      ->
        loop.for "k.0" { loop.for "k.1" { C.rf[k.0] += A[8*k.0 + k.1] } }
        loop.for "k.0" { C[] += C.rf[k.0] }

    The loop is then spatial for the partial results, so it can run concurrently. Any combiner will do, joint ones too;
    floating-point sums are reassociated, which a te reduction permits. Several targets have a buffer each.

    Requires a reduction with an implicit init, and a loop that binds reduce axes of it only.
    Elsewhere: TVM rfactor, Halide rfactor.
    """
    reduction = program.blocks[block]
    place = block_place(block)
    if not reduction.has_init:
        refuse("rfactor", place, "it is not a reduction with an implicit init")
    around = program.enclosing(block)
    numbers = [n.number for n in around]
    if loop not in numbers:
        refuse("rfactor", loop_place(program, loop), f"it is not around {place}")
    if loop not in reduction.loops_of(True) or loop in reduction.loops_of(False):
        refuse("rfactor", loop_place(program, loop), f"it does not bind reduce axes, and only those, of {place}")
    node = program.loops[loop]
    targets = [program.buffers[access.buffer] for access in reduction.writes]
    partials = [
        Buffer(program.fresh_buffer(f"{target.name}.rf"), (node.extent, *target.shape), target.element)
        for target in targets
    ]
    spatial = reduction.spatial
    partial = _with_spatial_axis(reduction, node)
    writes = tuple(
        Access(buffer.name, (lin.variable(spatial), *access.index))
        for buffer, access in zip(partials, partial.writes, strict=True)
    )
    partial = replace(partial, label=program.fresh_block(f"{block}.rf"), writes=writes)
    depth = init_depth(reduction, around)
    final, nest = _final(program, reduction, around, depth, node, partials)
    outermost = around[depth]
    after = program.replaced(block, lambda _: [partial])
    after = after.replaced(outermost.number, lambda old: [*map(Alloc, partials), old, nest])
    shifts = _final_links(final, reduction, around)
    step = Step(after, sources={(block, True): (block, True)}, shifts=shifts)
    return Plan(step, blocks=(partial.label,))


def _with_spatial_axis(block: Block, node: Loop) -> Block:
    """The block with the loop as its last spatial axis."""
    from compiler.schedule.region import insert_axis

    label = fresh(node.label, [axis.label for axis in block.axes])
    return insert_axis(block, block.spatial, AxisAttr(label, node.extent), lin.variable(node.number))


def _final(
    program: Program,
    block: Block,
    around: tuple[Loop, ...],
    depth: int,
    node: Loop,
    partials: Sequence[Buffer],
) -> tuple[Block, Node]:
    """The block that combines the partial results, and its nest: the spatial loops inside the reduction's, then
    the factored one."""
    spatial = block.spatial
    others = block.loops_of(True) - block.loops_of(False) - {node.number}
    guard = tuple(c for c in block.guard if not c.form.variables() & others)  # where partial results have an init
    used = set().union(*(f.variables() for f in block.bindings[:spatial]), *(c.form.variables() for c in guard))
    used.discard(node.number)
    inner = [n for n in around[depth:] if n.number in used]
    number = program.fresh_number()
    ranges = dict(program.ranges)
    values: dict[int, Linear] = {}
    loops = []
    for loop in inner:
        ranges[number] = (0, loop.extent - 1)
        values[loop.number] = lin.variable(number)
        loops.append(Loop(number, new_label(loop.label, {n.label for n in around[:depth]}), loop.extent, ()))
        number += 1
    ranges[number] = (0, node.extent - 1)
    values[node.number] = lin.variable(number)
    label = new_label(node.label, {n.label for n in (*around[:depth], *loops)})
    loops.append(Loop(number, label, node.extent, ()))
    axis_label = fresh(node.label, [axis.label for axis in block.axes[:spatial]])
    axes = (*block.axes[:spatial], AxisAttr(axis_label, node.extent, reduce=True))
    gone = {n: lin.constant(0) for n in range(spatial, len(block.axes))}
    indices = [tuple(lin.substitute(f, gone, block.axis_ranges) for f in access.index) for access in block.writes]
    types = tuple(buffer.scalar for buffer in partials)
    final = Block(
        block.label,
        axes,
        (*block.bindings[:spatial], lin.variable(number)),
        guard,
        tuple(Access(b.name, (lin.variable(spatial), *index)) for b, index in zip(partials, indices, strict=True)),
        types,
        tuple(replace(access, index=index) for access, index in zip(block.writes, indices, strict=True)),
        tuple(body.read(n, type) for n, type in enumerate(types)),
        block.combiners,
    )
    final = rebound(final, values, ranges)
    return final, nested(loops, final)


def _final_links(final: Block, before: Block, around: tuple[Loop, ...]) -> dict[str, dict[int, Linear]]:
    """The final block's instances correspond by the loops that bind its spatial axes."""
    links: dict[int, Linear] = {}
    for was, now in zip(before.bindings[: before.spatial], final.bindings, strict=False):
        old, new = [a for a, _ in was.terms], [a for a, _ in now.terms]
        for a, b in zip(old, new, strict=False):
            if isinstance(a, int) and isinstance(b, int) and a != b:
                links[a] = lin.variable(b)
    return {final.label: links}
