"""Reductions by tiles on the threads of GPUs, with operands in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.affine.linear import bounds
from compiler.analysis.barriers import AHEAD, ASYNC
from compiler.program.tree import Block, Program
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.gpu.finish import ThreadTiles, finish_on_threads
from compiler.recipes.gpu.spread import THREADS, WARP, in_parts, reuses, spread_on_threads, spread_sums
from compiler.recipes.steps import by_axis, fused, inside, node_of, refusal, target_of
from compiler.schedule import Handle, Schedule, Size
from compiler.types.elements import element_bytes

MOST_ELEMENTS = 16
"""The most results of a thread along one axis."""
PANEL, MOST_PANEL = 8, 64
"""The default number, and the most, of elements of a panel along one reduce axis."""
PADDED = 8
"""The default number of threads along an axis with padding."""
MOST_PARTS, LEAST_PART = 16, 64
"""The most parts of a reduction that is tiled, and the fewest iterations of a part."""
WIDE = 4
"""The elements of a vector that a thread fetches at once."""
WIDEST = 4
"""The bytes of a result above which a thread has half as many: registers hold them."""
LATENCY, SECOND_KERNEL, FETCH_COST, ROUND_COST = 700, 4000, 20, 100
"""Cycles of a fetch, and of another kernel; instructions of a warp in a round: for the fetches of an element of each
thread along an axis, and beside them."""
TILE = 64
"""The default number of results of a thread, if there are enough results for all multiprocessors."""


def tiled_on_threads(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of a reduction with reuse of operands by multi-level tiles, S S S R R S R S, for blocks, virtual
    threads and threads; operands are in shared memory, and the epilogue is applied to finished tiles. Yields nothing
    for other blocks.

    Source: multi-level tiling on GPUs of Ansor (Zheng et al., OSDI 2020).
    """
    block = draft.block(label)
    if not block.combiners or not block.spatial or block.table is not None or not reuses(block):
        return
    after = draft.consumer(label)
    read = [draft.schedule.program.buffers[access.buffer] for access in block.reads if not access.where]
    even = draft.lanes(label) == WIDE and any(prod(buffer.shape[1:]) % WIDE == 0 for buffer in read)
    ways = [(after, 1, False), *([(after, WIDE, twice) for twice in (False, True)] if even else [(after, 1, True)])]
    if after is not None:
        ways.append((None, 1, False))
    for epilogue, vector, twice in ways:
        name = f"on threads{', four at a time' if vector > 1 else ''}{', a round ahead' if twice else ''}"
        applied = f", with '{epilogue.label}'" if epilogue is not None else ""
        apply = partial(_tiled, label=label, after=epilogue, vector=vector, twice=twice)
        yield Alternative(name + applied, apply)


