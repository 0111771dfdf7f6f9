"""Register tiles, rows of accumulators times vectors: the loop nest of products, convolutions and other reductions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.recipes.steps import in_vectors, node_of, side_by_side
from compiler.schedule import Handle, Schedule, Size

Sizes: TypeAlias = Mapping[Handle, Sequence[Size]]
"""Map each loop to split to the sizes of its inner levels, outermost first."""


@dataclass(frozen=True)
class RegisterTile:
    """Loops around a register tile, of its reduction, and of the tile, each outermost first; the tile's last is over
    lanes."""

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
    """Split the loops of a block by `sizes`, order them and return them: loops around a register tile, reduction, tile.

        m { n { k { C } } }       // around n, k, m, n, m; reduction k; tile m, n; sizes m: 8, 6; n: 4, 2, 16; k: 256
      ->
        n.0 { k.0 { m.0 { n.1 = 4 { m.1 = 8 { k.1 = 256 { m.2 = 6 { n.2 = 2 { n.3 = 16 { C } } } } } } } } }

    A split loop occurs in the three lists once for each of its levels, the outermost first; its last occurrence takes
    all remaining levels. A loop that is not in `sizes` has one level. `tail`: the strategy of the splits that do not
    divide their loops, guard, partition or pad. Callers then move the copies of operands and the epilogue, and end with
    `accumulate`. Without `reordered` they call `reorder` themselves, after copies that depend on the splits. Source:
    multi-level tiles as in Ansor (OSDI 2020) and TVM's MultiLevelTiling.
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
    """Unroll and vectorize a register tile, and initialise its accumulators before the reduction, or before the loop
    `at`; if `at` is None, before the outermost loop of the reduction, which must not be empty. Return the block that
    initialises them."""
    in_vectors(s, tile.tile)
    return s.decompose_reduction(block, at or tile.reduction[0])


def vectors_of(vectors: Size, lanes: Size) -> list[Size]:
    """Return the sizes of the inner levels of a vectorized loop: the vectors and the lanes, without the vectors if they
    are the constant 1."""
    return [lanes] if vectors == 1 else [vectors, lanes]


def result_column(s: Schedule, block: Handle, spatial: Sequence[Handle]) -> Handle | None:
    """Return the first loop of `spatial` along which the result of a block is contiguous; None if there is none."""
    labels = side_by_side(s, block, node_of(s, block).writes[0])
    return next((h for h in spatial if s.label(h) in labels), None)
