"""Schedules of the gradients of convolutions."""

from __future__ import annotations

from compiler.bench.schedules.sizes import lanes
from compiler.schedule import Schedule, library
from compiler.types.machines import Machine


def conv_grad_weight(s: Schedule, machine: Machine, threads: int) -> None:
    """The gradient of the weights, in one reduction or in steps."""
    width = lanes(machine)
    tiles = library.GradientTiles(nr=2 * width, lanes=width, held=machine.l2_bytes // 4)
    library.conv_grad_weight(s, s.get_block(list(s.program.blocks)[-1]), tiles)
