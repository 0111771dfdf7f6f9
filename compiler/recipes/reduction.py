"""Reductions: in parts on several threads, by register tiles, and in vectors of partial results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.analysis.order import step
from compiler.analysis.rows import streams
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft, in_order
from compiler.recipes.elementwise import vectors_in_turn
from compiler.recipes.register_tile import register_tile, result_column
from compiler.recipes.sizes import evens
from compiler.recipes.steps import at_most, by_axis, in_vectors, nest, node_of, split_loops
from compiler.recipes.thin import find_thin
from compiler.schedule import Handle, Schedule, Size

FEW = 8
"""The number of register tiles of a thread below which threads take parts of the reduction instead."""
ROWS = 8
"""The most rows of a register tile of partial results."""
PARTS = 8
"""The most parts for each thread; the loop to split has at least one iteration for each such part."""
LEAST = 256
"""The fewest iterations of the reduction loop to split in parts."""
SHORT = 48
"""The most vectors of a reduction for which combining partial results costs more than the latency it hides."""


def sums_in_parts(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the schedule of a long reduction to few results in parts that run on threads, each into separate partial
    results (rfactor). Yield nothing for one thread; for a block with a table, without an init or without a spatial
    axis; if the first reduce axis is shorter than LEAST, or than PARTS for each thread; if the results fill FEW
    register tiles for each thread; and if threads can take rows of a thin matrix instead.

    Source: the rule AddRfactor of Ansor (Zheng et al., OSDI 2020); split-K of the BLAS.
    """
    block = draft.block(label)
    first = next((axis.size for axis in block.axes if axis.is_reduce), 0)
    if draft.threads < 2 or not block.has_init or not block.spatial or block.table is not None or first < LEAST:
        return
    thin = find_thin(draft.schedule.program, block)
    if thin is not None and block.axes[thin.long].size >= draft.threads * draft.lanes(label):
        return  # threads take parts of its results: the matrix is read in rows
    result_count = prod(axis.size for axis in block.axes[: block.spatial])
    tile = ROWS * draft.lanes(label) if _has_vectors(draft, block) else 1
    if result_count < FEW * draft.threads * tile and first >= PARTS * draft.threads:
        yield Alternative("in parts", partial(_apply, label=label))


def _has_vectors(draft: Draft, block: Block) -> bool:
    """Return whether an operand that varies along the reduction is contiguous along a spatial axis, as in a product,
    but not in a row sum."""
    program, axes = draft.schedule.program, range(len(block.axes))
    summed = [access for access in block.reads if any(step(program, access, d) != 0 for d in axes[block.spatial :])]
    return any(step(program, access, d) == 1 for access in summed for d in axes[: block.spatial])


def _apply(draft: Draft, label: str) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    handle = s.get_block(label)
    spatial, (first, *inner_reduction) = split_loops(s, handle)
    column = result_column(s, handle, spatial)
    name = None if column is None else s.label(column)
    parts = draft.choose([n * draft.threads for n in (1, 2, 4, 8)], draft.threads, "parts")
    part, inner = s.split(first, [parts, None])
    s.reorder(part, *spatial, inner, *inner_reduction)
    partial_sums = s.rfactor(handle, part)
    _tile(draft, partial_sums, name)
    s.parallel(s.get_loops(partial_sums)[0])
    _add_up(draft, handle, lanes)
    return [label]


def _tile(draft: Draft, block: Handle, column: str | None) -> None:
    """Tile the partial results, whose outermost loop is over the parts, in registers: at most ROWS iterations of the
    innermost other spatial loop, unrolled, of one vector each along the loop labelled `column`; of scalars if there is
    no such loop."""
    s, label = draft.schedule, draft.schedule.label(block)
    (part, *spatial), reduction = split_loops(s, block)
    vector = next((h for h in spatial if s.label(h) == column), None)
    row = next((h for h in reversed(spatial) if h is not vector), None)
    limits = {handle: size for handle, size in ((row, ROWS), (vector, draft.lanes(label))) if handle is not None}
    sizes = {handle: [min(size, s.extent(handle))] for handle, size in limits.items()}
    tile = register_tile(s, [part, *spatial], reduction, list(sizes), sizes)
    for handle, inner in zip(sizes, tile.tile, strict=True):
        (s.vectorize if handle is vector else s.unroll)(inner)


