"""The primitive fuse."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.legal import Step
from compiler.program.tree import Loop, Program, blocks_in, map_blocks, rebound
from compiler.schedule.parameters import LOOPS
from compiler.schedule.plan import Plan, labels_around, new_label, require_perfect, require_serial
from compiler.schedule.primitive import primitive


@primitive(
    "$loops",
    "%ml = sched.fuse %m, %l",
    "fuse-loops{block=C loops=m,l}",
    gives={"fused": "loop"},
    consumes=["loops"],
    loops=LOOPS,
)
def fuse(program: Program, loops: Sequence[int]) -> Plan:
    """Fuse perfectly nested loops into one, whose variable runs over their product.

        loop.for "i" = 4 { loop.for "j" = 6 { S(i, j) } }
      ->
        loop.for "i_j" = 24 { S(i_j floordiv 6, i_j mod 6) }

    Requires serial loops, each the only content of the one before. Elsewhere: TVM fuse, Halide fuse, Exo mult_loops,
    MLIR loop.coalesce.
    """
    require_serial(program, loops)
    nodes = [program.loops[n] for n in loops]
    require_perfect(nodes)
    number = program.fresh_number()
    extent = prod(node.extent for node in nodes)
    ranges = dict(program.ranges) | {number: (0, extent - 1)}
    variable = lin.variable(number) if extent > 1 else lin.constant(0)
    values: dict[int, Linear] = {}
    step = extent
    for node in nodes:
        above = step
        step //= node.extent
        values[node.number] = lin.floordiv(lin.mod(variable, above, ranges), step, ranges)
    taken = labels_around(program, loops[-1]) | {outer.label for outer in program.enclosing(loops[0])}
    taken -= {node.label for node in nodes}
    body = map_blocks(nodes[-1].body, lambda b: rebound(b, values, ranges))
    label = new_label("_".join(node.label for node in nodes), taken)
    fused = Loop(number, label, extent, body)
    after = program.replaced(loops[0], lambda _: [fused])
    moves_init = any(block.has_init for block in blocks_in(fused))  # it stands before the outermost reduce loop
    return Plan(Step(after, links=values, keeps_order=not moves_init), loops=(number,))
