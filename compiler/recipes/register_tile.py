"""Register tiles: rows of accumulators times vectors, over a reduction. The loop nest of products and convolutions, and
a rule for any reduction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from compiler.analysis.rows import streams
from compiler.recipes.draft import Alternative, Draft, in_order
from compiler.recipes.sizes import evens
from compiler.recipes.steps import in_vectors, node_of, side_by_side, split_loops
from compiler.schedule import Handle, Schedule, Size

Sizes: TypeAlias = Mapping[Handle, Sequence[Size]]
"""Map each loop to split to the sizes of its inner levels, outermost first."""


@dataclass(frozen=True)
class RegisterTile:
    """The loops around a register tile, of its reduction, and of the tile itself, each outermost first; the last loop
    of the tile is over lanes."""

    around: list[Handle]
    reduction: list[Handle]
    tile: list[Handle]

    def reorder(self, s: Schedule) -> None:
        """Reorder the nest: the loops around, then the reduction, then the tile."""
        s.reorder(*self.around, *self.reduction, *self.tile)


def register_tile(
    s: Schedule,
    around: Sequence[Handle],
    reduction: Sequence[Handle],
    tile: Sequence[Handle],
    sizes: Sizes,
    tail: str = "guard",
    reordered: bool = True,
) -> RegisterTile:
    """Split the loops of a block by `sizes` and order them: loops around a register tile, the reduction, the tile.

        m { n { k { C } } }       // around n, k, m, n, m; reduction k; tile m, n; sizes m: 8, 6; n: 4, 2, 16; k: 256
      ->
        n.0 { k.0 { m.0 { n.1 = 4 { m.1 = 8 { k.1 = 256 { m.2 = 6 { n.2 = 2 { n.3 = 16 { C } } } } } } } } }

    A split loop occurs in the three lists once for each of its levels, the outermost first; its last occurrence takes
    all remaining levels. Callers then move the copies of operands and the epilogue, and end with `accumulate`. Without
    `reordered` they call `reorder` themselves, after copies that depend on the splits. Source: multi-level tiles as in
    Ansor (OSDI 2020) and TVM's MultiLevelTiling.
    """
    levels = {loop: s.split(loop, [None, *inner], tail=tail) for loop, inner in sizes.items()}
    mentions = Counter((*around, *reduction, *tile))

    def taken(loop: Handle) -> list[Handle]:
        mentions[loop] -= 1
        handles = levels.setdefault(loop, [loop])
        count = 1 if mentions[loop] else len(handles)
        levels[loop] = handles[count:]
        return handles[:count]

    done = RegisterTile(*([h for loop in loops for h in taken(loop)] for loops in (around, reduction, tile)))
    if reordered:
        done.reorder(s)
    return done


def accumulate(s: Schedule, block: Handle, tile: RegisterTile, at: Handle | None = None) -> Handle:
    """Unroll and vectorize a register tile, and set it to zero before the reduction, or before the loop `at`. Return
    the block that sets it to zero."""
    in_vectors(s, tile.tile)
    return s.decompose_reduction(block, at or tile.reduction[0])


def vectors_of(vectors: Size, lanes: Size) -> list[Size]:
    """Return the sizes of the inner levels of a vectorized loop: the vectors, if there are several, and the lanes."""
    return [lanes] if vectors == 1 else [vectors, lanes]


def tiled_reduction(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of any reduction with spatial axes by register tiles, with the reduction split or not.

    The loop along which the result is contiguous is vectorized; the last two other spatial loops are tiled and
    unrolled.
    Source: multi-level tiling of Ansor (OSDI 2020), S spatial and R reduce.
    """
    block = draft.block(label)
    if not block.combiners or block.table is not None or all(axis.size == 1 for axis in block.axes[: block.spatial]):
        return
    if streams(block):  # what reads each element once gains nothing from tiles
        yield Alternative("as written", partial(in_order, label=label))
    for cut in (False, True):
        if not cut or any(axis.size > 1 and axis.is_reduce for axis in block.axes):
            yield Alternative(f"tiles {'SRSRS' if cut else 'SRS'}", partial(_tiled, label=label, cut=cut))


def _tiled(draft: Draft, label: str, cut: bool) -> Sequence[str]:
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


def result_column(s: Schedule, block: Handle, spatial: Sequence[Handle]) -> Handle | None:
    """Return the loop of `spatial` along which the result of a block is contiguous; None if there is none."""
    labels = side_by_side(s, block, node_of(s, block).writes[0])
    return next((h for h in spatial if s.label(h) in labels), None)
