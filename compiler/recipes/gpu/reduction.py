"""Reductions by the threads of GPUs: rows, columns and scalars by the threads of a block, or of several blocks.

Source: Harris, "Optimizing Parallel Reduction in CUDA" (2007); CUB's DeviceReduce, BlockReduce and
DeviceSegmentedReduce; TVM's rules of cross-thread reductions and of rfactor (Shao et al., NeurIPS 2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.gpu.rows import add_by_fewer, choose_warps, sum_row
from compiler.recipes.gpu.spread import THREADS, WARP, in_parts, results_and_reduction, reuses, spread_sums
from compiler.recipes.gpu.vectors import vector_along
from compiler.recipes.steps import axes_of, fused, inside, node_of, refusal, split_loops
from compiler.schedule import Handle, Schedule, Size

MOST_THREADS = 1024
"""The most threads of a block."""
LEAST = 2 * WARP
"""The fewest iterations of a reduction that several threads share."""
EACH = 4
"""The fewest iterations of each thread in a part of a reduction."""
FEW, LONG = 1024, 1024
"""The most results, and the fewest iterations for each, of a product with reuse whose results several threads share."""


@dataclass(frozen=True)
class Extents:
    """The extents of a reduction: the numbers of `results` and of iterations for each (`rounds`), and the `longest`
    reduce axis. The largest operand is contiguous along the spatial axis `column`, None if along no spatial axis, and
    along the reduce axis `row`, which is the last axis if it is along no reduce axis."""

    results: int
    rounds: int
    longest: int
    column: int | None
    row: int

    @classmethod
    def of(cls, block: Block) -> Extents:
        """Return the extents of a reduction block; raises ValueError for a block without reduce axes."""
        sizes = [axis.size for axis in block.axes]
        spatial_extents, along = sizes[: block.spatial], sizes[block.spatial :]
        last = _neighbours(block)
        column = next((n for n in sorted(last) if n < block.spatial), None)
        row = next((n for n in sorted(last) if n >= block.spatial), len(sizes) - 1)
        return cls(prod(spatial_extents), prod(along), max(along), column, row)


def _neighbours(block: Block) -> set[int]:
    """Return the axes, of extent above 1, in the last index of the operand that depends on the most axes; none without
    operands."""
    moving = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    reads = [access for access in block.reads if access.index]
    if not reads:
        return set()
    widest = max(reads, key=lambda access: len(axes_of(access) & moving))
    return widest.index[-1].variables() & moving


def _streams(block: Block) -> bool:
    """Return whether an operand depends on all axes: each of its elements is used once, and its reads dominate."""
    moving = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    return any(not moving - axes_of(access) for access in block.reads)


def products_of_few(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the alternatives of `reduced_together` for a product limited by the reads of an operand, such as a matrix
    times a vector, or with few results and a long reduction; nothing for other blocks."""
    block = draft.block(label)
    if not block.has_init or not block.spatial or not reuses(block):
        return
    extents = Extents.of(block)
    if _streams(block) or (extents.results <= FEW and extents.rounds >= LONG):
        yield from reduced_together(draft, label)


