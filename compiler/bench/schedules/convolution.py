"""Schedules of convolutions."""

from __future__ import annotations

from compiler.bench.schedules.sizes import lanes
from compiler.schedule import Schedule, library
from compiler.types.machines import Machine


def conv(s: Schedule, machine: Machine, threads: int, beforehand: bool = False) -> None:
    """A convolution with bias and activation: implicit GEMM, which packs weights inside the time or `beforehand`."""
    block, bias, relu = (s.get_block(label) for label in s.program.blocks)
    s.inline(bias)
    done = library.implicit_gemm(s, block, relu, *_sizes(s, machine), lanes(machine), beforehand=beforehand)
    if threads > 1:
        s.parallel(done.panels if s.extent(done.panels) >= threads else done.rows)


def _sizes(s: Schedule, machine: Machine) -> tuple[int, int, int]:
    """Pixels and filters of a register tile, and channels whose weights take two fifths of L1."""
    label = next(iter(s.program.blocks))
    _, o, _, w, c, r, q = (s.extent(loop) for loop in s.get_loops(s.get_block(label)))
    width = lanes(machine)
    filters = min(2, -(-o // width)) * width
    most = (machine.registers - 3) // 2
    pixels = min(range(min(5, w), min(most, w) + 1), key=lambda p: (-(-w // p) * p, -p))
    weights = 4 * r * q * filters
    channels = 2 * machine.l1_bytes // 5 // weights
    if channels > width:
        channels -= channels % width  # so that taps are whole vectors where they are packed
    return pixels, filters, max(1, min(c, channels))
