"""The primitive get_loops."""

from __future__ import annotations

from compiler.program.tree import Program
from compiler.schedule.parameters import BLOCK
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import primitive


@primitive(
    "$block",
    "%m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop",
    gives={"loops": "loop*"},
    block=BLOCK,
)
def get_loops(program: Program, block: str) -> Plan:
    """The loops around a block, outermost first.

    Requires of a script that it has a handle for each. Elsewhere: TVM get_loops, MLIR transform.loop.
    """
    return Plan(program, loops=tuple(loop.number for loop in program.enclosing(block)))
