"""Schedules for weights that are constant: they are packed whole, in a nest of its own, which can run beforehand."""

from __future__ import annotations

from functools import partial

from compiler.bench.schedules import convolution
from compiler.bench.schedules.sizes import Script, register_tile
from compiler.schedule import Schedule, library
from compiler.schedule.library.matmul import AHEAD
from compiler.schedule.schedule import Handle
from compiler.space.rules.sizes import depth, width
from compiler.types.machines import Machine


def mlp(s: Schedule, machine: Machine, threads: int) -> None:
    """Two layers on packed weights: bias and activation on each finished tile of the products."""
    first, bias, relu, second, last = (s.get_block(label) for label in s.program.blocks)
    s.inline(bias)
    for product, after in ((first, relu), (second, last)):
        library.apply_to_tiles(s, after, _gebp(s, product, machine, threads))


def _gebp(s: Schedule, block: Handle, machine: Machine, threads: int) -> library.Gebp:
    """X[m, k] * V[n, k], V in panels of the register tile's columns."""
    m, n, k = (s.extent(loop) for loop in s.get_loops(block))
    tile = register_tile(machine, m, n)
    _, weights = library.operands(s, block)
    pack = s.pack(block, weights, [tile.columns, 1])
    library.copy_in_vectors(s, pack, tile.lanes)
    kc = depth(machine, tile.rows)
    nc = width(machine, min(kc, k))
    done = library.gebp(s, block, tile.rows, kc, nc, tile.rows, tile.columns, tile.lanes, pack="a")
    s.prefetch(done.k, s.program.blocks[s.label(pack)].writes[0].buffer, AHEAD)
    if threads > 1:
        s.parallel(done.ic)
    return done


SCRIPTS: dict[str, Script] = {"conv": partial(convolution.conv, beforehand=True), "mlp": mlp}
"""By family."""
