"""Composites for thin products, a large matrix times few vectors: the matrix is read once, as it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.schedule.library.loops import in_vectors, refusal, target_of
from compiler.schedule.library.packing import require_sizes
from compiler.schedule.schedule import Handle, Schedule


@dataclass(frozen=True)
class ThinTile:
    """The register tile of a thin product: `rows` along the matrix, in vectors of lanes or one by one, `columns` of the
    few vectors, and the `depth` of the reduction."""

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

    `long` is the loop over rows of the matrix, `short` that over vectors, if there are several. LLVM makes shuffles and
    additions of the last sums. Gives the outermost loop. Requires one loop over the reduction, the innermost one.
    Source: the kernels of BLIS for dotxf, Van Zee and van de Geijn 2015.
    """
    k, before = _around(s, block, long, short, tile)
    heads, tiled = _tiled(s, [(long, tile.rows), (short, tile.columns)])
    chunk, lane = s.split(k, [None, min(tile.depth, s.extent(k))])
    s.reorder(*before, *heads, chunk, *tiled, lane)
    partial = s.rfactor(block, lane)
    s.transform_layout(partial, target_of(s, partial), lambda lane, *dims: (*dims, lane))
    *_, chunk = (around := s.get_loops(partial))[: -len(tiled) - 1]
    in_vectors(s, around[-len(tiled) - 1 :])
    s.decompose_reduction(partial, chunk)
    for loop in s.get_loops(block)[-len(tiled) - 1 :]:
        s.unroll(loop)
    return s.get_loops(block)[0]


def streams(
    s: Schedule, block: Handle, long: Handle, short: Handle | None, tile: ThinTile, lanes: int, resident: bool = False
) -> Handle:
    """Multiply few vectors with a matrix that is contiguous along the results: `depth` rows of the matrix at a time
    are added to the results, each of them a stream that the processor fetches ahead.

        n { k { C[n] += x[k] * W[k, n] } }       // depth 8, 8 lanes, 2 vectors of them
      ->
        C = 0;  k.0 { n.0 { k.1 = 8 unrolled { n.1 = 2 unrolled { n.2 = 8 vectorized { C += x * W } } } } }

    With `resident`, for a matrix that is in a cache, the reduction runs inside a tile whose results stay in registers.
    `long` is the loop along which the matrix is contiguous, `short` that over vectors, if there are several. Gives the
    outermost loop. Requires one loop over the reduction, the innermost one. Source: the kernels of BLIS for axpyf.
    """
    k, before = _around(s, block, long, short, tile)
    vector = min(lanes, s.extent(long))
    panel, *columns = s.split(long, [None, *([tile.rows] if tile.rows > 1 else []), vector])
    heads, rows = _tiled(s, [(short, tile.columns)])
    if resident:
        s.reorder(*before, panel, *heads, k, *rows, *columns)
        in_vectors(s, [*rows, *columns])
        s.decompose_reduction(block, k)
    else:
        chunk, step = s.split(k, [None, min(tile.depth, s.extent(k))])
        s.reorder(*before, chunk, panel, *heads, step, *rows, *columns)
        in_vectors(s, [step, *rows, *columns])
        s.decompose_reduction(block, chunk)
    return s.get_loops(block)[0]


def _around(
    s: Schedule, block: Handle, long: Handle, short: Handle | None, tile: ThinTile
) -> tuple[Handle, list[Handle]]:
    """The loop over the reduction, and those around a block that are in no tile."""
    require_sizes(s, block, "thin product", rows=tile.rows, columns=tile.columns, depth=tile.depth)
    *spatial, k = s.get_loops(block)
    taken = {s.label(loop) for loop in (long, short) if loop is not None}
    if s.label(k) in taken or not taken <= {s.label(loop) for loop in spatial}:
        raise refusal(s, block, "thin product", "its rows and columns are not loops around the reduction")
    return k, [loop for loop in spatial if s.label(loop) not in taken]


def _tiled(s: Schedule, loops: Sequence[tuple[Handle | None, int]]) -> tuple[list[Handle], list[Handle]]:
    """Loops split by the sizes of a tile: those over tiles, and those inside one."""
    pairs = [s.split(loop, [None, min(size, s.extent(loop))]) for loop, size in loops if loop is not None]
    return [outer for outer, _ in pairs], [inner for _, inner in pairs]
