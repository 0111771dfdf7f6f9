"""Composites for GPUs: cooperative fetches, tiled reductions, results spread over threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.analysis.barriers import ASYNC
from compiler.schedule.library.loops import around, at_most, fused, inside, node_of, operands, refusal, target_of
from compiler.schedule.schedule import Handle, Schedule, Size


def cooperative_fetch(
    s: Schedule,
    block: Handle,
    buffer: str,
    at_loop: Handle,
    threads: Size | tuple[Size, Size],
    vector: int = 1,
) -> Handle:
    """Let the threads of a GPU block copy the elements of a buffer that a loop's iteration reads, a vector each at a
    time.

        k.0 { C reads A }
      ->
        k.0 { alloc A.shared shared
              i.0 { i.1 = threads thread_x { i.2 = vector vectorized { A.shared[...] = A[...] } } }
              C reads A.shared }

    Gives the block that copies; a single element is left to be copied as it is. Two numbers of threads are those along
    y and x. Requires that `block` reads the buffer inside `at_loop`, that no loop bound to threads is around that, and
    that nothing there writes the buffer.
    Source: TVM's cooperative fetching (MetaSchedule's multi-level tiling with reuse), CUTLASS's threadblock iterators.
    """
    fetch = s.cache_read(block, buffer, "shared")
    s.compute_at(fetch, at_loop)
    copy_loops = inside(s, fetch, at_loop)
    if copy_loops:
        spread_on_threads(s, fused(s, copy_loops), threads, vector)
    return fetch


def spread_on_threads(s: Schedule, results_loop: Handle, threads: Size | tuple[Size, Size], vector: int) -> None:
    """Run a loop by the threads of a block, along x or along y and x, side by side, a vector each at a time."""
    sizes = threads if isinstance(threads, tuple) else (threads,)
    _, *bound = s.split(results_loop, [None, *sizes, *([vector] if vector > 1 else [])])
    if vector > 1:
        s.vectorize(bound.pop())
    for loop, kind in zip(reversed(bound), ("thread_x", "thread_y"), strict=False):
        s.bind(loop, kind)


@dataclass(frozen=True)
class ThreadTiles:
    """Tiles of a reduction on a GPU: for each spatial axis virtual threads, threads and elements of a thread; for each
    reduce axis how much is fetched at once; and how many elements a thread fetches at once of each operand.

    twice: operands have two buffers, and the next are fetched while these are used.
    padded: the rows of fetched tiles are longer than they need be, so that they begin in different banks.
    """

    spatial: Sequence[tuple[Size, Size, Size]]
    reduce: Sequence[Size]
    vector: int = 1
    twice: bool = False
    padded: bool = False


def tile_on_threads(s: Schedule, block: Handle, epilogue: Handle | None, tiles: ThreadTiles) -> None:
    """Schedule any reduction for a GPU by multi-level tiles (SSSRRSRS): blocks, threads, virtual threads and elements
    of each spatial axis; operands fetched to shared memory by all threads of a block; the epilogue on their tile.

        s { r { C } }  s { D }
      ->
        s.0 block_x { alloc C local
          r.0 { fetch A.shared; fetch B.shared
            s.2 thread_x { r.1 { s.1 vthread { s.3 unrolled { C += A.shared * B.shared } } } } }
          s.2 thread_x { s.1 vthread { s.3 unrolled { D = f(C) } } } }

    A virtual thread's elements lie as far apart as all threads' together, so that neighbours read neighbouring words.
    With `twice` panels are fetched a round ahead, by asynchronous copies that the next barrier waits for. Without an
    epilogue the results are copied from registers. Padded reads are fetched with their padding, an element at a time.
    Requires a reduction whose spatial loops come first, a tile for each axis, and an epilogue that reads it alone, at
    its own indices. Source: multi-level tiling on GPUs of Ansor (Zheng et al., OSDI 2020), CUTLASS.
    """
    loops = s.get_loops(block)
    count = len(tiles.spatial)
    if len(loops) != count + len(tiles.reduce):
        reason = f"it has {len(loops)} loops, and there are tiles for {count + len(tiles.reduce)}"
        raise refusal(s, block, "tile_on_threads", reason)
    pads = _padded(s, block)
    if epilogue is None:
        out = s.cache_write(block, "local")
    else:
        out = epilogue
        s.set_scope(block, "local")
    cuts = [s.split(loop, [None, *sizes]) for loop, sizes in zip(loops, tiles.spatial, strict=False)]
    panels_ = [s.split(loop, [None, size]) for loop, size in zip(loops[count:], tiles.reduce, strict=True)]
    blocks, virtual, threads, elements = ([cut[level] for cut in cuts] for level in range(4))
    outer, inner = ([pair[level] for pair in panels_] for level in range(2))
    s.reorder(*blocks, *outer, *threads, *inner, *virtual, *elements)
    if tiles.twice:
        outer = [fused(s, outer)]
    s.reverse_compute_at(out, blocks[-1])
    together = s.product(*(across for _, across, _ in tiles.spatial))
    padded = {target_of(s, pad) for pad in pads}
    fetches = [
        cooperative_fetch(s, block, name, outer[-1], together, 1 if name in padded else tiles.vector)
        for name in operands(s, block)
    ]
    for pad in pads:
        s.inline(pad)
    for fetch in fetches if tiles.padded else ():
        pad_rows(s, fetch, tiles.vector)
    if tiles.twice:
        overlapped(s, outer[-1], fetches)
    finished = _finished(s, out, tiles, len(blocks))
    thread, grid = fused(s, threads), fused(s, blocks)
    s.bind(grid, "block_x")
    s.bind(thread, "thread_x")
    s.bind(finished, "thread_x")
    for loop in virtual:
        s.bind(loop, "vthread")
    for loop in elements:
        s.unroll(loop)


def pad_rows(s: Schedule, fetch: Handle, vector: int) -> None:
    """Let the rows of a fetched tile begin in different banks of shared memory, and vectors where they may."""
    buffer = s.program.buffers[target_of(s, fetch)]
    if len(buffer.shape) > 1 and buffer.shape[-1] > 1:
        s.storage_align(fetch, len(buffer.shape) - 2, 2 * vector, vector)


def overlapped(s: Schedule, panel: Handle, fetches: Sequence[Handle]) -> None:
    """Fetch the operands of the next round during this one; the loop over rounds has one more.

    r { fetch A.shared;  C }  ->  r { fetch A.shared[r mod 2] of round r;  C of round r - 1 }
    """
    for fetch in fetches:
        innermost = s.get_loops(fetch)[-1]
        if s.label(innermost) != s.label(panel):
            s.annotate(innermost, ASYNC, 1)
        s.double_buffer(fetch)
    s.software_pipeline(panel, [*(0 for _ in fetches), 1])


def _padded(s: Schedule, block: Handle) -> list[Handle]:
    """Copies with a border of the operands that a block reads under conditions."""
    return [s.pad(block, access.buffer) for access in node_of(s, block).reads if access.where]


def _finished(s: Schedule, out: Handle, tiles: ThreadTiles, depth: int) -> Handle:
    """The loop over threads of the epilogue on a block's tile: each thread works on its own elements."""
    tile_loops, bindings = around(s, out)[depth:], node_of(s, out).bindings
    by_axis = [next((h for h, loop in tile_loops if loop.number in form.variables()), None) for form in bindings]
    cuts = [
        s.split(loop, [virtual, threads, None])
        for loop, (virtual, threads, _) in zip(by_axis, tiles.spatial, strict=False)
        if loop is not None  # an axis of one element has no loop
    ]
    virtual, threads, elements = ([cut[level] for cut in cuts] for level in range(3))
    s.reorder(*threads, *virtual, *elements)
    for loop in virtual:
        s.bind(loop, "vthread")
    for loop in elements:
        s.unroll(loop)
    return fused(s, threads)


def spread(s: Schedule, block: Handle, threads: Size = 256, vector: int = 1) -> Handle:
    """Run a block on a GPU, its results spread over threads: a block of threads computes neighbouring results.

        i { j { r { D } } }
      ->
        i_j.0 block_x { i_j.1 = threads thread_x { i_j.2 = vector vectorized { r { D } } } }

    Gives the loop over threads. Requires loops over results that come first and are perfectly nested; several elements
    of a thread are for a block that reduces nothing. Elsewhere: Halide gpu_tile, TVM's default GPU schedule.
    """
    spatial = node_of(s, block).loops_of(reduce=False)
    results_loop = fused(s, [handle for handle, loop in around(s, block) if loop.number in spatial])
    outer, thread, *lanes = s.split(
        results_loop, [None, at_most(threads, s.extent(results_loop)), *([vector] if vector > 1 else [])]
    )
    s.bind(outer, "block_x")
    s.bind(thread, "thread_x")
    for lane in lanes:
        s.vectorize(lane)
    return thread
