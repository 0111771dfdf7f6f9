"""Composites for GPUs: cooperative fetches, a tiled matmul."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.errors import ScheduleError
from compiler.schedule.library.loops import matmul_nest, operands, panels
from compiler.schedule.schedule import Handle, Schedule


@dataclass(frozen=True)
class GpuTiles:
    """The loops of a matmul on a GPU: over blocks, over threads, over the panels of k, inside one thread; and the
    blocks that fetch the panels."""

    blocks: list[Handle]
    threads: list[Handle]
    panel: Handle
    inner: list[Handle]
    fetches: list[Handle]


def cooperative_fetch(
    s: Schedule, block: Handle, buffer: str, at_loop: Handle, threads: int, vector: int = 1, scope: str = "shared"
) -> Handle:
    """Let the threads of a GPU block copy what a loop's iteration reads of a buffer, a vector each at a time.

        k.0 { C reads A }
      ->
        k.0 { alloc A.shared shared
              i.0 { i.1 = threads thread_x { i.2 = vector vectorized { A.shared[...] = A[...] } } }
              C reads A.shared }

    Gives the block that copies; a single element is left to be copied as it is. Requires that `block` reads the
    buffer inside `at_loop`, that no loop bound to thread_x is around that, and that nothing there writes the buffer.
    Source: TVM's cooperative fetching (MetaSchedule's multi-level tiling with reuse), CUTLASS's threadblock iterators.
    """
    fetch = s.cache_read(block, buffer, scope)
    s.compute_at(fetch, at_loop)
    loops = s.get_loops(fetch)
    own = loops[[s.label(loop) for loop in loops].index(s.label(at_loop)) + 1 :]
    if not own:
        return fetch
    whole = s.fuse(*own) if len(own) > 1 else own[0]
    _, thread, lanes = s.split(whole, [None, threads, vector])
    s.bind(thread, "thread_x")
    if vector > 1:
        s.vectorize(lanes)
    return fetch


def tile_and_bind(
    s: Schedule, block: Handle, block_tile: tuple[int, int], thread_tile: tuple[int, int], panel: int, vector: int = 1
) -> GpuTiles:
    """Schedule a matmul C[m, n] += A[m, k] * B[k, n] for a GPU: a tile of C a block, a smaller one a thread in
    registers, panels of A and B fetched to shared memory by all threads of a block.

        m { n { k { C } } }
      ->
        m.0 block_y { n.0 block_x { alloc C.local local
          k.0 { fetch A.shared; fetch B.shared
            m.1_n.1 thread_x { k.1 { m.2 unrolled { n.2 unrolled { C.local += A.shared * B.shared } } } } }
          ax0_ax1 thread_x { ... C = C.local } } }

    `block_tile` and `thread_tile` are rows and columns, `panel` the length of k that is fetched at once, `vector` how
    many elements a thread fetches at once. A thread stores what it has computed. Requires loops m, n, k around the
    block in that order, and block tiles of several rows and columns that are multiples of the thread tiles.
    Source: Volkov and Demmel 2008; CUTLASS.
    """
    m, n, k = matmul_nest(s, block, "tile_and_bind")
    if min(*block_tile, s.extent(m), s.extent(n)) < 2:
        raise ScheduleError("a block's tile has one row or one column", "tile_and_bind", f"block '{s.label(block)}'")
    m0, m1, m2 = s.split(m, [None, *panels(s.extent(m), block_tile[0], thread_tile[0])])
    n0, n1, n2 = s.split(n, [None, *panels(s.extent(n), block_tile[1], thread_tile[1])])
    k0, k1 = s.split(k, [None, min(panel, s.extent(k))])
    s.reorder(m0, n0, k0, m1, n1, k1, m2, n2)
    out = s.cache_write(block, "local")
    s.reverse_compute_at(out, n0)
    threads = s.extent(m1) * s.extent(n1)
    fetches = [cooperative_fetch(s, block, name, k0, threads, vector) for name in operands(s, block)]
    store = _thread_tiles(s, s.get_loops(out)[-2:], thread_tile)
    thread = s.fuse(m1, n1)
    for loop, binding in ((m0, "block_y"), (n0, "block_x"), (thread, "thread_x"), (store, "thread_x")):
        s.bind(loop, binding)
    s.unroll(m2)
    s.unroll(n2)
    return GpuTiles([m0, n0], [thread, store], k0, [k1, m2, n2], fetches)


def _thread_tiles(s: Schedule, loops: Sequence[Handle], tile: tuple[int, int]) -> Handle:
    """The loop over the thread tiles of two loops."""
    (rows, row), (columns, column) = (s.split(loop, [None, size]) for loop, size in zip(loops, tile, strict=True))
    s.reorder(rows, columns, row, column)
    return s.fuse(rows, columns)
