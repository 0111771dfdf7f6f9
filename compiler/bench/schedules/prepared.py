"""Schedules for weights that are constant: they are packed whole, in a nest of its own, which can run beforehand."""

from __future__ import annotations

from collections.abc import Callable

from compiler.bench.schedules import convolution
from compiler.bench.schedules.sizes import depth, lanes, register_tile, width
from compiler.bench.workload import Workload
from compiler.pipeline import lower
from compiler.schedule import Schedule, library
from compiler.schedule.library.matmul import AHEAD
from compiler.schedule.schedule import Handle
from compiler.types.machines import Machine, host


def prepared(workload: Workload, threads: int = 1) -> Schedule | None:
    """The workload's program under its family's script that packs weights whole; None if there is no such script."""
    script = SCRIPTS.get(workload.family)
    if script is None:
        return None
    schedule = Schedule(lower(workload.function()))
    script(schedule, host(), threads)
    return schedule


def conv(s: Schedule, machine: Machine, threads: int) -> None:
    """A convolution with bias and activation: implicit GEMM on packed weights."""
    block, bias, relu = (s.get_block(label) for label in s.program.blocks)
    s.inline(bias)
    tile = convolution.sizes(s, machine)
    done = library.implicit_gemm(s, block, relu, *tile, lanes(machine), beforehand=True)
    if threads > 1:
        s.parallel(done.panels if s.extent(done.panels) >= threads else done.rows)


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
    kc = depth(machine, tile)
    nc = width(machine, min(kc, k))
    done = library.gebp(s, block, tile.rows, kc, nc, tile.rows, tile.columns, tile.lanes, pack="a")
    s.prefetch(done.k, s.program.blocks[s.label(pack)].writes[0].buffer, AHEAD)
    if threads > 1:
        s.parallel(done.ic)
    return done


SCRIPTS: dict[str, Callable[[Schedule, Machine, int], None]] = {"conv": conv, "mlp": mlp}
