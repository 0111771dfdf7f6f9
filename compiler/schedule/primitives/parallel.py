"""The primitive parallel."""

from __future__ import annotations

from compiler.program.tree import Program
from compiler.schedule.parameters import LOOP
from compiler.schedule.plan import Plan, with_kind
from compiler.schedule.primitive import primitive


@primitive("$loop", "sched.parallel %m", "parallelize{block=C loop=m}", loop=LOOP)
def parallel(program: Program, loop: int) -> Plan:
    """Mark a loop whose iterations run on several threads.

        loop.for "i" = 16 { S(i) }
      ->
        loop.for "i" = 16 parallel { S(i) }

    Each thread has its own copy of buffers allocated in the loop. On the CPU the iterations are cut into contiguous
    shares, 1 per thread; perfectly nested parallel loops are lowered as one. Requires a serial loop. Refused where its
    iterations depend on each other. Elsewhere: TVM parallel, Halide parallel, Exo parallelize_loop, MLIR scf.forall.
    """
    return with_kind(program, loop, "parallel")
