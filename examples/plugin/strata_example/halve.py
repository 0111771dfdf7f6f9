"""The schedule primitive halve."""

from __future__ import annotations

from strata.program import Program
from strata.schedule import LOOP, PRIMITIVES, Plan, loop_place, primitive, refuse


@primitive(
    "$loop",
    "%h:2 = sched.halve %m",
    "halve{block=C loop=m}",
    gives={"outer": "loop", "inner": "loop"},
    consumes=["loop"],
    loop=LOOP,
)
def halve(program: Program, loop: int) -> Plan:
    """Split a loop of even extent into two halves.

    loop.for "i" = 8 { S(i) }  ->  loop.for "i.0" = 2 { loop.for "i.1" = 4 { S(4*i.0 + i.1) } }
    """
    extent = program.loops[loop].extent
    if extent % 2:
        refuse(loop_place(program, loop), f"its extent {extent} is odd")
    return PRIMITIVES["split"].plan(program, loop, (2, extent // 2))
