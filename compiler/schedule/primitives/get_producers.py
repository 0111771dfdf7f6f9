"""The primitive get_producers."""

from __future__ import annotations

from compiler.program.tree import Program
from compiler.schedule.parameters import BLOCK
from compiler.schedule.plan import Plan, neighbours
from compiler.schedule.primitive import primitive


@primitive("$block", "%p = sched.get_producers %c : !sched.block", gives={"producers": "block*"}, block=BLOCK)
def get_producers(program: Program, block: str) -> Plan:
    """The blocks whose results a block reads, in the order of the program.

    Requires of a script that it has a handle for each. Elsewhere: TVM get_producers, MLIR
    transform.get_producer_of_operand.
    """
    return Plan(program, blocks=neighbours(program, block, producers=True))
