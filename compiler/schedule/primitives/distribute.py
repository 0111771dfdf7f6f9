"""The primitive distribute."""

from __future__ import annotations

from dataclasses import replace

from compiler.affine import linear as lin
from compiler.program.tree import Alloc, Program, blocks_in, rebind, touched
from compiler.schedule.parameters import BLOCK, LOOP
from compiler.schedule.plan import Plan, block_place, loop_place, loops_around, refuse, require_serial
from compiler.schedule.primitive import primitive


@primitive(
    "$loop `after` $block",
    "%a, %b = sched.distribute %m after %c",
    "distribute{block=C loop=m}",
    gives={"before": "loop", "after": "loop"},
    consumes=["loop"],
    loop=LOOP,
    block=BLOCK,
)
def distribute(program: Program, loop: int, block: str) -> Plan:
    """Split the body of a loop after the node that contains a block, and run each part in a separate loop.

        loop.for "i" = 4 { S(i)  T(i) }          // distribute after S
      ->
        loop.for "i" = 4 { S(i) }  loop.for "i" = 4 { T(i) }

    The inverse of merge. Requires a serial loop around the block with something after it, and no buffer that lives
    in one iteration and is used by both parts (lift_alloc first). Refused where a dependence would be reversed.
    Elsewhere: Exo fission, MLIR affine loop distribution.
    """
    require_serial(program, [loop])
    node = program.loops[loop]
    _, depth = loops_around(program, block, loop)
    cut = program.places[block].positions[depth + 1] + 1
    first, second = node.body[:cut], node.body[cut:]
    if not blocks_in(*second):
        refuse(loop_place(program, loop), f"nothing stands after {block_place(block)}")
    local = {n.buffer.name for n in first if isinstance(n, Alloc)}
    reads, writes = touched(second)
    crossing = sorted(local & (reads | writes))
    if crossing:
        reason = f"buffer '{crossing[0]}' lives in one iteration and is used by both parts; lift_alloc first"
        refuse(loop_place(program, loop), reason)
    unused = tuple(n for n in second if isinstance(n, Alloc) and n.buffer.name in local)
    number = program.fresh_number()
    values = {loop: lin.variable(number)}
    moved = rebind(second, values, program.ranges_with(replace(node, number=number)))
    nests = [replace(node, body=(*first, *unused)), replace(node, number=number, body=moved)]
    shifts = {b.label: values for b in blocks_in(*second)}
    return Plan(program.replaced(loop, lambda _: nests), shifts=shifts, loops=(loop, number))
