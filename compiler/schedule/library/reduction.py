"""Composites for reductions by the threads of GPUs: rows, columns, and split reductions.

Source: Harris, "Optimizing Parallel Reduction in CUDA" (2007); CUB's DeviceReduce and BlockReduce; TVM's rule of
cross-thread reductions (Shao et al., NeurIPS 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import Float32Type

from compiler.intrinsics import INTRINSICS
from compiler.schedule.library.gpu import spread_on_threads
from compiler.schedule.library.loops import around, fused, inside, nest, node_of, refusal
from compiler.schedule.library.rows import place
from compiler.schedule.schedule import Handle, Schedule, Size

WARP, FEW = 32, 4
"""How many threads add up the parts of a row's sum: first a warp, then a few."""
MANY = 256
"""The threads of a block that reduce over several loops."""
THREADS = ("thread_z", "thread_y", "thread_x")


def rows_on_threads(s: Schedule, block: Handle, warps: Size = 8, needed: Sequence[str] | None = None) -> Handle:
    """Compute all that a block needs of one row just before that row, a row for each block of a GPU, its elements on
    the block's threads; sums over a row in parts, one a thread, which the threads of a warp add up by shuffles, and
    one thread then for all warps.

        i { max }  i { exp }  i { sum }  i { j { D } }
      ->
        i block_x { max.rf thread_y, thread_x;  max.rf.1 thread_y, tensorized;  max
                    exp thread_y, thread_x
                    sum.rf thread_y, thread_x;  sum.rf.1 thread_y, tensorized;  sum
                    j { D } thread_y, thread_x }

    Gives the loop over rows. Intermediate values are shared by the block. `needed` are the blocks that are computed
    with it, in the order of the program; all others by default. Sums other than add, max and min of f32 are combined by
    ever fewer threads: a warp, a few, one. Requires what `by_rows` does.
    """
    *outer, row, _ = nest(s, block, "rows_on_threads", fewest=2)
    last = s.label(block)
    needed = [name for name in s.program.blocks if name != last] if needed is None else needed
    for label in reversed(needed):
        row = place(s, label, row, block)
    for label in [name for name in s.program.blocks if name in {*needed, last}]:
        node, handle = s.program.blocks[label], s.get_block(label)
        if label != last:
            s.set_scope(handle, "shared")
        if s.program.enclosing(label)[-1].label == s.label(row):
            continue  # one element a row
        inner = s.get_loops(handle)[-1]
        across = max(1, min(warps, s.extent(inner) // WARP)) if isinstance(warps, int) else warps
        if node.combiners:
            _summed(s, handle, row, across)
        else:
            spread_on_threads(s, inner, (across, WARP), 1)
    rows = fused(s, [*outer, row])
    s.bind(rows, "block_x")
    return rows


def reduce_rows(s: Schedule, block: Handle, epilogue: Handle | None = None, warps: Size = 8) -> Handle:
    """Reduce each result by a block of threads: a part each, which are then added up as `rows_on_threads` does.

        i { k { C[i] += A[i, k] } }  i { D }
      ->
        i block_x { C.rf[k.1] thread_y, thread_x { k.0 { += A } };  C.rf.1 thread_y, tensorized;  C;  D }

    Neighbouring threads take neighbouring iterations of the innermost loop of the reduction; where that is short, of
    several. A result without loops gets one of one iteration. Gives the loop over results. Without an epilogue a copy
    stores the result. Requires a reduction with an implicit init whose loops over results come first, and an epilogue
    that reads it alone, at its own indices.
    """
    result_loops, along = _results_and_reduction(s, block, "reduce_rows")
    result_loops = result_loops or [s.add_unit_loop(along[0])]
    s.reverse_compute_at(_finished(s, block, epilogue), result_loops[-1])
    row = fused(s, result_loops)
    if len(along) > 1 and s.extent(along[-1]) < MANY:
        _summed_together(s, block, row, along)
    else:
        _summed(s, block, row, warps)
    s.bind(row, "block_x")
    return row


def _summed_together(s: Schedule, block: Handle, row: Handle, along: Sequence[Handle]) -> None:
    """Reduce over several short loops by the threads of a block, along as many dimensions as there are loops: fused
    loops would make hard sets for isl. Partial sums are combined along one dimension after another, the outermost
    first."""
    if prod(map(s.extent, along)) <= WARP:
        return
    tile, rounds = _thread_tile(s, along)
    s.reorder(*tile, *rounds)
    kinds = THREADS[-len(tile) :]
    sums = [block]
    for loop in reversed(tile):
        sums.append(s.rfactor(sums[-1], loop))
        s.set_scope(sums[-1], "shared")
    for across, stage in enumerate(sums[1:], 1):
        for loop, kind in zip(inside(s, stage, row), kinds[-across:], strict=False):
            s.bind(loop, kind)
    for fewer in (WARP, FEW):
        _added_by(s, block, fewer)


def _thread_tile(s: Schedule, along: Sequence[Handle]) -> tuple[list[Handle], list[Handle]]:
    """The loops over threads, at most three, outermost first, and the loops that each thread runs. The innermost loops
    are taken whole while there are threads, the next one in part."""
    tile: list[Handle] = []
    rounds: list[Handle] = []
    threads = MANY
    for loop in reversed(along):
        extent = s.extent(loop)
        across = min(extent, threads)
        if extent == 1 or across < 2 or len(tile) == len(THREADS):
            rounds.insert(0, loop)
        elif across == extent:
            tile.insert(0, loop)
            threads //= extent
        else:
            first, part = s.split(loop, [None, across])
            rounds.insert(0, first)
            tile.insert(0, part)
            threads = 1
    return tile, rounds


def reduce_columns(
    s: Schedule, block: Handle, epilogue: Handle | None = None, threads: tuple[Size, Size] = (8, 32)
) -> Handle:
    """Reduce neighbouring results by neighbouring threads, each result by several of them.

        j { k { C[j] += A[k, j] } }  j { D }
      ->
        j.0 block_x { C.rf[k.1, j.1] k.1 thread_y { j.1 thread_x { k.0 { += A } } }
                      j.1 thread_x { k.1 { C[j.1] += C.rf } }
                      j.1 thread_x { D } }

    `threads` are the threads for one result, and the neighbouring results of a block, along the innermost loop over
    results. Gives the loop over blocks. Requires what `reduce_rows` does, and a loop over results.
    """
    result_loops, along = _results_and_reduction(s, block, "reduce_columns")
    if not result_loops:
        raise refusal(s, block, "reduce_columns", "it has no loop over results")
    across, column = s.split(result_loops[-1], [None, threads[1]])
    longest = max(along, key=s.extent)
    rounds, down = s.split(longest, [None, threads[0]])
    s.reorder(across, down, column, *(rounds if loop is longest else loop for loop in along))
    out = _finished(s, block, epilogue)
    s.reverse_compute_at(out, across)
    parts = s.rfactor(block, down)
    s.set_scope(parts, "shared")
    down, column = inside(s, parts, across)[:2]
    s.bind(down, "thread_y")
    s.bind(column, "thread_x")
    s.bind(inside(s, block, across)[0], "thread_x")
    for loop in inside(s, out, across)[-1:]:  # one element has no loop
        s.bind(loop, "thread_x")
    grid = fused(s, [*result_loops[:-1], across])
    s.bind(grid, "block_x")
    return grid


def in_parts(s: Schedule, block: Handle, length: int) -> Handle:
    """Cut the longest loop of a reduction into parts of some length, whose results are combined by another nest, which
    is another kernel.

        i { k { C[i] += A[i, k] } }
      ->
        k.0 { i { k.1 = length { C.rf[k.0, i] += A } } }
        i { k.0 { C[i] += C.rf[k.0, i] } }

    Gives the block of the parts. Requires what `reduce_rows` does. Source: split-K of the BLAS.
    """
    result_loops, along = _results_and_reduction(s, block, "in_parts")
    longest = max(along, key=s.extent)
    part, within = s.split(longest, [None, length])
    s.reorder(part, *result_loops, *(within if loop is longest else loop for loop in along))
    return s.rfactor(block, part)


def _results_and_reduction(s: Schedule, block: Handle, composite: str) -> tuple[list[Handle], list[Handle]]:
    """The loops over results, and the loops of the reduction. Raises ScheduleError unless the loops over results come
    first."""
    node, loops = node_of(s, block), around(s, block)
    reduce_loops = node.loops_of(reduce=True)
    count = sum(loop.number not in reduce_loops for _, loop in loops)
    if not node.has_init or count == len(loops) or any(loop.number not in reduce_loops for _, loop in loops[count:]):
        raise refusal(s, block, composite, "it is no reduction with an implicit init, whose loops are the innermost")
    handles = [handle for handle, _ in loops]
    return handles[:count], handles[count:]


def _finished(s: Schedule, block: Handle, epilogue: Handle | None) -> Handle:
    """The block that takes finished results, which lie in shared memory: the epilogue, or a copy."""
    if epilogue is None:
        return s.cache_write(block, "shared")
    s.set_scope(block, "shared")
    return epilogue


def _summed(s: Schedule, block: Handle, row: Handle, warps: Size) -> None:
    """Reduce a row by the threads of a block: each thread a part, then the threads of a warp, then the warps. Each
    thread has several elements; a row of a warp's threads or fewer is reduced by one warp."""
    node = node_of(s, block)
    inner = s.get_loops(block)[-1]
    if s.extent(inner) <= WARP:
        return
    warps = max(1, min(warps, s.extent(inner) // (2 * WARP))) if isinstance(warps, int) else warps
    _, thread = s.split(inner, [None, s.product(warps, WARP)])
    parts = s.rfactor(block, thread)
    s.set_scope(parts, "shared")
    *rounds, thread = inside(s, parts, row)
    s.reorder(thread, *rounds)
    spread_on_threads(s, thread, (warps, WARP), 1)
    kind = {type(s.program.buffers[access.buffer].element) for access in node.writes}
    sum_up = f"warp.{node.combiners[0]}.f32"
    if kind != {Float32Type} or len(node.combiners) != 1 or sum_up not in INTRINSICS:
        for fewer in (WARP, FEW):
            _added_by(s, block, fewer)
        return
    warp, lane = s.split(s.get_loops(block)[-1], [None, WARP])
    if s.extent(warp) == 1:
        s.tensorize(lane, sum_up)
        return
    sums = s.rfactor(block, warp)
    s.set_scope(sums, "shared")
    *_, warp, lane = inside(s, sums, row)
    s.bind(warp, "thread_y")
    s.tensorize(lane, sum_up)


def _added_by(s: Schedule, block: Handle, threads: int) -> None:
    """Let so many threads of a block each add up some of the parts of a sum, if there are more parts than that."""
    loop = s.get_loops(block)[-1]
    if s.extent(loop) <= threads:
        return
    thread, _ = s.split(loop, [threads, None])
    parts = s.rfactor(block, thread)
    s.set_scope(parts, "shared")
    s.bind(next(h for h in s.get_loops(parts) if s.label(h) == s.label(thread)), "thread_x")
