"""Rows on GPUs: a block of threads computes a row with its producers, reductions included.

Source: OneFlow's and Apex's softmax and layer norm (rows in registers, loads of 128 bits); CUB's BlockReduce.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from xdsl.dialects.builtin import Float32Type

from compiler.affine.linear import variable
from compiler.intrinsics import INTRINSICS
from compiler.program.tree import Access, Block
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.gpu.spread import THREADS, WARP, reuses, spread_on_threads
from compiler.recipes.gpu.vectors import load_vectors, store_vectors, vector_along
from compiler.recipes.rows import place
from compiler.recipes.steps import fused, inside, nest, node_of
from compiler.schedule import Handle, Schedule, Size

FEW = 4
"""The number of threads that combine partial results after the 32 of a warp."""
LONG = 1 << 16
"""The shortest rows that are split over several blocks of threads if there are few rows."""
MOST_EACH = 32
"""The most elements of a row that a thread keeps in registers."""
UNROLLED = 8
"""The most loads in an unrolled loop of a reduction."""
WARPS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32)
"""The numbers of warps of a block."""


def rows_on_blocks(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of an elementwise block with its producers in one kernel, a block of threads for each row: values
    of a row in registers, computed again where rows are too long, or in shared memory. Yields none for a reduction or a
    block of one axis, if no producer is a reduction, rows are shorter than two warps, a reader is still to be
    scheduled, or few long rows need several blocks each."""
    block = draft.block(label)
    if block.combiners or len(block.axes) < 2 or block.axes[-1].size < 2 * draft.gpu.warp:
        return
    *rows, length = (axis.size for axis in block.axes)
    if length >= LONG and 2 * prod(rows) < draft.gpu.multiprocessors:
        return  # several blocks for a row
    if any(reader.label in draft.left and not _is_tiled(reader) for reader in draft.readers(label)):
        return  # a later block of the row is to come
    needed = _needed(draft, label)
    if not any(draft.block(name).combiners for name in needed):
        return
    along = [name for name in needed if not draft.block(name).combiners and draft.block(name).axes[-1].size > 1]
    if all(_is_plain(draft, name, label, needed) for name in along):
        if length <= WARPS[-1] * WARP * MOST_EACH:
            yield Alternative("rows in registers", partial(_rows, label=label, needed=needed, inline=()))
        if along:
            again = partial(_rows, label=label, needed=needed, inline=tuple(along))
            yield Alternative("rows on blocks, computed again", again)
    yield Alternative("rows on blocks", partial(_rows, label=label, needed=needed, inline=None))


def _is_tiled(block: Block) -> bool:
    return bool(block.combiners) and reuses(block)


def _needed(draft: Draft, label: str) -> list[str]:
    """Return the unscheduled blocks read only by `label` and by other such blocks, in program order; no reductions that
    reuse operands."""
    needed = {label}
    for name in reversed(draft.left):
        readers = {reader.label for reader in draft.readers(name)}
        if name != label and readers and readers <= needed and not _is_tiled(draft.block(name)):
            needed.add(name)
    return [name for name in draft.left if name in needed - {label}]


def _is_plain(draft: Draft, name: str, label: str, needed: Sequence[str]) -> bool:
    """Return whether an elementwise block and its readers among `needed` and `label` access each element of its result
    in the iteration of their last axes that has its number: threads then compute what they read."""
    block = draft.block(name)
    length = block.axes[-1].size

    def is_in_step(node: Block, access: Access) -> bool:
        last = len(node.axes) - 1
        is_row = node.axes[last].size == length and len(node.axes) - node.spatial <= 1
        rest = set().union(*(form.variables() for form in access.index[:-1]))
        return is_row and access.index[-1] == variable(last) and last not in rest and not access.where

    if len(block.writes) > 1 or block.table is not None or not is_in_step(block, block.writes[0]):
        return False
    buffer = block.writes[0].buffer
    readers = [draft.block(reader) for reader in (*needed, label)]
    return all(is_in_step(node, access) for node in readers for access in node.reads if access.buffer == buffer)


