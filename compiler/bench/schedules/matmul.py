"""Schedules of matmuls and of chains of them."""

from __future__ import annotations

from compiler.bench.schedules.sizes import Tile, register_tile
from compiler.schedule import Schedule, library
from compiler.schedule.schedule import Handle
from compiler.space.rules.sizes import depth, width
from compiler.types.machines import Machine


def matmul(s: Schedule, machine: Machine, threads: int) -> None:
    """A matmul, packed."""
    (block,) = _blocks(s)
    _gebp(s, block, machine, threads)


def batched(s: Schedule, machine: Machine, threads: int) -> None:
    """A matmul in a loop over the batch, whose iterations run on several threads."""
    (block,) = _blocks(s)
    batch = s.get_loops(block)[0]
    _gebp(s, block, machine, 1)
    if threads > 1:
        s.parallel(batch)


def mm_exp_mm(s: Schedule, machine: Machine, threads: int) -> None:
    """Two matmuls; the exponentials of the first are stored as the second reads them."""
    first, exp, second = _blocks(s)
    m, n = (s.extent(loop) for loop in s.get_loops(second)[:2])
    tile = register_tile(machine, m, n)
    done = _gebp(s, first, machine, threads, tile)
    library.store_packed(s, exp, done, tile.rows, tile.lanes)
    _gebp(s, second, machine, threads, tile, "b")


def mlp(s: Schedule, machine: Machine, threads: int) -> None:
    """Two layers: bias and activation on each finished tile of the products."""
    first, bias, relu, second, last = _blocks(s)
    s.inline(bias)
    for product, after in ((first, relu), (second, last)):
        done = _gebp(s, product, machine, threads)
        library.apply_to_tiles(s, after, done)


def _blocks(s: Schedule) -> list[Handle]:
    return [s.get_block(label) for label in s.program.blocks]


def _gebp(
    s: Schedule, block: Handle, machine: Machine, threads: int, tile: Tile | None = None, pack: str | None = None
) -> library.Gebp:
    """Pack and tile a matmul; on several threads, panels of columns are packed and rows are computed side by side.

    Operands that take less than half of L2 together are not packed, unless `pack` says which are.
    """
    m, n, k = (s.extent(loop) for loop in s.get_loops(block)[-3:])
    if pack is None:
        pack = "ab" if 4 * k * (m + n) > machine.l2_bytes // 2 else ""
    tile = tile or register_tile(machine, m, n)
    kc = depth(machine, tile.rows)
    nc = width(machine, min(kc, k))
    done = library.gebp(s, block, tile.rows, kc, nc, tile.rows, tile.columns, tile.lanes, pack)
    if threads > 1:
        s.parallel(done.ic)
        if done.pack_b is not None:
            around = [s.label(h) for h in s.get_loops(block)]
            pack_loops = [h for h in s.get_loops(done.pack_b) if s.label(h) not in around]
            s.parallel(pack_loops[0])
    return done
