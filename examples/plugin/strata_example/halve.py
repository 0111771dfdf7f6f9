"""The schedule primitive halve."""

from __future__ import annotations

from strata.program.tree import Program
from strata.schedule.parameters import LOOP
from strata.schedule.plan import Plan, loop_place, refuse
from strata.schedule.primitive import primitive
from strata.schedule.primitives.split import split


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
    return split(program, loop, (2, extent // 2))