def _add_up(draft: Draft, block: Handle, lanes: int) -> None:
    """Vectorize by `lanes` the block that adds up the parts, if its result is contiguous along the last loop over
    results; else leave it."""
    s = draft.schedule
    spatial, reduction = split_loops(s, block)
    column = result_column(s, block, spatial)
    if column is None or column is not spatial[-1]:
        return
    outer, vector = s.split(column, [None, min(lanes, s.extent(column))])
    s.reorder(*spatial[:-1], outer, *reduction, vector)
    s.vectorize(vector)


def tiled_reduction(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of any reduction: by register tiles, with the reduction split or not, if it has spatial axes, but
    first as written if it reads each element once; and in vectors of partial results, along a reduce axis along which
    all operands are contiguous or constant: first for a reduction by a region. Yields nothing for other blocks. A
    gather gets no register tiles and is not scheduled as written.

    Source: multi-level tiling of Ansor (OSDI 2020), S spatial and R reduce."""
    block, axis = draft.block(label), _summed_axis(draft, draft.block(label))
    partial_sums = [] if axis is None else [Alternative("partial sums", partial(_partial_sums, label=label, axis=axis))]
    if has_region(block):  # of which LLVM makes no vectors
        yield from partial_sums
    if block.table is None and block.combiners and any(axis.size > 1 for axis in block.axes[: block.spatial]):
        if streams(block):  # what reads each element once gains nothing from tiles
            yield Alternative("as written", partial(in_order, label=label))
        for cut in (False, True):
            if not cut or any(axis.size > 1 and axis.is_reduce for axis in block.axes):
                yield Alternative(f"tiles {'SRSRS' if cut else 'SRS'}", partial(_tile_all, label=label, cut=cut))
    if not has_region(block):
        yield from partial_sums


def has_region(block: Block) -> bool:
    """Return whether a block reduces by a region, not by named combiners."""
    return any(not isinstance(combiner, str) for combiner in block.combiners)


def _summed_axis(draft: Draft, block: Block) -> int | None:
    """Return the number of the last reduce axis of at least two vectors along which all operands are contiguous or
    constant. None without one, for a block that reads nothing, for several named combiners, and for a named one over at
    most SHORT vectors in all."""
    joint = has_region(block)
    if not block.reads or not (len(block.combiners) == 1 or joint):
        return None
    program, lanes, axes = draft.schedule.program, draft.lanes(block.label), range(block.spatial, len(block.axes))
    long = [
        n for n in axes if block.axes[n].size >= 2 * lanes and all(step(program, a, n) in (0, 1) for a in block.reads)
    ]
    is_long = joint or prod(block.axes[n].size for n in axes) > SHORT * lanes
    return long[-1] if long and is_long else None


def _tile_all(draft: Draft, label: str, cut: bool) -> Sequence[str]:
    """Tile a reduction: vectorize the loop along which the result is contiguous, tile and unroll the last two other
    spatial loops; with `cut` split the first reduction loop too. A block without loops of both kinds stays as it is.
    Return its label in a list."""
    s, lanes = draft.schedule, draft.lanes(label)
    handle = s.get_block(label)
    spatial, reduce = split_loops(s, handle)
    if not spatial or not reduce:
        return [label]
    column = result_column(s, handle, spatial)
    sizes: dict[Handle, Sequence[Size]] = {} if column is None else {column: [min(lanes, s.extent(column))]}
    unrolled = [loop for loop in spatial if loop is not column]
    for loop in unrolled[-2:]:
        sizes[loop] = [draft.choose([r for r in range(1, 9) if r <= s.extent(loop)], 4, "tile")]
    around = [*unrolled, *([] if column is None else [column])]
    tile = around[max(0, len(unrolled) - 2) :]
    if cut:
        extent = s.extent(reduce[0])
        sizes[reduce[0]] = [draft.choose(evens(extent, 1, min(extent, 4), 512), 64, "chunk")]
        around.insert(1, reduce[0])
    tiled = register_tile(s, around, reduce, tile, sizes)
    for loop in tiled.tile[:-1] if column is not None else tiled.tile:
        s.unroll(loop)
    if column is not None:
        s.vectorize(tiled.tile[-1])
    s.decompose_reduction(handle, tiled.reduction[0])
    draft.parallel(tiled.around[0])
    return [label]


def _partial_sums(draft: Draft, label: str, axis: int) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    block = s.get_block(label)
    inner = by_axis(s, block)[axis][-1]
    outer = [loop for loop in s.get_loops(block) if s.label(loop) != s.label(inner)]
    if outer:
        s.reorder(*outer, inner)
    row_reduction(s, block, lanes, vectors_in_turn(draft, s.extent(inner), lanes))
    return [label]


def row_reduction(s: Schedule, block: Handle, lanes: int = 16, vectors: Size = 4) -> Handle:
    """Reduce along the innermost loop into `vectors` vectors of partial results, and combine these at the end.

        k = 1024 { S += X(k) }                   // 16 lanes, 4 vectors
      ->
        k.0 = 16 { k.1.0 = 4 unrolled { k.1.1 = 16 vectorized { S.rf[k.1] += X } } }
        k.1 = 64 unrolled { S += S.rf[k.1] }

    Several vectors hide the latency of the combination. vectors: at most those of the loop are taken; a parameter is
    used as it is. Returns the block of the partial results. Requires a reduction with an implicit init, whose innermost
    loop alone binds its reduce axis and is longer than `lanes`. Raises ScheduleError for a block without loops, or
    whose loop cannot be split so.
    """
    inner = nest(s, block, "row_reduction")[-1]
    extent = s.extent(inner)
    count = at_most(vectors, -(-extent // lanes))
    rounds, chosen = s.split(inner, [None, s.multiple(count, lanes)])
    names = [s.label(rounds), s.label(chosen)]
    partial = s.rfactor(block, chosen)
    by_name = {s.label(h): h for h in s.get_loops(partial)}
    unrolled, vector = s.split(by_name[names[1]], [count, lanes])
    if names[0] in by_name and s.extent(by_name[names[0]]) > 1:
        s.reorder(by_name[names[0]], unrolled, vector)
    in_vectors(s, [unrolled, vector])
    if has_region(node_of(s, block)):
        _combine_by_halves(s, block, lanes)
    s.unroll(s.get_loops(block)[-1])
    return partial


def _combine_by_halves(s: Schedule, block: Handle, lanes: int) -> None:
    """Combine partial results, which a block reduces by a region, by vectors of `lanes`, then of half of them, until
    two are left: LLVM makes a reduction in a register of a named combiner only, and a chain of scalars of a region.

        k = 64 { S = f(S, S.rf[k]) }             // 16 lanes
      ->
        k.0 = 4 unrolled { k.1 = 16 vectorized { T[k.1] = f(T[k.1], S.rf[16*k.0 + k.1]) } }
        k.0 = 2 unrolled { k.1 = 8 vectorized { U[k.1] = f(U[k.1], T[8*k.0 + k.1]) } }
        ...;  k = 2 { S = f(S, V[k]) }
    """
    while lanes >= 2:
        loop = s.get_loops(block)[-1]
        if s.extent(loop) > lanes:
            outer, inner = s.split(loop, [None, lanes])
            names = [s.label(outer), s.label(inner)]
            by_name = {s.label(h): h for h in s.get_loops(s.rfactor(block, inner))}
            in_vectors(s, [by_name[name] for name in names])
        lanes //= 2
