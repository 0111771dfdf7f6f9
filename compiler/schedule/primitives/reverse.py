"""The primitive reverse."""

from __future__ import annotations

from dataclasses import replace

from compiler.affine import linear as lin
from compiler.analysis.legal import Step
from compiler.program.tree import Program, map_blocks, rebound
from compiler.schedule.parameters import LOOP
from compiler.schedule.plan import Plan, require_serial
from compiler.schedule.primitive import primitive


@primitive(
    "$loop",
    "%back = sched.reverse %m",
    "reverse{block=C loop=m}",
    gives={"reversed": "loop"},
    consumes=["loop"],
    loop=LOOP,
)
def reverse(program: Program, loop: int) -> Plan:
    """Run a loop backwards.

        loop.for "i" = 8 { S(i) }
      ->
        loop.for "i" = 8 { S(7 - i) }

    Requires a serial loop. Refused where a dependence would be reversed; the contributions of a reduction may be.
    Elsewhere: isl and Pluto schedules with a negative coefficient.
    """
    require_serial(program, [loop])
    node = program.loops[loop]
    number = program.fresh_number()
    ranges = {**program.ranges, number: (0, node.extent - 1)}
    backwards = lin.constant(node.extent - 1)
    if node.extent > 1:
        backwards = backwards - lin.variable(number)
    body = map_blocks(node.body, lambda block: rebound(block, {loop: backwards}, ranges))
    after = program.replaced(loop, lambda _: [replace(node, number=number, body=body)])
    return Plan(Step(after, links={loop: backwards}), loops=(number,))
