"""The primitive storage_align."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod

from compiler.program.tree import Program
from compiler.schedule.layouts import temporary
from compiler.schedule.parameters import BLOCK, INT
from compiler.schedule.plan import Plan, no_table, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.region import with_buffer


@primitive(
    "$block `dim` $dim `factor` $factor `offset` $offset",
    "sched.storage_align %c dim 0 factor 32 offset 8",
    "storage-align{block=C dim=0 factor=32}",
    block=BLOCK,
    dim=INT,
    factor=INT.such_that(lambda n: n > 0, "the factor {} is not positive"),
    offset=INT,
)
def storage_align(program: Program, block: str, dim: int, factor: int, offset: int = 0) -> Plan:
    """Pad a block's buffer so that the stride of a dimension is `offset` beyond a multiple of `factor`, in elements.

        alloc T[8, 32]                           // dim 0 factor 32 offset 8: stride 40
      ->
        alloc T[8, 40]

    Requires a temporary and a dimension whose stride can be had by making the next one longer. Elsewhere: TVM
    storage_align.
    """
    buffer = temporary(program, block)
    no_table(f"buffer '{buffer.name}'", program.blocks.values(), buffer.name)
    if not 0 <= dim < len(buffer.shape) - 1:
        refuse(f"buffer '{buffer.name}'", f"dimension {dim} has no dimension inside it that could grow")
    inner, length = prod(buffer.shape[dim + 2 :]), buffer.shape[dim + 1]
    common = gcd(inner, factor)
    if offset % common:
        refuse(f"buffer '{buffer.name}'", f"no length of dimension {dim + 1} gives that stride")
    period = factor // common  # length * inner = offset modulo factor holds for one length in each period
    residue = offset // common * pow(inner // common, -1, period)
    shape = (*buffer.shape[: dim + 1], length + (residue - length) % period, *buffer.shape[dim + 2 :])
    return Plan(with_buffer(program, buffer.name, replace(buffer, shape=shape)), keeps_order=True)
