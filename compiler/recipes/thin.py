"""Thin products, a large matrix times few vectors: the matrix is read once, in its layout, without packing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from compiler.analysis.order import step
from compiler.program.tree import Access, Block, Program
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.packing import ROWS, require_sizes
from compiler.recipes.register_tile import accumulate, register_tile, vectors_of
from compiler.recipes.steps import axes_of, in_vectors, refusal, sums_pairs, target_of
from compiler.schedule import Handle, Schedule, Size

FEW = 4
"""The most vectors of a thin product; for more, `packed_product` packs the matrix."""


@dataclass(frozen=True)
class Thin:
    """A thin product. matrix: the position of the operand with more elements. long: an axis that only the matrix has.
    short: the number of the axis over vectors, None for one vector. along, level: whether the matrix, and the vectors,
    are contiguous along the reduction. few: the number of vectors."""

    matrix: int
    long: int
    short: int | None
    along: bool
    level: bool
    few: int


def thin_product(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of C[.., n, m] += W[.., n, k] * x[.., m, k] for at most FEW m that do not pack the matrix W: dot
    products along k if W is contiguous along k, else rows of W times scalars added to the results. Yields nothing for
    other blocks, for dot products shorter than two vectors, and for rows shorter than one or with results that lie
    apart."""
    block = draft.block(label)
    thin = find_thin(draft.schedule.program, block)
    if thin is None:
        return
    k, lanes, few = block.axes[-1].size, draft.lanes(label), thin.few
    if thin.along:
        if few <= FEW and k >= 2 * lanes:
            yield Alternative("thin, by dot products", partial(_dots, label=label, thin=thin))
        return
    if few > FEW or few * block.axes[thin.long].size < lanes:
        return
    if step(draft.schedule.program, block.writes[0], thin.long) != 1:
        return  # elements that lie apart would be moved one by one for each row of the matrix
    matrix_bytes = 4 * block.axes[thin.long].size * k  # read in one iteration of the loops around it
    first = matrix_bytes <= draft.machine.l1_bytes // 2
    for resident in (first, not first):
        name = f"thin, {'in registers' if resident else 'by streams'}"
        yield Alternative(name, partial(_streams, label=label, thin=thin, resident=resident))


def find_thin(program: Program, block: Block) -> Thin | None:
    """Return the axes of a thin product, with any number of vectors up to the extent of `long`. None for a block that
    is no sum, with an init, of two operands over one reduce axis, read without conditions, or over several axes of
    vectors, or whose matrix is contiguous neither along that nor along an axis that it alone has."""
    if not sums_pairs(block) or not block.has_init:
        return None
    if [axis.is_reduce for axis in block.axes].count(True) != 1 or any(access.where for access in block.reads):
        return None
    k = len(block.axes) - 1
    steps = [_steps(program, block, access) for access in block.reads]
    sizes = [prod(block.axes[axis].size for axis in moved) for moved in steps]
    matrix = 0 if sizes[0] >= sizes[1] else 1
    matrix_steps, vector_steps = steps[matrix], steps[1 - matrix]
    shorts = [axis for axis in vector_steps if axis not in matrix_steps]
    longs = [axis for axis in matrix_steps if axis not in vector_steps]
    if not longs or len(shorts) > 1 or k not in matrix_steps or k not in vector_steps:
        return None
    along = matrix_steps[k] == 1
    long = longs[-1] if along else next((axis for axis in longs if matrix_steps[axis] == 1), None)
    if long is None or any(block.axes[axis].size > block.axes[long].size for axis in shorts):
        return None
    few = block.axes[shorts[0]].size if shorts else 1
    return Thin(matrix, long, shorts[0] if shorts else None, along, vector_steps[k] == 1, few)


def _steps(program: Program, block: Block, access: Access) -> dict[int, int | None]:
    """Map each axis of extent above 1 that an access depends on to its stride in elements; None if the stride
    varies."""
    return {axis: step(program, access, axis) for axis in sorted(axes_of(access)) if block.axes[axis].size > 1}


