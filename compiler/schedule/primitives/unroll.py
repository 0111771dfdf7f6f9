"""The primitive unroll."""

from __future__ import annotations

from compiler.program.tree import Program
from compiler.schedule.parameters import LOOP
from compiler.schedule.plan import Plan, with_kind
from compiler.schedule.primitive import primitive


@primitive("$loop", "sched.unroll %l", "unroll{block=C loop=l}", loop=LOOP)
def unroll(program: Program, loop: int) -> Plan:
    """Mark a loop to be unrolled by the lowering.

        loop.for "i" = 4 { S(i) }
      ->
        loop.for "i" = 4 unrolled { S(i) }

    Requires a serial loop. Elsewhere: TVM unroll, Halide unroll, Exo unroll_loop, MLIR loop.unroll.
    """
    return with_kind(program, loop, "unrolled")
