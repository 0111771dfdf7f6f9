"""The primitive bind."""

from __future__ import annotations

from compiler.dialects.loop import BOUND
from compiler.program.tree import Program
from compiler.schedule.parameters import LOOP, word
from compiler.schedule.plan import Plan, with_kind, without_kind_around
from compiler.schedule.primitive import primitive

SPELLINGS = {f"{what}Idx.{axis}": f"{what}_{axis}" for what in ("block", "thread") for axis in "xyz"}
"""Map the indices as kernels and TVM write them to those of BOUND."""

TOGETHER = "; what threads do together stands outside their loops: reorder and compute_at come before bind"


@primitive(
    "$loop `to` $thread",
    'sched.bind %m to "block_x"',
    "bind{block=C loop=m thread=block_x}",
    loop=LOOP,
    thread=word("thread index", BOUND, SPELLINGS),
)
def bind(program: Program, loop: int, thread: str) -> Plan:
    """Bind a loop to a hardware index: block_x to block_z, thread_x to thread_z, or vthread; "blockIdx.x" is block_x.

        loop.for "i" = 16 { S(i) }               // bind to thread_x
      ->
        loop.for "i" = 16 thread_x { S(i) }

    Requires a serial loop with no loop of the same binding around or inside it. Refused where its iterations depend
    on each other. Elsewhere: TVM bind, Halide gpu_blocks and gpu_threads, MLIR map_forall_to_blocks.
    """
    if thread != "vthread":
        without_kind_around(
            program, loop, thread, f"bound to {thread}", TOGETHER if thread.startswith("thread") else ""
        )
    return with_kind(program, loop, thread)