def _tiled(draft: Draft, label: str, after: Block | None, vector: int, twice: bool) -> Sequence[str]:
    s, block = draft.schedule, draft.block(label)
    handle = s.get_block(label)
    loops = s.get_loops(handle)
    spatial, reduce = loops[: block.spatial], loops[block.spatial :]
    ragged, parts = _ragged_tile(draft, block)
    preferred, panel_sizes = _fitting_tiles(draft, block, [s.extent(loop) for loop in loops], 2 if twice else 1, ragged)
    cuts = [_cut(draft, loop, *sizes) for loop, sizes in zip(spatial, preferred, strict=True)]
    panels = [
        draft.choose(_panels(s.extent(loop)), size, "panel") for loop, size in zip(reduce, panel_sizes, strict=True)
    ]
    epilogue = draft.handle(after)
    if parts > 1:
        handle, sums = in_parts(s, handle, max(s.extent(loop) for loop in reduce) // parts), handle
        s.reorder(*(loop for each in by_axis(s, handle) for loop in each))
        tile_on_threads(s, handle, None, ThreadTiles([*cuts, (1, 1, 1)], panels, vector, twice, padded=twice))
        spread_sums(s, sums, epilogue)
    else:
        tile_on_threads(s, handle, epilogue, ThreadTiles(cuts, panels, vector, twice, padded=twice))
    return [label, *labels(after)]


def _ragged_tile(draft: Draft, block: Block) -> tuple[int, int]:
    """Return the default elements of a thread along an axis, and the number of parts of the longest reduce axis, of a
    reduction with an extent that tiles do not divide: as many elements, in as few parts, as occupy half of the
    multiprocessors; smaller tiles without parts if they are estimated as faster. Of other reductions 4 and several
    parts if they are long and have few results, else (1, 1), as for fewer than two spatial axes longer than one."""
    sizes = [axis.size for axis in block.axes]
    spatial = [size for size in sizes[: block.spatial] if size > 1]
    if len(spatial) < 2:
        return 1, 1
    if all(map(_is_smooth, spatial)):
        return _long_tile(draft, spatial, max(sizes[block.spatial :]))
    longest = max(sizes[block.spatial :])
    dividing = [n for n in _divisors(longest) if n == 1 or (n <= MOST_PARTS and longest // n >= LEAST_PART)]
    half = draft.gpu.multiprocessors / 2
    most = (8, 4) if _result_bytes(draft, block) <= WIDEST else (4,)
    choices = [(each, n) for each in most for n in dividing if _tiles(spatial, each) * n >= half]
    each, parts = next(iter(choices), (2, 1))
    if parts == 1:
        return each, parts
    return min([(each, parts), (4, 1), (2, 1)], key=lambda choice: _ragged_cycles(draft, block, *choice))


def _result_bytes(draft: Draft, block: Block) -> int:
    return element_bytes(draft.schedule.program.buffers[block.writes[0].buffer].element)


def _long_tile(draft: Draft, spatial: Sequence[int], longest: int) -> tuple[int, int]:
    """Return the results of a thread along each axis, and the parts of the longest reduce axis, for results of extents
    `spatial` and `longest` iterations: 4, and the fewest equal parts that give each multiprocessor two tiles, if the
    results are fewer than a block of threads on each multiprocessor; 1 and 1 if they are more, or if such parts would
    be shorter than LEAST_PART."""
    if prod(spatial) >= draft.gpu.multiprocessors * THREADS:
        return 1, 1
    dividing = [n for n in _divisors(longest) if longest // n >= LEAST_PART]
    enough = (n for n in dividing if _tiles(spatial, 4) * n >= 2 * draft.gpu.multiprocessors)
    parts = next(enough, 1)
    return (4, parts) if parts > 1 else (1, 1)


def _tiles(spatial: Sequence[int], each: int) -> int:
    """Return the number of tiles of PADDED x PADDED threads with `each` x `each` results, of all results of extents
    `spatial`: such tiles along the last two, one index at a time along the others."""
    return prod(-(-size // (PADDED * each)) for size in spatial[-2:]) * prod(spatial[:-2])


def _ragged_cycles(draft: Draft, block: Block, each: int, parts: int) -> float:
    """Estimate the clock cycles of a reduction by tiles of PADDED x PADDED threads with `each` x `each` results: of the
    busiest multiprocessor, with the latency of its fetches, and of the sum of parts in a kernel of its own.

    Example: (197 x 192) x (192 x 192) on an A100 takes 8000 cycles with 2 x 2 results, and 12700 with 4 x 4 in 2 parts.
    """
    gpu, sizes = draft.gpu, [axis.size for axis in block.axes]
    spatial, warps = [size for size in sizes[: block.spatial] if size > 1], PADDED * PADDED // WARP
    on_one = -(-_tiles(spatial, each) * parts // gpu.multiprocessors)
    rounds = -(-prod(sizes[block.spatial :]) // (parts * 2 * PANEL))
    operations = 2 * PANEL * each * each * 4 * WARP / gpu.fmas
    issued = operations + (2 * PANEL + FETCH_COST) * each + ROUND_COST
    resident = min(on_one, gpu.registers // (PADDED * PADDED * (each * each + 48)))
    cycles = rounds * (-(-on_one * warps // 4) * issued + LATENCY * -(-on_one // resident) / resident)
    return cycles if parts == 1 else cycles + SECOND_KERNEL


def _fitting_tiles(
    draft: Draft, block: Block, extents: Sequence[int], copies: int, ragged: int
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the default threads and elements of a thread of each spatial axis, and the default panel of each reduce
    axis, for axes of `extents`; `ragged` are the elements along an axis that tiles exceed, 1 if they exceed none.
    `copies` tiles of all operands fit in half the shared memory of a multiprocessor: panels are shortened for that,
    then the elements of a thread are halved, then the threads down to a warp."""
    spatial, reduce = extents[: block.spatial], extents[block.spatial :]
    most_bytes = min(draft.gpu.shared_bytes // 2, draft.gpu.block_shared_bytes) // copies
    most_elements = TILE if _result_bytes(draft, block) <= WIDEST else TILE // 2
    elements, threads = (
        ragged * ragged
        if ragged > 1
        else min(most_elements, max(1, prod(spatial) // (draft.gpu.multiprocessors * THREADS))),
        THREADS if ragged == 1 else PADDED * PADDED,
    )
    options = [_panels(extent) for extent in reduce]
    panel = PANEL if ragged == 1 else 2 * PANEL
    wanted = [min(sizes, key=lambda n: (abs(n - panel), n)) for sizes in options]
    while True:
        preferred = [
            tile if ragged == 1 else _even_tile(extent, ragged) if _is_smooth(extent) else (PADDED, ragged)
            for extent, tile in zip(spatial, _preferred_tiles(spatial, elements, threads), strict=True)
        ]
        tile = [across * each for across, each in preferred]
        panels = _shortened(draft, block, tile, options, wanted, most_bytes)
        is_least = elements == 1 and threads == WARP
        if is_least or tile_bytes(draft.schedule.program, block, [*tile, *panels]) <= most_bytes:
            return preferred, panels
        elements, threads = max(1, elements // 2), threads if elements > 1 else threads // 2


def _even_tile(extent: int, elements: int) -> tuple[int, int]:
    """Return the numbers of threads, at most PADDED, and of elements of a thread, at most `elements`, that divide an
    extent."""
    across = max(d for d in _divisors(extent) if d <= PADDED)
    return across, max(d for d in _divisors(extent // across) if d <= elements)


def _shortened(
    draft: Draft, block: Block, tile: Sequence[int], options: Sequence[list[int]], wanted: Sequence[int], most: int
) -> list[int]:
    """Return the panels of the reduce axes: the `wanted` ones, shortened from the first axis on until the operands of
    the tile take at most `most` bytes, or no shorter option is left."""
    panels = list(wanted)
    for axis, sizes in enumerate(options):
        for size in sorted((n for n in sizes if n < panels[axis]), reverse=True):
            if tile_bytes(draft.schedule.program, block, [*tile, *panels]) <= most:
                return panels
            panels[axis] = size
    return panels


def tile_bytes(program: Program, block: Block, sizes: Sequence[int]) -> int:
    """Return the bytes of the operands that a tile of a block reads, each as its bounding box; `sizes` are the tile's
    extents, one for each axis of the block."""
    ranges = {n: (0, size - 1) for n, size in enumerate(sizes)}
    total = 0
    for access in block.reads:
        spans = [bounds(form, ranges) for form in access.index]
        total += prod(high - low + 1 for low, high in spans) * element_bytes(program.buffers[access.buffer].element)
    return total


def _preferred_tiles(extents: Sequence[int], elements: int, threads: int) -> list[tuple[int, int]]:
    """Return for each axis, of `extents`, the default numbers of threads and of elements of a thread: at most `threads`
    threads in all, at most 32 along an axis, neighbours along the last axes, and about `elements` elements of a thread
    in all."""
    preferred: list[tuple[int, int]] = []
    for extent in reversed(extents):
        across = max(d for d in _divisors(extent) if d <= min(threads, 32))
        each = max(d for d in _divisors(extent // across) if d * d <= max(1, elements) or d <= min(elements, 8))
        threads, elements = max(1, threads // across), max(1, elements // each)
        preferred.insert(0, (across, each))
    return preferred


def _cut(draft: Draft, loop: Handle, threads: int, elements: int) -> tuple[Size, Size, Size]:
    """Return the sizes of virtual threads, threads and elements along a loop, as choices with defaults; 1, 1, 1 for a
    loop of one iteration. An extent without prime factors above 7 is split evenly; another has one virtual thread and
    powers of two, with padding."""
    s = draft.schedule
    extent = s.extent(loop)
    if extent == 1:
        return 1, 1, 1
    if _is_smooth(extent):
        preferred = (extent // (threads * elements), 1, threads, elements)
        _, virtual, across, each = s.sample_perfect_tile(loop, 4, min(extent, MOST_ELEMENTS), decision=preferred)
        return virtual, across, each
    padded = draft.choose([n for n in (1, 2, 4, 8, 16, 32) if n <= extent], threads, "threads")
    return 1, padded, draft.choose([n for n in (1, 2, 4, 8) if n <= extent], elements, "elements")


def _panels(extent: int) -> list[int]:
    """Return the options for the length of a panel along a reduce axis of an extent: its divisors up to MOST_PANEL, or
    if it has a prime factor above 7 those of 4, 8, 16 and 32 that it exceeds or equals."""
    if _is_smooth(extent):
        return [d for d in _divisors(extent) if d <= MOST_PANEL]
    return [n for n in (4, 8, 16, 32) if n <= extent] or [extent]


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _is_smooth(number: int) -> bool:
    """Return whether a positive number has no prime factor above 7; it then divides a power of 210."""
    return pow(210, number.bit_length(), number) == 0


def cooperative_fetch(
    s: Schedule,
    block: Handle,
    buffer: str,
    at_loop: Handle,
    threads: Size | tuple[Size, Size],
    vector: int = 1,
) -> Handle:
    """Copy the part of a buffer that an iteration of `at_loop` reads to shared memory, by all threads of a block, a
    vector of `vector` elements each at a time.

        k.0 { C reads A }
      ->
        k.0 { alloc A.shared shared
              i.0 { i.1 = threads thread_x { i.2 = vector vectorized { A.shared[...] = A[...] } } }
              C reads A.shared }

    Returns the block that copies. A pair of thread counts is along y and x, a single one along x; a part of one element
    is copied without a loop over threads. Requires that `block` reads the buffer inside `at_loop`, that no loop bound
    to threads is around that, and that nothing there writes the buffer. Source: TVM's cooperative fetching
    (MetaSchedule's multi-level tiling with reuse), CUTLASS's threadblock iterators.
    """
    fetch = s.cache_read(block, buffer, "shared")
    s.compute_at(fetch, at_loop)
    copy_loops = inside(s, fetch, at_loop)
    if copy_loops:
        spread_on_threads(s, fused(s, copy_loops), threads, vector)
    return fetch


def tile_on_threads(s: Schedule, block: Handle, epilogue: Handle | None, tiles: ThreadTiles) -> None:
    """Schedule any reduction for a GPU by multi-level tiles (SSSRRSRS): blocks, threads, virtual threads and elements
    of each spatial axis. All threads of a block fetch operands to shared memory and apply the epilogue to their tile.

        s { r { C } }  s { D }
      ->
        s.0 block_x { alloc C local
          r.0 { fetch A.shared; fetch B.shared
            s.2 thread_x { r.1 { s.1 vthread { s.3 unrolled { C += A.shared * B.shared } } } } }
          s.2 thread_x { s.1 vthread { s.3 unrolled { D = f(C) } } } }

    A tile that exceeds an extent is computed whole: operands are fetched with zeros there, and only stores are guarded.
    Virtual threads are apart by the elements of all threads, so that neighbours read neighbouring words. With `twice`
    panels are fetched a round ahead, by asynchronous copies until the next barrier. Without an epilogue the results are
    copied from registers. Reads under conditions are fetched with a border, an element at a time. Raises ScheduleError
    unless there is a tile for each loop. Requires a reduction whose spatial loops come first, a tile for each axis, and
    an epilogue that reads only its result, elementwise. Source: multi-level tiling on GPUs of Ansor (Zheng et al., OSDI
    2020), CUTLASS.
    """
    loops = s.get_loops(block)
    count = len(tiles.spatial)
    if len(loops) != count + len(tiles.reduce):
        reason = f"it has {len(loops)} loops, and there are tiles for {count + len(tiles.reduce)}"
        raise refusal(s, block, "tile_on_threads", reason)
    pads = [s.pad(block, access.buffer) for access in node_of(s, block).reads if access.where]
    if epilogue is None:
        out = s.cache_write(block, "local")
    else:
        out = epilogue
        s.set_scope(block, "local")
    cuts = [s.split(loop, [None, *sizes], tail="pad") for loop, sizes in zip(loops, tiles.spatial, strict=False)]
    panels_ = [s.split(loop, [None, size]) for loop, size in zip(loops[count:], tiles.reduce, strict=True)]
    blocks, virtual, threads, elements = ([cut[level] for cut in cuts] for level in range(4))
    outer, inner = ([pair[level] for pair in panels_] for level in range(2))
    s.reorder(*blocks, *outer, *threads, *inner, *virtual, *elements)
    pads += [s.pad(block, access.buffer) for access in node_of(s, block).reads if access.where]
    if tiles.twice:
        outer = [fused(s, outer)]
    s.reverse_compute_at(out, blocks[-1])
    thread_count = s.product(*(across for _, across, _ in tiles.spatial))
    padded = {target_of(s, pad) for pad in pads}
    fetches = [
        cooperative_fetch(s, block, name, outer[-1], thread_count, 1 if name in padded else tiles.vector)
        for name in node_of(s, block).sources
    ]
    for pad in reversed(pads):
        s.inline(pad)
    for fetch in fetches if tiles.padded else ():
        pad_rows(s, fetch, tiles.vector)
    if tiles.twice:
        overlapped(s, outer[-1], fetches)
    finish_on_threads(s, block, out, tiles, (blocks, virtual, threads, elements))


def pad_rows(s: Schedule, fetch: Handle, vector: int) -> None:
    """Pad the rows of a fetched tile so that neighbouring rows begin in different banks of shared memory, at multiples
    of `vector` elements. A tile of one dimension, or with rows of one element, is not changed."""
    buffer = s.program.buffers[target_of(s, fetch)]
    if len(buffer.shape) > 1 and buffer.shape[-1] > 1:
        s.storage_align(fetch, len(buffer.shape) - 2, 2 * vector, vector)


def overlapped(s: Schedule, panel: Handle, fetches: Sequence[Handle], stages: int = 2, unrolled: bool = False) -> None:
    """Fetch the operands of later rounds during this one, into `stages` buffers or as many as there are rounds, at
    least 2; the loop over rounds has stages - 1 more iterations. unrolled: the first of these are a loop of their own
    in the text, and the others are unrolled by `stages`.

    r { fetch A.shared;  C }  ->  r { fetch A.shared[r mod 2] of round r;  C of round r - 1 }
    """
    stages = max(2, min(stages, s.extent(panel)))
    for fetch in fetches:
        innermost = s.get_loops(fetch)[-1]
        if s.label(innermost) != s.label(panel):
            s.annotate(innermost, ASYNC, 1)
        s.double_buffer(fetch, stages)
    rounds = s.software_pipeline(panel, [*(0 for _ in fetches), stages - 1])
    if unrolled:
        s.annotate(rounds, AHEAD, stages)
