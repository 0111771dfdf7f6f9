"""The primitive fuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.program.tree import Loop, Program, blocks_in, rebind
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
    labels = [node.label for node in nodes]
    label = new_label("_".join(labels), labels_around(program, loops[-1]).difference(labels))
    fused = Loop(program.fresh_number(), label, prod(node.extent for node in nodes), ())
    ranges = program.ranges_with(fused)
    values: dict[int, Linear] = {}
    step = fused.extent
    for node in nodes:
        above, step = step, step // node.extent
        values[node.number] = lin.floordiv(lin.mod(fused.variable, above, ranges), step, ranges)
    fused = replace(fused, body=rebind(nodes[-1].body, values, ranges))
    after = program.replaced(loops[0], lambda _: [fused])
    moves_init = any(block.has_init for block in blocks_in(fused))  # it stands before the outermost reduce loop
    return Plan(after, links=values, keeps_order=not moves_init, loops=(fused.number,))
