"""The primitive decompose_reduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.statements import statements
from compiler.program import body
from compiler.program.init import init_block, init_depth, init_nest
from compiler.program.tree import Access, Block, Loop, Program
from compiler.schedule.parameters import BLOCK, LOOP
from compiler.schedule.plan import Plan, block_place, is_end, loop_place, loops_around, refuse
from compiler.schedule.primitive import primitive


@primitive(
    "$block `at` $loop",
    "%init = sched.decompose_reduction %c at %k",
    "decompose-reduction{block=C loop=k}",
    gives={"init": "block"},
    block=BLOCK,
    loop=LOOP,
)
def decompose_reduction(program: Program, block: str, loop: int) -> Plan:
    """Make the init of a reduction, or the first value of a recurrence, a separate block before a loop.

        loop.for "i" { loop.for "k" { C[i] += f(i, k) } }                // decompose C at i
      ->
        loop.for "i" { C[i] = 0 }  loop.for "i" { loop.for "k" { C[i] += f(i, k) } }   // C accumulates

    Before a loop inside the reduction, the init runs in the first iteration of the reduce loops outside: where a tile
    is summed in several rounds, the first round sets it to the identity just before it adds.

        loop.for "t" { M = max(M where t >= 1 else 0, f(t)) }            // the recurrence M at t
      ->
        M = 0  loop.for "t" { M = max(M, f(t)) }

    Of a block without reduction that reads what it overwrites, but for the first iteration of the loop, what it reads
    there instead is written before. Requires that only this condition is there, that the block alone writes the target,
    in all iterations, and that the target lives just outside the loop.

    Requires a block whose init is implicit, and a loop around it in which no target lives (lift_alloc first); between
    the outermost loop of the reduction and that one, loops bind spatial axes or reduce axes of the block, not both.
    Elsewhere: TVM decompose_reduction, Exo fission of the init.
    """
    reduction = program.blocks[block]
    place = block_place(block)
    if not reduction.combiners and not {*reduction.sources}.isdisjoint(reduction.targets):
        return _first_values(program, reduction, loop)
    if not reduction.has_init:
        refuse(place, "it has no implicit init")
    around, depth = loops_around(program, block, loop)
    first = _first_rounds(program, reduction, around[init_depth(reduction, around) : depth])
    for access in reduction.writes:
        if len(program.private_loops(access.buffer)) > depth:
            refuse(place, f"'{access.buffer}' does not live there; lift_alloc first")
    former = statements(program)[block, True]
    label = program.fresh_block(f"{block}.init")
    init = init_block(program, reduction, label)
    init = replace(init, guard=(*init.guard, *first))
    nest = init_nest(program, init, around[depth:], program.fresh_number())
    after = program.replaced(block, lambda _: [replace(reduction, accumulate=True)])
    after = after.replaced(loop, lambda node: [nest.node, node])
    shifts = {label: {n: form for n, form in nest.values.items() if n in former.loops}}
    sources = {(label, False): (block, True)}
    return Plan(after, shifts=shifts, sources=sources, blocks=(label,))


def _first_rounds(program: Program, block: Block, loops: Sequence[Loop]) -> list[Condition]:
    """Conditions of an init in `loops`: first iterations of reduce loops. Refuses loops that bind axes of both kinds,
    or none."""
    reduced, spatial = block.loops_of(True), block.loops_of(False)
    for node in loops:
        if node.extent > 1 and (node.number in reduced) == (node.number in spatial):
            bound_axes = "spatial and reduce axes alike" if node.number in reduced else "no axis"
            reason = f"it binds {bound_axes} of {block_place(block.label)}, whose init would run again"
            refuse(loop_place(program, node.number), reason)
    return [Condition(lin.variable(n.number), equal=True) for n in loops if n.number in reduced]


def _first_values(program: Program, block: Block, loop: int) -> Plan:
    """Plan the init of a recurrence before its loop, and reads without condition. Refuses a block that does not read
    what it overwrites in all iterations but the first, under this condition alone, a target that another block writes
    or that does not live just outside the loop, and different first values."""
    place, ranges = block_place(block.label), program.ranges
    around, depth = loops_around(program, block.label, loop)
    back = Condition(lin.variable(loop) - lin.constant(1))
    written = {access.buffer: access for access in block.writes}
    guard = tuple(condition for condition in block.guard if not is_end(program, loop, condition))
    values: dict[str, body.Scalar] = {}
    reads: list[Access] = []
    for access in block.reads:
        if access.buffer not in written:
            reads.append(access)
            continue
        name, target = access.buffer, written[access.buffer]
        at, to = ([block.at(form, ranges) for form in each.index] for each in (access, target))
        if at != to or any(form.depends_on(loop) for form in to) or any(c.form.depends_on(loop) for c in guard):
            refuse(place, f"it does not read what it overwrites in '{name}' in all iterations of the loop")
        inner = {outer.number for outer in around[depth + 1 :] if outer.extent > 1}
        if not inner <= set().union(*(form.variables() for form in to)):
            refuse(place, f"it overwrites '{name}' several times in an iteration of the loop")
        if [c.substitute(dict(enumerate(block.bindings)), ranges) for c in access.where] != [back]:
            refuse(place, f"its read of '{name}' is not conditional on the first iteration of the loop alone")
        if name not in program.allocs or [*around[:depth]] != [*program.enclosing((name,))]:
            refuse(place, f"'{name}' does not live just outside the loop")
        if len(program.writers[name]) > 1:
            refuse(place, f"another block writes '{name}'")
        assert access.otherwise is not None
        if values.setdefault(name, body.constant(access.otherwise)) is not body.constant(access.otherwise):
            refuse(place, f"it reads '{name}' with two first values")
        reads.append(replace(access, where=(), otherwise=None))
    label = program.fresh_block(f"{block.label}.init")
    bindings = tuple(lin.substitute(form, {loop: lin.constant(0)}, ranges) for form in block.bindings)
    writes = tuple(written[name] for name in values)
    init = Block(label, block.axes, bindings, guard, (), (), writes, tuple(values.values()), location=block.location)
    nest = init_nest(program, init, around[depth:], program.fresh_number())
    after = program.replaced(block.label, lambda _: [replace(block, reads=tuple(reads))])
    return Plan(after.replaced(loop, lambda node: [nest.node, node]), blocks=(label,))
