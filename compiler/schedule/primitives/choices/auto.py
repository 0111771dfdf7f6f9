"""The primitive auto."""

from __future__ import annotations

from compiler.program.tree import Program
from compiler.schedule.parameters import BLOCK
from compiler.schedule.plan import Plan, block_place, refuse
from compiler.schedule.primitive import primitive


@primitive("$block", "sched.auto %c", block=BLOCK)
def auto(program: Program, block: str) -> Plan:
    """Derive the choices for a block here, by the rules for the machine.

    Requires the search, which takes a script as a template. Elsewhere: TVM MetaSchedule's space generators.
    """
    reason = "it stands for choices that a search derives; tune the script as a template"
    refuse(block_place(block), reason)
