"""Schedules of row-wise workloads."""

from __future__ import annotations

from math import prod

from compiler.bench.schedules.sizes import lanes
from compiler.schedule import Schedule, library
from compiler.types.machines import Machine


def by_rows(s: Schedule, machine: Machine, threads: int) -> None:
    """Everything that a row needs just before it is written, past the caches where it would not stay in them."""
    block = s.get_block(list(s.program.blocks)[-1])
    row = library.by_rows(s, block, lanes(machine), streamed=_is_large(s, machine))
    if threads > 1:
        s.parallel(row)


def swish(s: Schedule, machine: Machine, threads: int) -> None:
    """One elementwise function."""
    (label,) = s.program.blocks
    block = s.get_block(label)
    row = s.get_loops(block)[-2]
    library.elementwise(s, block, lanes(machine))
    if _is_large(s, machine):
        s.annotate(row, "nontemporal", s.program.blocks[label].writes[0].buffer)
    if threads > 1:
        s.parallel(row)


def _is_large(s: Schedule, machine: Machine) -> bool:
    """Whether the result is larger than L2."""
    return 4 * prod(s.program.arguments[-1].shape) > machine.l2_bytes
