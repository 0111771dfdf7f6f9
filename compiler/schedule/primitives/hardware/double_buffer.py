"""The primitive double_buffer."""

from __future__ import annotations

from dataclasses import replace

from compiler.affine import linear as lin
from compiler.dialects.access import AxisAttr
from compiler.program.names import fresh
from compiler.program.tree import Block, Program
from compiler.schedule.parameters import BLOCK, INT
from compiler.schedule.plan import Plan, block_place, no_table, only_target, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.region import WINDOW, insert_axis, moved_alloc, touches, with_accesses, with_buffer


@primitive(
    "$block (`copies` $copies^)?",
    "sched.double_buffer %c copies 3",
    "double-buffer{block=B.local copies=3}",
    block=BLOCK,
    copies=INT.such_that(lambda n: n > 1, "{} copies of a buffer are not at least 2").or_else(2),
)
def double_buffer(program: Program, block: str, copies: int = 2) -> Plan:
    """Give a block's buffer two copies, or more, so that one is filled while the others are read.

        loop.for "i" { alloc T[8];  T = load(i);  use(T) }
      ->
        alloc T[2, 8];  loop.for "i" { T[i mod 2] = load(i);  use(T[i mod 2]) }

    Requires a temporary that lives in one iteration of a loop. Elsewhere: TVM double_buffer annotation, MLIR
    multi-buffering, Triton num_stages.
    """
    buffer = only_target(program.blocks[block])
    if buffer not in program.allocs:
        refuse(block_place(block), f"'{buffer}' is an argument, not a temporary")
    around = program.enclosing((buffer,))
    if not around:
        refuse(block_place(block), f"'{buffer}' lives outside all loops, not in one iteration")
    loop = around[-1]
    no_table(block_place(block), program.blocks.values(), buffer)
    copy = lin.mod(lin.variable(loop.number), copies, program.ranges)

    def change(node: Block) -> Block:
        if not touches(node, buffer):
            return node
        position = node.spatial
        label = fresh(f"{WINDOW}0", [axis.label for axis in node.axes])
        new = insert_axis(node, position, AxisAttr(label, copies), copy)
        return with_accesses(new, buffer, lambda a: replace(a, index=(lin.variable(position), *a.index)))

    old = program.buffers[buffer]
    after = with_buffer(program.map_blocks(change), buffer, replace(old, shape=(copies, *old.shape)))
    after = moved_alloc(after, buffer, around[-2].number if len(around) > 1 else None)
    return Plan(after, keeps_order=True)