def _rows(draft: Draft, label: str, needed: Sequence[str], inline: Sequence[str] | None) -> Sequence[str]:
    """Schedule the rows of the block `label` and of its producers `needed` with their values in registers; those of the
    blocks `inline` are computed where they are read. With None values are in shared memory. Return the labels of the
    blocks."""
    s = draft.schedule
    for name in inline or ():
        s.inline(s.get_block(name))
    kept = [name for name in needed if name not in (inline or ())]
    extent = draft.block(label).axes[-1].size
    nodes = [draft.block(name) for name in (*kept, label)]
    private = {access.buffer for name in kept for access in draft.block(name).writes}
    blocks = [node for node in nodes if node.axes and node.axes[-1].size > 1]
    vector = 1 if inline is None else vector_along(s.program, blocks, private)
    warps = choose_warps(draft, extent, vector, None if inline is None else MOST_EACH)
    rows_on_threads(s, s.get_block(label), warps, kept, vector, in_registers=inline is not None)
    return [label, *needed]


def choose_warps(draft: Draft, extent: int, vector: int, each: int | None = None) -> Size:
    """Return a choice of the warps that share a row of `extent` elements in vectors of `vector`, with at most `each`
    elements a thread if so many warps exist, else the most; None is no limit. By default blocks have about THREADS
    threads at most: of these numbers the one that leaves the fewest threads without elements, in the fewest rounds."""
    vectors = _most_warps(extent, vector)
    options = [n for n in WARPS if n <= vectors]
    if each is not None:
        options = [n for n in options if extent <= n * WARP * each] or options[-1:]
    about = [n for n in options if 2 * n >= min(vectors, THREADS // WARP) and n <= THREADS // WARP] or options[:1]
    rounds = {n: -(-extent // (n * WARP * vector)) for n in about}
    wanted = min(about, key=lambda n: (rounds[n] * n, rounds[n]))
    return draft.choose(options, wanted, "warps")


def rows_on_threads(
    s: Schedule,
    block: Handle,
    warps: Size = 8,
    needed: Sequence[str] | None = None,
    vector: int = 1,
    in_registers: bool = False,
) -> Handle:
    """Schedule a block row by row with its producers, a block of threads for each row. In reductions each thread
    reduces a part; a warp combines its parts by shuffles, and each thread those of the warps.

        i { max }  i { exp }  i { sum }  i { j { D } }
      ->
        i block_x { max.rf thread_y, thread_x;  max.rf.1 thread_y, tensorized;  max
                    exp thread_y, thread_x
                    sum.rf thread_y, thread_x;  sum.rf.1 thread_y, tensorized;  sum
                    j { D } thread_y, thread_x }

    Returns the loop over rows. Intermediate values are in shared memory, or with `in_registers` in those of the threads
    that need them, which requires that each element is read in the iteration of a row that has its number. A block of
    threads has `warps` warps. `vector` elements are loaded and stored at once. `needed` are the producers, in program
    order; all other blocks by default. Reductions other than add, max and min of f32 are combined by a warp, then FEW
    threads, then each. Requires rows, and producers that can be computed for one row. Raises ScheduleError for a block
    with fewer than two loops.
    """
    *outer, row, _ = nest(s, block, "rows_on_threads", fewest=2)
    last = s.label(block)
    needed = [name for name in s.program.blocks if name != last] if needed is None else needed
    for label in reversed(needed):
        row = place(s, label, row, block)
    for label in [name for name in s.program.blocks if name in {*needed, last}]:
        node, handle = s.program.blocks[label], s.get_block(label)
        is_single = s.program.enclosing(label)[-1].label == s.label(row)  # one element a row
        if label != last:
            s.set_scope(handle, "local" if node.combiners or is_single or in_registers else "shared")
        if is_single:
            continue
        if node.combiners:
            sum_row(s, handle, row, warps, vector, in_registers)
        else:
            _on_row(s, handle, warps, vector, stores=label == last)
    rows = fused(s, [*outer, row])
    s.bind(rows, "block_x")
    return rows


def _on_row(s: Schedule, block: Handle, warps: Size, vector: int, stores: bool) -> None:
    """Spread an elementwise block along a row over `warps` warps, `vector` elements at once; `stores`: its result is in
    memory."""
    copy = s.cache_write(block, "local") if stores and vector > 1 and len(node_of(s, block).writes) == 1 else None
    inner = s.get_loops(block)[-1]
    across = _at_most(warps, s.extent(inner), vector)
    rounds, warp, lane, *elements = s.split(inner, [None, across, WARP, *([vector] if vector > 1 else [])])
    s.reorder(warp, lane, rounds, *elements)
    s.bind(warp, "thread_y")
    s.bind(lane, "thread_x")
    _unroll(s, rounds, elements)
    if vector > 1:
        load_vectors(s, block, rounds)
    if copy is not None:
        store_vectors(s, copy, rounds)


def _most_warps(extent: int, vector: int) -> int:
    """Return the most warps that have vectors of a row of `extent` elements; of single elements each thread has one, so
    that the init of its partial result has no guard."""
    return max(1, extent // WARP if vector == 1 else -(-extent // (WARP * vector)))


def _at_most(warps: Size, extent: int, vector: int) -> Size:
    """Return a constant number of warps, reduced to those that have vectors of a row of `extent` elements; a parameter
    as it is."""
    return min(warps, _most_warps(extent, vector)) if isinstance(warps, int) else warps


def _unroll(s: Schedule, rounds: Handle, elements: Sequence[Handle]) -> None:
    """Unroll the loop `rounds` over a thread's vectors of a row, if all their elements fit in its registers, and always
    the loops `elements` in a vector."""
    if s.extent(rounds) * prod(map(s.extent, elements)) <= MOST_EACH:
        s.unroll(rounds)
    for loop in elements:
        s.unroll(loop)


def sum_row(s: Schedule, block: Handle, row: Handle, warps: Size, vector: int = 1, in_registers: bool = False) -> None:
    """Reduce a row by the threads of a block: several elements by each thread, `vector` at once, then by each warp,
    then over the warps, by each thread. Partial results are in registers; those of the warps, and those that no warp
    combines by shuffles, in shared memory. A row of at most WARP elements stays as it is."""
    node = node_of(s, block)
    *others, inner = inside(s, block, row)
    if s.extent(inner) <= WARP:
        return
    across = _at_most(warps, s.extent(inner), vector)
    rounds, thread, *elements = s.split(inner, [None, s.product(across, WARP), *([vector] if vector > 1 else [])])
    s.reorder(thread, *others, rounds, *elements)
    partial_sums = s.rfactor(block, thread)
    kind = {type(s.program.buffers[access.buffer].element) for access in node.writes}
    sum_up = f"warp.{node.combiners[0]}.f32"
    is_shuffled = kind == {Float32Type} and len(node.combiners) == 1 and sum_up in INTRINSICS
    s.set_scope(partial_sums, "local" if is_shuffled else "shared")
    loops = inside(s, partial_sums, row)
    thread, rounds, *elements = loops[0], loops[len(others) + 1], *loops[len(others) + 2 :]
    spread_on_threads(s, thread, (across, WARP), 1)
    if vector > 1 or in_registers:
        if s.extent(rounds) * prod(map(s.extent, elements)) > MOST_EACH:
            _, rounds = s.split(rounds, [None, UNROLLED])
        _unroll(s, rounds, elements)
    if vector > 1:
        load_vectors(s, partial_sums, rounds)
    if not is_shuffled:
        add_by_fewer(s, block)
        return
    _, lane = s.split(s.get_loops(block)[-1], [None, WARP])
    _combine_warps(s, block, row, sum_up, lane)


def _combine_warps(s: Schedule, block: Handle, row: Handle, sum_up: str, lane: Handle) -> None:
    """Combine a value of each thread: by the intrinsic `sum_up` in the warps, whose loop over threads is `lane`, then
    over warps."""
    warp = s.get_loops(block)[-2]
    if s.extent(warp) == 1:
        s.tensorize(lane, sum_up)
        return
    sums = s.rfactor(block, warp)
    s.set_scope(sums, "shared")
    *_, warp, lane = inside(s, sums, row)
    s.bind(warp, "thread_y")
    s.tensorize(lane, sum_up)
    s.unroll(s.get_loops(block)[-1])


def add_by_fewer(s: Schedule, block: Handle) -> None:
    """Combine the partial results of a reduction by WARP threads, then by FEW threads, then by one; of at most as many
    partial results a step is left out."""
    for threads in (WARP, FEW):
        loop = s.get_loops(block)[-1]
        if s.extent(loop) > threads:
            thread, _ = s.split(loop, [threads, None])
            partial_sums = s.rfactor(block, thread)
            s.set_scope(partial_sums, "shared")
            s.bind(next(h for h in s.get_loops(partial_sums) if s.label(h) == s.label(thread)), "thread_x")
