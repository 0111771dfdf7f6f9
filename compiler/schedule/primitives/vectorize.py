"""The primitive vectorize."""

from __future__ import annotations

from compiler.program.tree import Program
from compiler.schedule.parameters import LOOP
from compiler.schedule.plan import Plan, with_kind, without_kind_around
from compiler.schedule.primitive import primitive


@primitive("$loop", "sched.vectorize %l", "vectorize{block=C loop=l}", loop=LOOP)
def vectorize(program: Program, loop: int) -> Plan:
    """Mark a loop whose iterations become the lanes of vectors.

        loop.for "i" = 16 { S(i) }
      ->
        loop.for "i" = 16 vectorized { S(i) }

    A buffer that is allocated inside the loop is private to each lane.

    Requires a serial loop with no vectorized loop around or inside it. Refused where its iterations depend on each
    other, reductions included: rfactor first. Elsewhere: TVM vectorize, Halide vectorize, MLIR vectorize.
    """
    without_kind_around(program, loop, "vectorized", "vectorized")
    return with_kind(program, loop, "vectorized")
