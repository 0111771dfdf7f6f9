"""Rows on GPUs: a block of threads computes a row with its producers, reductions included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from xdsl.dialects.builtin import Float32Type

from compiler.intrinsics import INTRINSICS
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.gpu.spread import THREADS, WARP, reuses, spread_on_threads
from compiler.recipes.rows import place
from compiler.recipes.steps import fused, inside, nest, node_of
from compiler.schedule import Handle, Schedule, Size

FEW = 4
"""The number of threads that combine partial results after the 32 of a warp."""
LONG = 1 << 16
"""The shortest rows that are split over several blocks of threads if there are few rows."""


def rows_on_blocks(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the schedule of an elementwise block with its producers in one kernel, a block of threads for each row.
    Yields none if no producer is a reduction, rows are short, or few long rows need several blocks each."""
    block = draft.block(label)
    if block.combiners or len(block.axes) < 2 or block.axes[-1].size < 2 * draft.gpu.warp:
        return
    *rows, length = (axis.size for axis in block.axes)
    if length >= LONG and 2 * prod(rows) < draft.gpu.multiprocessors:
        return  # several blocks for a row
    if any(reader.label in draft.left and not _is_tiled(reader) for reader in draft.readers(label)):
        return  # a later block of the row is to come
    needed = _needed(draft, label)
    if any(draft.block(name).combiners for name in needed):
        yield Alternative("rows on blocks", partial(_rows, label=label, needed=needed))


def _is_tiled(block: Block) -> bool:
    return bool(block.combiners) and reuses(block)


def _needed(draft: Draft, label: str) -> list[str]:
    """Return the unscheduled blocks read only by `label` and by other such blocks, in program order; no products."""
    needed = {label}
    for name in reversed(draft.left):
        readers = {reader.label for reader in draft.readers(name)}
        if name != label and readers and readers <= needed and not _is_tiled(draft.block(name)):
            needed.add(name)
    return [name for name in draft.left if name in needed - {label}]


def _rows(draft: Draft, label: str, needed: Sequence[str]) -> Sequence[str]:
    s = draft.schedule
    extent = draft.block(label).axes[-1].size
    warps = draft.choose([n for n in (1, 2, 4, 8, 16, 32) if 2 * WARP * n <= extent], THREADS // WARP, "warps")
    rows_on_threads(s, s.get_block(label), warps, needed)
    return [label, *needed]


def rows_on_threads(s: Schedule, block: Handle, warps: Size = 8, needed: Sequence[str] | None = None) -> Handle:
    """Schedule a block row by row with its producers, a block of threads for each row. In reductions each thread
    reduces a part; a warp combines its parts by shuffles, and one thread combines those of the warps.

        i { max }  i { exp }  i { sum }  i { j { D } }
      ->
        i block_x { max.rf thread_y, thread_x;  max.rf.1 thread_y, tensorized;  max
                    exp thread_y, thread_x
                    sum.rf thread_y, thread_x;  sum.rf.1 thread_y, tensorized;  sum
                    j { D } thread_y, thread_x }

    Returns the loop over rows. Intermediate values are in shared memory. `needed` are the producers, in program order;
    all other blocks by default. Reductions other than add, max and min of f32 are combined by a warp, then FEW threads,
    then one. Requires what `by_rows` does.
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
            sum_row(s, handle, row, across)
        else:
            spread_on_threads(s, inner, (across, WARP), 1)
    rows = fused(s, [*outer, row])
    s.bind(rows, "block_x")
    return rows


def sum_row(s: Schedule, block: Handle, row: Handle, warps: Size) -> None:
    """Reduce each row by the threads of a block of `warps` warps: a part in each thread, then over each warp by
    shuffles, then over the warps. A row of at most WARP elements is not changed."""
    node = node_of(s, block)
    inner = s.get_loops(block)[-1]
    if s.extent(inner) <= WARP:
        return
    warps = max(1, min(warps, s.extent(inner) // (2 * WARP))) if isinstance(warps, int) else warps
    _, thread = s.split(inner, [None, s.product(warps, WARP)])
    partial_sums = s.rfactor(block, thread)
    s.set_scope(partial_sums, "shared")
    *rounds, thread = inside(s, partial_sums, row)
    s.reorder(thread, *rounds)
    spread_on_threads(s, thread, (warps, WARP), 1)
    kind = {type(s.program.buffers[access.buffer].element) for access in node.writes}
    sum_up = f"warp.{node.combiners[0]}.f32"
    if kind != {Float32Type} or len(node.combiners) != 1 or sum_up not in INTRINSICS:
        add_by_fewer(s, block)
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


def add_by_fewer(s: Schedule, block: Handle) -> None:
    """Combine the partial results of a reduction by WARP threads, then by FEW threads, then by one."""
    for threads in (WARP, FEW):
        loop = s.get_loops(block)[-1]
        if s.extent(loop) > threads:
            thread, _ = s.split(loop, [threads, None])
            partial_sums = s.rfactor(block, thread)
            s.set_scope(partial_sums, "shared")
            s.bind(next(h for h in s.get_loops(partial_sums) if s.label(h) == s.label(thread)), "thread_x")
