"""Depthwise convolutions, and grouped ones of few channels, by vectors of pixels (library.by_pixels)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.schedule import library
from compiler.schedule.library import PixelTiles

MOST_UNROLLED = 180
"""The most multiplications of a register tile with all its taps unrolled, so that rows of the result share what they
load: more code takes longer to compile. A tile that holds the whole image may have twice as many: it is read as it lies
then, without a copy. With a stride half as many: rows share less."""
ROLLED = 1.3
"""What a loop over the taps costs, by measurement: 1.15 to 1.6 times the time of the same tile with all unrolled."""


def vectors_of_pixels(draft: Draft, label: str) -> Iterator[Alternative]:
    """C[n, o, h, w] += X[n, o floordiv M + c, h.., w..] * W[o, c, r, q], where fewer filters than a vector has lanes
    read the same channels."""
    block = draft.block(label)
    if block.combiners != ("add",) or block.table is not None:
        return
    image = library.image_of(block)
    if image is None or library.share_of(image) >= draft.lanes(label) or _pixels(block) < 2:
        return
    yield Alternative("by vectors of pixels", partial(_apply, label=label))


def _pixels(block: Block) -> int:
    """The pixels of a row of the result."""
    return int(block.axes[block.spatial - 1].size)


def _apply(draft: Draft, label: str) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    lanes = min(draft.lanes(label), 1 << (_pixels(block) - 1).bit_length())
    epilogue = s.get_block(after.label) if after is not None else None
    draft.parallel(library.by_pixels(s, s.get_block(label), epilogue, _tiles(draft, block, lanes), lanes))
    return [label, *([after.label] if after is not None else [])]


def _is_dense(block: Block) -> bool:
    """Whether neighbours of a row of the image are of neighbours of the result: with a stride these lie apart."""
    image = library.image_of(block)
    return image is not None and image.index[-1].coefficient(block.spatial - 1) == 1


def _tiles(draft: Draft, block: Block, lanes: int) -> PixelTiles:
    """At most a quarter of the registers are accumulators, of rows that have no vector left over."""
    count, most = -(-_pixels(block) // lanes), max(1, draft.machine.registers // 4)
    vectors = max(n for n in range(1, min(count, most) + 1) if count % n == 0)
    height = block.axes[block.spatial - 2].size if block.spatial > 3 else 1
    taps, dense = prod(axis.size for axis in block.axes[block.spatial + 1 :]), _is_dense(block)
    unrolled = MOST_UNROLLED if dense else MOST_UNROLLED // 2

    def cost(rows: int) -> float:
        """Rows that are computed, each with its share of a tile's start, and dearer where taps are in a loop."""
        rolled = taps * rows * vectors > unrolled
        return -(-height // rows) * rows * (1 + 1 / (rows * vectors)) * (ROLLED if rolled else 1)

    fitting = range(1, min(height, max(1, most // vectors)) + 1)
    whole = dense and height * vectors <= 2 * most and count == vectors
    rows = height if whole and taps * height * vectors <= 2 * MOST_UNROLLED else min(fitting, key=cost)
    high = draft.choose([n for n in (1, 2, 3, 4, 6, 7, 8, 14) if n <= height] or [1], rows, "rows")
    wide = draft.choose([n for n in range(1, 5) if n <= count], vectors, "vectors")
    tall, across = draft.schedule.value(high), draft.schedule.value(wide)
    in_one_tile = tall >= height and across >= count
    return PixelTiles(high, wide, taps * tall * across <= (2 if in_one_tile and dense else 1) * unrolled)