def _dots(draft: Draft, label: str, thin: Thin) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    loops = s.get_loops(handle := s.get_block(label))
    if not thin.level:
        _turned(draft, label, thin)
    columns = min((1, 2, 3), key=lambda c: (-(-thin.few // c) * c * (1 + 1 / (4 * c)), c))
    rows = 8 if columns * 8 + columns + 1 <= draft.machine.registers else 4
    short = None if thin.short is None else loops[thin.short]
    outer = dots(s, handle, loops[thin.long], short, ThinTile(rows, columns, lanes))
    draft.parallel(outer)
    return [label]


def _turned(draft: Draft, label: str, thin: Thin) -> None:
    """Add a copy of the vectors of the thin product `label` in a layout contiguous along the reduction."""
    s, block = draft.schedule, draft.block(label)
    access, k = block.reads[1 - thin.matrix], len(block.axes) - 1
    handle = s.get_block(label)
    s.cache_read(handle, access.buffer)
    deep = [k in form.variables() for form in access.index]
    copy = draft.block(label).reads[1 - thin.matrix].buffer
    s.transform_layout(
        handle,
        copy,
        lambda *index: [i for last in (False, True) for i, is_k in zip(index, deep, strict=True) if is_k == last],
    )


def _streams(draft: Draft, label: str, thin: Thin, resident: bool) -> Sequence[str]:
    s, block = draft.schedule, draft.block(label)
    lanes, loops = draft.lanes(label), s.get_loops(handle := s.get_block(label))
    few, long, extent = thin.few, loops[thin.long], block.axes[thin.long].size
    fitting = (draft.machine.registers // 2) // few if resident else 2 // few
    tile = ThinTile(max(1, min(fitting, -(-extent // lanes))), few, ROWS)
    short = None if thin.short is None else loops[thin.short]
    outer_part = None
    if not resident and extent >= draft.threads * lanes > lanes:  # each thread has columns of its own
        share = -(-extent // (draft.threads * lanes)) * lanes
        outer_part, long = s.split(long, [None, share])
    outer = streams(s, handle, long, short, tile, lanes, resident)
    if (
        draft.threads > 1
        and s.label(outer) != s.label(s.get_loops(handle)[-1])
        and (resident or outer_part is not None)
    ):
        draft.parallel(outer_part or outer)
    return [label]


@dataclass(frozen=True)
class ThinTile:
    """The register tile of a thin product: `rows` along the matrix (vectors in `streams`, elements in `dots`),
    `columns` of the few vectors, and the `depth` along the reduction."""

    rows: int
    columns: int
    depth: int


def dots(s: Schedule, block: Handle, long: Handle, short: Handle | None, tile: ThinTile) -> Handle:
    """Multiply rows of a matrix with few vectors, both contiguous along the reduction: a register tile of sums by
    vectors of `depth` lanes, which are added up at the end.

        n { k { C[n] += W[n, k] * x[k] } }       // 4 rows, depth 8
      ->
        n.0 { k.0 { n.1 = 4 unrolled { k.1 = 8 vectorized { C.rf[n, k.1] += W * x } } }
              n.1 = 4 unrolled { k.1 = 8 unrolled { C[n] += C.rf[n, k.1] } } }

    `long` is the loop over rows of the matrix, `short` that over vectors, None for a single one. LLVM makes shuffles of
    the last sums. Returns the outermost loop. Requires one loop over the reduction, the innermost one. Source: the
    kernels of BLIS for dotxf, Van Zee and van de Geijn 2015. Raises ScheduleError for a size of the tile below 1, and
    if these loops are not around the reduction.
    """
    k, before = _around(s, block, long, short, tile)
    outer = [long] if short is None else [long, short]
    sizes = _cut(s, {long: tile.rows, **({} if short is None else {short: tile.columns}), k: tile.depth})
    tiled = register_tile(s, [*before, *outer], [k], [*outer, k], sizes)
    partial = s.rfactor(block, tiled.tile[-1])
    s.transform_layout(partial, target_of(s, partial), lambda lane, *dims: (*dims, lane))
    *_, chunk = (around := s.get_loops(partial))[: -len(tiled.tile)]
    in_vectors(s, around[-len(tiled.tile) :])
    s.decompose_reduction(partial, chunk)
    for loop in s.get_loops(block)[-len(tiled.tile) :]:
        s.unroll(loop)
    return s.get_loops(block)[0]


def streams(
    s: Schedule, block: Handle, long: Handle, short: Handle | None, tile: ThinTile, lanes: int, resident: bool = False
) -> Handle:
    """Multiply few vectors with a matrix that is contiguous along the results: `depth` rows of the matrix at a time are
    added to the results, each of them a stream that the processor fetches ahead.

        n { k { C[n] += x[k] * W[k, n] } }       // depth 8, 8 lanes, 2 vectors of them
      ->
        C = 0;  k.0 { n.0 { k.1 = 8 unrolled { n.1 = 2 unrolled { n.2 = 8 vectorized { C += x * W } } } } }

    With `resident`, for a matrix that fits a cache, the reduction is inside a tile whose results stay in registers.
    `long` is the loop along which the matrix is contiguous, `short` that over vectors, None for a single one; `lanes`:
    the elements of a vector register. Returns the outermost loop. Requires one loop over the reduction, the innermost
    one. Source: the kernels of BLIS for axpyf. Raises ScheduleError for a size of the tile below 1, and if these loops
    are not around the reduction.
    """
    k, before = _around(s, block, long, short, tile)
    rows = [] if short is None else [short]
    sizes = {long: vectors_of(tile.rows, min(lanes, s.extent(long))), **_cut(s, dict.fromkeys(rows, tile.columns))}
    if resident:
        accumulate(s, block, register_tile(s, [*before, long, *rows], [k], [*rows, long], sizes))
    else:
        sizes |= _cut(s, {k: tile.depth})
        tiled = register_tile(s, [*before, k, long, *rows], [], [k, *rows, long], sizes)
        accumulate(s, block, tiled, tiled.around[len(before)])
    return s.get_loops(block)[0]


def _around(
    s: Schedule, block: Handle, long: Handle, short: Handle | None, tile: ThinTile
) -> tuple[Handle, list[Handle]]:
    """Return the loop over the reduction, and the other loops without `long` and `short`. Raises ScheduleError for a
    size of the tile below 1, and if `long` and `short` are not around the reduction."""
    require_sizes(s, block, "thin product", rows=tile.rows, columns=tile.columns, depth=tile.depth)
    *spatial, k = s.get_loops(block)
    tile_labels = {s.label(loop) for loop in (long, short) if loop is not None}
    if s.label(k) in tile_labels or not tile_labels <= {s.label(loop) for loop in spatial}:
        raise refusal(s, block, "thin product", "its rows and columns are not loops around the reduction")
    return k, [loop for loop in spatial if s.label(loop) not in tile_labels]


def _cut(s: Schedule, sizes: Mapping[Handle, int]) -> dict[Handle, list[Size]]:
    """Return, for each loop, a list of its size, limited by the loop's extent, as `register_tile` takes it."""
    return {loop: [min(size, s.extent(loop))] for loop, size in sizes.items()}
