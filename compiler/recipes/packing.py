"""Packing of operands in panels, by vectors, with transposes in registers."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.recipes.steps import cut, in_vectors, node_of, own_loops, refusal, side_by_side
from compiler.schedule import Handle, Schedule, Size


def pack_panels(
    s: Schedule, block: Handle, buffer: str, axis: int, size: Size, at: Handle | None, lanes: int
) -> Handle:
    """Pack an operand in panels of `size` indices of the axis number `axis` of a block, in vectors of `lanes` elements:
    inside the loop `at`, or before the nest if None.

        for b { C reads K[b, n, d] }             // axis n, size 64, at b
      ->
        for b { alloc K.pack[1, n.0, d, 64];  K.pack[0, n.0, d, n.1] = K[b, 64*n.0 + n.1, d];  C reads K.pack }

    Elements beyond the operand are zero. Returns the block that copies. Raises ScheduleError if the axis does not index
    exactly one dimension of the operand, or the block does not read it. Source: the packing of BLIS, Van Zee and van de
    Geijn 2015.
    """
    node = node_of(s, block)
    access = next((a for a in node.reads if a.buffer == buffer), None)
    dims = [d for d, form in enumerate(access.index) if axis in form.variables()] if access else []
    if access is None or len(dims) != 1:
        name = node.axes[axis].label
        raise refusal(s, block, "pack_panels", f"axis '{name}' does not index '{buffer}' in one dimension")
    tiles = [size if d in dims else 1 for d in range(len(access.index))]
    return pack(s, block, buffer, tiles, (), at, lanes)


def pack(
    s: Schedule,
    block: Handle,
    buffer: str,
    tiles: Sequence[Size],
    order: Sequence[int],
    at: Handle | None,
    lanes: int,
) -> Handle:
    """Pack the operand `buffer` by vectors of `lanes`, with the tiles and the order of `Schedule.pack`: the part that
    an iteration of the loop `at` reads, or if `at` is None all of it before the nest, several rows at a time. Return
    the block that packs."""
    copy = s.pack(block, buffer, tiles, order)
    if at is not None:
        s.compute_at(copy, at)
    else:
        _read_rows_together(s, copy)
    copy_in_vectors(s, copy, lanes)
    return copy


def copy_in_vectors(s: Schedule, block: Handle, lanes: int) -> None:
    """Vectorize a copy along the loop that is contiguous in the target, or the innermost if none is; along another that
    is contiguous in the source, with a transpose in registers of all rows, or of `lanes` rows at a time if there are
    more than MOST_ROWS (of half MOST_ROWS if that is less).

        r = 8 { T[k, r] = A[r, k] }              // k = 64 around it, 16 lanes
      ->
        k.0 = 4 { r = 8 unrolled { k.1 = 16 vectorized { T[k, r] = A[r, k] } } }

    A block of several reads, or without loops of its own, stays as it is. Raises ScheduleError if `lanes` is not
    positive. Source: packing in BLIS and OpenBLAS.
    """
    require_sizes(s, block, "copy_in_vectors", lanes=lanes)
    node, copy_loops = node_of(s, block), own_loops(s, block)
    if not copy_loops or len(node.reads) != 1:
        return
    source, target = (side_by_side(s, block, access) for access in (node.reads[0], node.writes[0]))
    inner = next((h for h in copy_loops if s.label(h) in target), copy_loops[-1])
    along = next((h for h in copy_loops if s.label(h) in source), None)
    if along is None or along is inner:
        loops = cut(s, inner, lanes)
        in_vectors(s, loops if s.extent(loops[0]) <= FEW else loops[-1:])
        return
    rows = s.split(inner, [None, min(lanes, MOST_ROWS // 2)]) if s.extent(inner) > MOST_ROWS else [inner]
    outer, vector = s.split(along, [None, min(lanes, s.extent(along))])
    s.reorder(*(outer if h is along else h for h in copy_loops if h is not inner), *rows, vector)
    in_vectors(s, [rows[-1], vector])


def _read_rows_together(s: Schedule, block: Handle) -> None:
    """Fill all panels from ROWS rows before the next rows are read: the reads are ROWS streams, which the processor
    prefetches, instead of one piece of each row. Copies stay that transpose, have just ROWS rows or no multiple of
    them, or fewer than three loops.

        n.0 { k { n.1 { T[n.0, k, n.1] = B[k, 64*n.0 + n.1] } } }
      ->
        k.0 { n.0 { k.1 = 8 { n.1 { T[n.0, k, n.1] = B[k, 64*n.0 + n.1] } } } }
    """
    node, loops = node_of(s, block), own_loops(s, block)
    if len(loops) < 3 or len(node.reads) != 1 or s.extent(loops[-2]) % ROWS or s.extent(loops[-2]) == ROWS:
        return
    panel, row, lane = loops[-3:]
    if all(s.label(lane) in side_by_side(s, block, access) for access in (node.reads[0], node.writes[0])):
        outer, inner = s.split(row, [None, ROWS])
        s.reorder(outer, panel, inner)


ROWS = 8
"""The number of rows that are read together: a processor prefetches at least as many streams."""
MOST_ROWS = 32
"""The most rows that are transposed in registers at once."""
FEW = 4
"""The most vectors of a row whose copy is unrolled."""


def require_sizes(s: Schedule, block: Handle, composite: str, **sizes: int) -> None:
    """Raise ScheduleError, with `composite` as the step, for the first of the named `sizes` that is not positive; do
    nothing if all are."""
    for name, size in sizes.items():
        if size < 1:
            raise refusal(s, block, composite, f"{name}={size} is not positive")


def even(extent: int, tile: int, register: int) -> int:
    """Return the number of register tiles in a cache tile of at most `tile` elements, if an extent is evenly divided
    among the fewest cache tiles: 13 register tiles of 8 in 3 cache tiles of 5, 5 and 3. Requires a positive extent; a
    cache tile has at least one register tile of `register` elements.

    >>> strata.recipes.even(100, 48, 8)
    5
    """
    count = -(-extent // register)
    groups = -(-count // max(1, tile // register))
    return -(-count // groups)
