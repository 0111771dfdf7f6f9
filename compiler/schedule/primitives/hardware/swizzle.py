"""The primitive swizzle."""

from __future__ import annotations

from compiler.affine import linear as lin
from compiler.program.tree import Program
from compiler.schedule.layouts import relaid, temporary
from compiler.schedule.parameters import BLOCK, INT
from compiler.schedule.plan import Plan, no_table, refuse
from compiler.schedule.primitive import primitive


@primitive(
    "$block `width` $width",
    "sched.swizzle %c width 8",
    "swizzle{block=C width=8}",
    block=BLOCK,
    width=INT.such_that(lambda n: n > 0 and n & (n - 1) == 0, "the width {} is not a power of two"),
)
def swizzle(program: Program, block: str, width: int) -> Plan:
    """Rotate the columns of a block's buffer by the row, within groups of `width`, against bank conflicts.

        T[r, c]                                  // width 8
      ->
        T[r, (c floordiv 8) * 8 + (c + r) mod 8]

    Requires a temporary of at least two dimensions whose last is a multiple of the width. Elsewhere: CUTLASS
    Swizzle (an exclusive or), Triton's swizzled shared layouts.
    """
    buffer = temporary(program, block)
    no_table(f"buffer '{buffer.name}'", program.blocks.values(), buffer.name)
    rank = len(buffer.shape)
    if rank < 2 or buffer.shape[-1] % width:
        refuse(f"buffer '{buffer.name}'", f"its last dimension is no multiple of the width {width}")
    ranges = lin.box(buffer.shape)
    row, column = lin.variable(rank - 2), lin.variable(rank - 1)
    turned = lin.floordiv(column, width, ranges).scaled(width) + lin.mod(column + row, width, ranges)
    forms = [*lin.variables(rank - 1), turned]
    return Plan(relaid(program, buffer, buffer, forms), keeps_order=True)
