"""Schedules of attention."""

from __future__ import annotations

from compiler.bench.schedules.sizes import lanes
from compiler.schedule import Schedule, library
from compiler.types.machines import Machine


def attention(s: Schedule, machine: Machine, threads: int) -> None:
    """Attention by rows of queries; heads run on several threads."""
    heads = library.attention(s, s.get_block(list(s.program.blocks)[-1]), _tiles(s, machine)).heads
    if threads > 1:
        s.parallel(heads[0])


def _tiles(s: Schedule, machine: Machine) -> library.AttentionTiles | None:
    """The composite's own choice with 32 registers; half as many vectors with 16."""
    width = lanes(machine)
    return None if machine.registers > 16 else library.AttentionTiles(6, 2 * width, width)
