"""The primitive get_block."""

from __future__ import annotations

from compiler.program.tree import Program
from compiler.schedule.parameters import FUNCTION, TEXT
from compiler.schedule.plan import Plan, block_place, refuse
from compiler.schedule.primitive import primitive


@primitive("$function $label", '%c = sched.get_block %f "C"', gives={"block": "block"}, function=FUNCTION, label=TEXT)
def get_block(program: Program, label: str) -> Plan:
    """Find a block by its label.

    Requires that there is one. Elsewhere: TVM get_block, MLIR transform.structured.match.
    """
    if label not in program.blocks:
        refuse(block_place(label), f"there is none (there are {', '.join(program.blocks)})")
    return Plan(program, blocks=(label,))
