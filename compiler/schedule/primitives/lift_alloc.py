"""The primitive lift_alloc."""

from __future__ import annotations

from dataclasses import replace

from compiler.program.tree import Program
from compiler.schedule.layouts import no_temporary
from compiler.schedule.parameters import ANY_LOOP, TEXT
from compiler.schedule.plan import Plan, loop_place, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.region import moved_alloc


@primitive(
    "$buffer (`to` $loop^)?",
    'sched.lift_alloc "T" to %m',
    "lift-alloc{buffer=C to=C.m}",
    buffer=TEXT,
    loop=replace(ANY_LOOP, optional=True, option="to"),
)
def lift_alloc(program: Program, buffer: str, loop: int | None = None) -> Plan:
    """Move the beginning of a buffer's lifetime out: to a loop that encloses it, or to the function.

        loop.for "i" { loop.for "j" { alloc T;  S } }                  // lift T to i
      ->
        loop.for "i" { alloc T;  loop.for "j" { S } }

    Requires a temporary that lives inside the loop. Refused where iterations of a concurrent loop would then share
    it. Elsewhere: Exo lift_alloc, Halide store_at, MLIR buffer-hoisting.
    """
    if buffer not in program.allocs:
        refuse(f"buffer '{buffer}'", no_temporary(program, buffer))
    around = [n.number for n in program.enclosing((buffer,))]
    if loop is not None and loop not in around:
        refuse(f"buffer '{buffer}'", f"it does not live inside {loop_place(program, loop)}")
    if (around[-1] if around else None) == loop:
        refuse(f"buffer '{buffer}'", "it lives there already")
    return Plan(moved_alloc(program, buffer, loop), keeps_order=True)