def reduced_together(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of a reduction with several threads for each result, of one block of threads, or of several
    blocks whose partial results a second kernel combines; with or without an elementwise epilogue. Yields nothing for
    other blocks, for a short reduction, and for neighbouring results that are enough for a thread each."""
    block = draft.block(label)
    if not block.has_init or block.table is not None:
        return
    extents = Extents.of(block)
    if extents.rounds < (LEAST if extents.results > 1 else WARP + 1):
        return
    if extents.column is not None and extents.results >= draft.gpu.multiprocessors * THREADS:
        return  # a thread each is enough, and neighbours read neighbours
    after = draft.consumer(label) if len(block.writes) == 1 else None
    part = _part(draft, block, extents)
    for length in [part, extents.longest] if part < extents.longest else [part]:
        for epilogue in [after, None] if after is not None else [None]:
            name = "columns on threads" if extents.column is not None else "rows on threads"
            name += f", in parts of {length}" if length < extents.longest else ""
            name += f", with '{epilogue.label}'" if epilogue is not None else ""
            yield Alternative(name, partial(_apply, label=label, extents=extents, length=length, after=epilogue))


def _part(draft: Draft, block: Block, extents: Extents) -> int:
    """Return the length of the parts into which the longest reduce axis is cut, so that about two blocks for each
    multiprocessor run; the whole extent if cutting does not pay."""
    if extents.column is None:
        blocks, sharing = extents.results, THREADS
    else:
        size = block.axes[extents.column].size
        blocks, sharing = extents.results // size * -(-size // WARP), THREADS // WARP
    part_count = min(2 * draft.gpu.multiprocessors // blocks, extents.rounds // (EACH * sharing), extents.longest)
    return _even(-(-extents.longest // part_count)) if part_count > 1 else extents.longest


def _even(length: int) -> int:
    """Round a length up to a multiple of a power of two that is at most a quarter of it: parts then need no nested
    guards, which isl solves slowly. _even(100) is 112, a multiple of 16."""
    grain = 1
    while 8 * grain <= length and grain < MOST_THREADS:
        grain *= 2
    return -(-length // grain) * grain


def _apply(draft: Draft, label: str, extents: Extents, length: int, after: Block | None) -> Sequence[str]:
    s = draft.schedule
    handle = s.get_block(label)
    epilogue = draft.handle(after)
    loops = s.get_loops(handle)
    count = draft.block(label).spatial
    moved = [n for n in (extents.column, extents.row) if n is not None]
    order = [n for n in range(count) if n not in moved] + [n for n in moved if n < count]
    order += [n for n in range(count, len(loops)) if n not in moved] + [n for n in moved if n >= count]
    if order != list(range(len(loops))):
        s.reorder(*(loops[n] for n in order))
    if length < extents.longest:
        _reduced(draft, in_parts(s, handle, length), None, extents.column is not None)
        if extents.results > 1 and extents.longest < LEAST * length:
            spread_sums(s, handle, epilogue)
            return [label, *labels(after)]
        _reduced(draft, handle, epilogue, extents.results > 1)
    else:
        _reduced(draft, handle, epilogue, extents.column is not None)
    return [label, *labels(after)]


def _reduced(draft: Draft, handle: Handle, epilogue: Handle | None, by_columns: bool) -> None:
    """Schedule a reduction and its epilogue by `reduce_columns` or, unless `by_columns`, `reduce_rows`, with the
    numbers of threads as choices."""
    s = draft.schedule
    results, reduced = split_loops(s, handle)
    if by_columns:
        across, longest = min(WARP, s.extent(results[-1])), max(map(s.extent, reduced))
        down: Size = draft.choose([n for n in (2, 4, 8, 16, 32) if 2 * n <= longest] or [1], THREADS // across, "down")
        reduce_columns(s, handle, epilogue, (down, across))
        return
    vector = vector_along(s.program, [node_of(s, handle)])
    reduce_rows(s, handle, epilogue, choose_warps(draft, s.extent(reduced[-1]), vector), vector)


DIMENSIONS = ("thread_z", "thread_y", "thread_x")


def reduce_rows(s: Schedule, block: Handle, epilogue: Handle | None = None, warps: Size = 8, vector: int = 1) -> Handle:
    """Reduce each result by a block of `warps` warps: a part in each thread, combined as in `rows_on_threads`.

        i { k { C[i] += A[i, k] } }  i { D }
      ->
        i block_x { C.rf[k.1] thread_y, thread_x { k.0 { += A } };  C.rf.1 thread_y, tensorized;  C;  D }

    Neighbouring threads take neighbouring iterations of the innermost reduction loop, `vector` at once, with partial
    results in registers; or of several loops if it is short. A warp combines its parts by shuffles, and each thread
    those of the warps. A result without loops gets a loop of one iteration. Returns the loop over results. Without an
    epilogue a copy stores the result. Raises ScheduleError unless the block is a reduction with an implicit init whose
    loops over results come first. Requires an epilogue that reads only its result, elementwise.
    """
    result_loops, along = results_and_reduction(s, block, "reduce_rows")
    result_loops = result_loops or [s.add_unit_loop(along[0])]
    s.reverse_compute_at(_finished(s, block, epilogue, "local"), result_loops[-1])
    row = fused(s, result_loops)
    if len(along) > 1 and s.extent(along[-1]) < THREADS:
        _summed_together(s, block, row, along)
    else:
        sum_row(s, block, row, warps, vector)
    s.bind(row, "block_x")
    return row


def _summed_together(s: Schedule, block: Handle, row: Handle, along: Sequence[Handle]) -> None:
    """Reduce over the short loops `along`, each bound to a dimension of the threads of a block: fused loops would be
    hard for isl. Partial sums are combined along one dimension after another, the outermost first. At most WARP
    iterations in all stay as they are."""
    if prod(map(s.extent, along)) <= WARP:
        return
    tile, rounds = _thread_tile(s, along)
    s.reorder(*tile, *rounds)
    kinds = DIMENSIONS[-len(tile) :]
    sums = [block]
    for loop in reversed(tile):
        sums.append(s.rfactor(sums[-1], loop))
        s.set_scope(sums[-1], "shared")
    for across, stage in enumerate(sums[1:], 1):
        for loop, kind in zip(inside(s, stage, row), kinds[-across:], strict=False):
            s.bind(loop, kind)
    add_by_fewer(s, block)


def _thread_tile(s: Schedule, along: Sequence[Handle]) -> tuple[list[Handle], list[Handle]]:
    """Split the reduction loops `along`: return at most three loops over threads, the innermost, with at most THREADS
    iterations in all, and the loops that each thread runs."""
    tile: list[Handle] = []
    rounds: list[Handle] = []
    threads = THREADS
    for loop in reversed(along):
        extent = s.extent(loop)
        across = min(extent, threads)
        if extent == 1 or across < 2 or len(tile) == len(DIMENSIONS):
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
    """Reduce neighbouring results by neighbouring threads, each result by several threads.

        j { k { C[j] += A[k, j] } }  j { D }
      ->
        j.0 block_x { C.rf[k.1, j.1] k.1 thread_y { j.1 thread_x { k.0 { += A } } }
                      j.1 thread_x { k.1 { C[j.1] += C.rf } }
                      j.1 thread_x { D } }

    `threads` are the threads for one result, and the neighbouring results of a block, along the innermost loop over
    results. Returns the loop over blocks. Without an epilogue a copy stores the results. Requires an epilogue that
    reads only its result, elementwise. Raises ScheduleError unless the block is a reduction with an implicit init and a
    loop over results, and these loops come first.
    """
    result_loops, along = results_and_reduction(s, block, "reduce_columns")
    if not result_loops:
        raise refusal(s, block, "reduce_columns", "it has no loop over results")
    across, column = s.split(result_loops[-1], [None, threads[1]])
    longest = max(along, key=s.extent)
    rounds, down = s.split(longest, [None, threads[0]])
    s.reorder(across, down, column, *(rounds if loop is longest else loop for loop in along))
    out = _finished(s, block, epilogue, "shared")
    s.reverse_compute_at(out, across)
    partial_sums = s.rfactor(block, down)
    s.set_scope(partial_sums, "shared")
    sums = s.cache_write(partial_sums, "local") if _sets_all(node_of(s, partial_sums)) else None
    down, column = inside(s, partial_sums, across)[:2]
    if sums is not None:
        s.reverse_compute_at(sums, column)
    s.bind(down, "thread_y")
    s.bind(column, "thread_x")
    s.bind(inside(s, block, across)[0], "thread_x")
    for loop in inside(s, out, across)[-1:]:  # one element has no loop
        s.bind(loop, "thread_x")
    grid = fused(s, [*result_loops[:-1], across])
    s.bind(grid, "block_x")
    return grid


def _sets_all(block: Block) -> bool:
    """Return whether a reduction sets its only result in all iterations of its loops over results."""
    along = block.loops_of(reduce=True)
    return len(block.writes) == 1 and all(along & condition.form.variables() for condition in block.guard)


def _finished(s: Schedule, block: Handle, epilogue: Handle | None, scope: str) -> Handle:
    """Move a reduction's results to memory of a scope; return the block that reads them: the epilogue, or else a new
    copy."""
    if epilogue is None:
        return s.cache_write(block, scope)
    s.set_scope(block, scope)
    return epilogue
