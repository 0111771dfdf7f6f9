"""The end of a tiled reduction on the threads of a GPU: its loops bound, its epilogue, and the sum of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from compiler.recipes.steps import around, fused, inside, node_of, split_loops, target_of
from compiler.schedule import Handle, Schedule, Size

VECTORS = (1, 2, 4)
"""The parts that lie side by side in memory, as a vector, where their number is a multiple."""
MOST_LOADS = 128
"""The most loads of a thread of a block that adds up parts as the last to arrive."""


@dataclass(frozen=True)
class ThreadTiles:
    """Tiles of a reduction on a GPU. spatial: for each spatial axis the numbers of virtual threads, threads and
    elements of a thread. reduce: for each reduce axis the elements of a panel. vector: elements fetched at once.

    twice: operands are double-buffered: the next panel is fetched while this one is computed. padded: rows of fetched
    tiles are padded to begin in different banks.
    """

    spatial: Sequence[tuple[Size, Size, Size]]
    reduce: Sequence[Size]
    vector: int = 1
    twice: bool = False
    padded: bool = False


@dataclass(frozen=True)
class Sums:
    """The sum of a reduction's parts: its block, and that of its elementwise epilogue or None."""

    block: Handle
    epilogue: Handle | None


def finish_on_threads(
    s: Schedule,
    block: Handle,
    out: Handle,
    tiles: ThreadTiles,
    levels: tuple[list[Handle], ...],
    sums: Sums | None = None,
) -> None:
    """Bind the loops of a tiled reduction and of its reader `out` to blocks and threads, and unroll the loops over
    elements. levels: the reduction's loops over blocks, virtual threads, threads and elements. sums: of parts, which
    are its last spatial axis, if the block that arrives last adds them up; else None."""
    blocks, virtual, threads, elements = levels
    finished = _finished(s, block, out, tiles, len(blocks))
    thread = fused(s, threads)
    if sums is None:
        s.bind(fused(s, blocks), "block_x")
    else:
        add_at_arrival(s, sums, blocks, tiles)
    s.bind(thread, "thread_x")
    s.bind(finished, "thread_x")
    for loop in virtual:
        s.bind(loop, "vthread")
    for loop in elements:
        s.unroll(loop)


def _finished(s: Schedule, block: Handle, out: Handle, tiles: ThreadTiles, depth: int) -> Handle:
    """Split and bind the loops of the epilogue `out` inside its `depth` block loops like the tile of `block`, so that
    each thread reads the results that it computed; return the loop over threads.

    `block` writes C[i, j], `out` D[0, m, n] reads C[m, n]: the tile of i divides m, that of j divides n.
    """
    tile_loops, bindings = around(s, out)[depth:], node_of(s, out).bindings
    written, target = node_of(s, block).writes[0], target_of(s, block)
    read = next(access for access in node_of(s, out).reads if access.buffer == target)
    by_axis: dict[int, Handle] = {}
    for result, operand in zip(written.index, read.index, strict=True):
        variables = set().union(*(bindings[axis].variables() for axis in operand.variables()))
        loop = next((handle for handle, loop in tile_loops if loop.number in variables), None)
        if loop is not None:  # an axis of one element has no loop
            by_axis |= dict.fromkeys(result.variables(), loop)
    cuts = [s.split(by_axis[axis], [*tiles.spatial[axis][:2], None]) for axis in sorted(by_axis)]
    virtual, threads, elements = ([cut[level] for cut in cuts] for level in range(3))
    s.reorder(*threads, *virtual, *elements)
    for loop in virtual:
        s.bind(loop, "vthread")
    for loop in elements:
        s.unroll(loop)
    return fused(s, threads)


def loads_at_arrival(extents: Sequence[int], tiles: ThreadTiles, parts: int) -> int | None:
    """Return the loads of a thread for `add_at_arrival` of results of `extents` in `parts` parts, by tiles of constant
    sizes; None if it does not pay: a thread has a condition for each of its results, or more than MOST_LOADS loads."""
    plan = _plan(extents, tiles, parts)
    even = all(size % tile == 0 for size, tile, (each, _) in zip(extents, plan.tile, plan.own, strict=True) if each > 1)
    loads = parts * prod(each for each, _ in plan.own) // plan.together
    return loads if even and loads <= MOST_LOADS else None


