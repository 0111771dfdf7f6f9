"""The primitive reverse."""

from __future__ import annotations

from dataclasses import replace

from compiler.affine import linear as lin
from compiler.program.tree import Program, rebind
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
    new = replace(node, number=program.fresh_number())
    backwards = {loop: lin.constant(node.extent - 1) - new.variable}
    body = rebind(node.body, backwards, program.ranges_with(new))
    return Plan(program.replaced(loop, lambda _: [replace(new, body=body)]), links=backwards, loops=(new.number,))
