"""The primitive get_consumers."""

from __future__ import annotations

from compiler.program.tree import Program
from compiler.schedule.parameters import BLOCK
from compiler.schedule.plan import Plan, neighbours
from compiler.schedule.primitive import primitive


@primitive("$block", "%p = sched.get_consumers %c : !sched.block", gives={"consumers": "block*"}, block=BLOCK)
def get_consumers(program: Program, block: str) -> Plan:
    """The blocks that read a block's results, in the order of the program.

    Requires of a script that it has a handle for each. Elsewhere: TVM get_consumers, MLIR
    transform.get_consumers_of_result.
    """
    return Plan(program, blocks=neighbours(program, block, producers=False))