@dataclass(frozen=True)
class _ArrivalPlan:
    """The sum of parts of a tile. tile: its results along each axis. own: the results of a thread and the threads,
    along each axis. together: the parts that a thread loads as a vector."""

    tile: Sequence[int]
    own: Sequence[tuple[int, int]]
    together: int


def _plan(extents: Sequence[int], tiles: ThreadTiles, parts: int) -> _ArrivalPlan:
    """Spread a tile's results over its threads: neighbouring threads take neighbouring results, along the last axes
    first, as many threads as divide each."""
    constants = [tuple(size for size in sizes if isinstance(size, int)) for sizes in tiles.spatial]
    sizes = [(across, virtual * across * each) for virtual, across, each in constants]
    tile = [min(size, extent) for (_, size), extent in zip(sizes, extents, strict=False)]
    threads, own = prod(across for across, _ in sizes), list[tuple[int, int]]()
    for size in reversed(tile):
        across = max(d for d in range(1, min(size, threads) + 1) if size % d == 0)
        own.insert(0, (size // across, across))
        threads //= across
    return _ArrivalPlan(tile, own, max(n for n in VECTORS if parts % n == 0))


def add_at_arrival(s: Schedule, sums: Sums, blocks: Sequence[Handle], tiles: ThreadTiles) -> None:
    """Move the sum of parts into the loops over tiles of the parts: there the block that arrives last adds them up.

        i.0 { k.0 { C.rf[k.0, i] = .. } }  i { k.0 { C[i] += C.rf[k.0, i] } }  i { D }
      ->
        i.0 block_x { k.0 block_y { C.rf[k.0, i] = .. };  i.1 thread_x { k.0 { C += C.rf } };  i.1 thread_x { D } }

    blocks: the loops over tiles of each spatial axis, then that over parts. tiles: of the parts, of constant sizes.
    Parts lie side by side in memory, up to four of them, which a thread loads as a vector. Requires the nest of the
    parts and that of the sum side by side. Source: split-K with semaphores of cuBLAS and CUTLASS; CUDA's sample
    threadFenceReduction.
    """
    *over_tiles, over_parts = blocks
    loops, (part, *_) = split_loops(s, sums.block)
    plan = _plan([s.extent(loop) for loop in loops], tiles, s.extent(over_parts))
    buffer, together = node_of(s, sums.block).reads[0].buffer, plan.together
    if together > 1:
        s.transform_layout(sums.block, buffer, lambda k, *i: (k // together, *i, k % together))
    out = sums.epilogue if sums.epilogue is not None else s.cache_write(sums.block, "local")
    if sums.epilogue is not None:
        s.set_scope(sums.block, "local")
    cuts = [s.split(loop, [None, *own]) for loop, own in zip(loops, plan.own, strict=True)]
    grid, elements, across = ([cut[level] for cut in cuts] for level in range(3))
    part, lane = s.split(part, [None, together])
    s.reorder(*grid, *across, part, *elements, lane)
    copy = s.cache_read(sums.block, buffer, "local")
    s.compute_at(copy, elements[-1])
    s.reverse_compute_at(out, grid[-1])
    finished = _finished(s, sums.block, out, ThreadTiles([(*own, 1) for own in plan.own], ()), len(grid))
    merged = [s.merge(first, second) for first, second in zip(over_tiles, grid, strict=True)]
    bound = {"block_x": fused(s, merged), "block_y": over_parts}
    for kind, loop in bound.items():
        s.bind(loop, kind)
    for loop in (fused(s, across), finished):
        s.bind(loop, "thread_x")
    for loop in (*elements, lane):
        s.unroll(loop)
    for loop in inside(s, copy, elements[-1]):
        s.vectorize(loop)
