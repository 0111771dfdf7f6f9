"""The primitive add_unit_loop."""

from __future__ import annotations

from compiler.program.tree import Loop, Program
from compiler.schedule.parameters import LOOP
from compiler.schedule.plan import Plan, labels_around, new_label, require_serial
from compiler.schedule.primitive import primitive


@primitive(
    "$loop", "%unit = sched.add_unit_loop %k", "add-unit-loop{block=C loop=k}", gives={"unit": "loop"}, loop=LOOP
)
def add_unit_loop(program: Program, loop: int) -> Plan:
    """Put a loop of one iteration around a loop.

        loop.for "k" = 8 { T += A[k] }
      ->
        loop.for "unit" = 1 { loop.for "k" = 8 { T += A[k] } }

    A nest without loops over results gets one that can be a block of threads, and in which other blocks and their
    buffers can be placed. Requires a serial loop. Elsewhere: TVM add_unit_loop.
    """
    require_serial(program, [loop])
    number = program.fresh_number()
    label = new_label("unit", labels_around(program, loop) | {program.loops[loop].label})
    after = program.replaced(loop, lambda node: [Loop(number, label, 1, (node,))])
    return Plan(after, keeps_order=True, loops=(number,))
