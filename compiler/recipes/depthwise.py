"""Depthwise convolutions, and grouped convolutions of few channels: vectors of pixels, one filter at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from compiler.affine.linear import Quotient
from compiler.program.tree import Access, Block
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.implicit_gemm import taps_of
from compiler.recipes.register_tile import register_tile, vectors_of
from compiler.recipes.steps import cut, in_vectors, nest, node_of, own_loops, refusal, target_of, vectorize_rows
from compiler.schedule import Handle, Schedule, Size

MOST_UNROLLED = 180
"""The most multiplications of a register tile with all taps unrolled, so that rows of the result share loads: more code
compiles slowly. Twice as many if a tile covers the image, which is then read in place; half as many with a stride,
since rows share fewer loads."""
ROLLED = 1.3
"""The time with a loop over taps relative to unrolled taps: 1.15 to 1.6 by measurement."""


def vectors_of_pixels(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the schedule with pixels in lanes of C[n, o, h, w] += X[n, o floordiv M + c, h.., w..] * W[o, c, r, q],
    with M below the lanes of a vector."""
    block = draft.block(label)
    if block.combiners != ("add",) or block.table is not None:
        return
    image = image_of(block)
    if image is None or share_of(image) >= draft.lanes(label) or _pixels(block) < 2:
        return
    yield Alternative("by vectors of pixels", partial(_apply, label=label))


def _pixels(block: Block) -> int:
    """Return the number of pixels in a row of the result."""
    return int(block.axes[block.spatial - 1].size)


def _apply(draft: Draft, label: str) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    lanes = min(draft.lanes(label), 1 << (_pixels(block) - 1).bit_length())
    epilogue, handle = draft.handle(after), s.get_block(label)
    draft.parallel(by_pixels(s, handle, epilogue, _tiles(draft, block, lanes), lanes))
    return [label, *labels(after)]


def _tiles(draft: Draft, block: Block, lanes: int) -> PixelTiles:
    """Add the choices of a tile for `by_pixels`. By default at most a quarter of the registers are accumulators, and
    the vectors of a tile divide those of a row."""
    count, most = -(-_pixels(block) // lanes), max(1, draft.machine.registers // 4)
    vectors = max(n for n in range(1, min(count, most) + 1) if count % n == 0)
    height = block.axes[block.spatial - 2].size if block.spatial > 3 else 1
    image, taps = image_of(block), taps_of(block)
    dense = image is not None and image.index[-1].coefficient(block.spatial - 1) == 1  # neighbours lie side by side
    unrolled = MOST_UNROLLED if dense else MOST_UNROLLED // 2

    def cost(rows: int) -> float:
        """The relative cost of tiles of `rows` rows: padded rows, the start of each tile, and a loop over taps."""
        rolled = taps * rows * vectors > unrolled
        return -(-height // rows) * rows * (1 + 1 / (rows * vectors)) * (ROLLED if rolled else 1)

    fitting = range(1, min(height, max(1, most // vectors)) + 1)
    fits_one_tile = dense and height * vectors <= 2 * most and count == vectors
    rows = height if fits_one_tile and taps * height * vectors <= 2 * MOST_UNROLLED else min(fitting, key=cost)
    high = draft.choose([n for n in (1, 2, 3, 4, 6, 7, 8, 14) if n <= height] or [1], rows, "rows")
    wide = draft.choose([n for n in range(1, 5) if n <= count], vectors, "vectors")
    tall, across = draft.schedule.value(high), draft.schedule.value(wide)
    in_one_tile = tall >= height and across >= count
    return PixelTiles(high, wide, taps * tall * across <= (2 if in_one_tile and dense else 1) * unrolled)


@dataclass(frozen=True)
class PixelTiles:
    """The register tile of `by_pixels`, constants or parameters: `rows` of the result, and `vectors` of pixels of each
    row. With `unrolled` all taps are unrolled, else only those along a row."""

    rows: Size
    vectors: Size
    unrolled: bool = True


def by_pixels(s: Schedule, block: Handle, epilogue: Handle | None, tiles: PixelTiles, lanes: int = 16) -> Handle:
    """Schedule a convolution C[n, o, h, w] += X[n, o floordiv M + c, h*S + r, w*S + q] * W[o, c, r, q] with vectors
    along w.

        n { o { h { w { c { r { q { C } } } } } } }  n { o { h { w { D(C) } } } }
      ->
        n { o.0 { copy the channels of a group with their border, columns w mod S apart
          o.1 { h.0 { w.0 { C = 0
            c { r { q unrolled { h.1 = rows unrolled { w.1 = vectors unrolled { lanes vectorized { C } } } } } }
            D } } } } }

    The reduction has no conditions and only contiguous loads: with a stride S, columns of one remainder mod S are
    adjacent. `epilogue`, an elementwise consumer, is applied to each tile; without one the tile is copied out. The
    image has one to three dimensions. Returns the loop over groups of filters. Requires loops in the order of
    `te.nn.conv2d`, and filters that read different channels. Source: direct depthwise convolution as in XNNPACK and
    oneDNN; the copy is TVM's decompose_padding.
    """
    (images, channel, *loops), spatial = nest(s, block, "by_pixels", fewest=4), node_of(s, block).spatial
    image = image_of(node_of(s, block))
    if image is None or len(loops) < spatial or spatial < 3:
        raise refusal(s, block, "by_pixels", "it is no convolution whose filters read some channels alone")
    if epilogue is None:
        epilogue = s.cache_write(block)
    share, step = share_of(image), image.index[-1].coefficient(spatial - 1) or 1
    groups, *filters = s.split(channel, [None, share]) if share > 1 else [channel]
    along, reduction = loops[: spatial - 2], loops[spatial - 2 :]
    sizes = dict(zip(along[-2:], [[tiles.rows], vectors_of(tiles.vectors, lanes)][-len(along) :], strict=True))
    tile = register_tile(s, [images, groups, *filters, *along], reduction, along[-2:], sizes, "pad", reordered=False)
    c, *taps = reduction
    outside = tile.around[-len(sizes) :]
    pad = None
    if step > 1 or not tiles.unrolled or any(s.extent(loop) > 1 for loop in outside):
        bordered = any(access.where for access in node_of(s, block).reads if access.buffer == image.buffer)
        pad = s.pad(block, image.buffer) if bordered else s.cache_read(block, image.buffer, "global")
    tile.reorder(s)
    s.reverse_compute_at(epilogue, outside[-1])
    if pad is not None:
        s.compute_at(pad, groups)
        if step > 1:
            s.transform_layout(pad, target_of(s, pad), lambda *i: (*i[:-1], i[-1] % step, i[-1] // step))
        _copy_rows(s, pad, step, lanes)
    vectorize_rows(s, epilogue, lanes)
    for loop in reduction:
        if s.extent(loop) == 1 or loop is taps[-1] or (tiles.unrolled and loop is not c):
            s.unroll(loop)
    in_vectors(s, tile.tile)
    return groups


def image_of(block: Block) -> Access | None:
    """Return the read of the image in a depthwise or grouped convolution, where the filter, axis 1, indexes the
    channel; None for other blocks."""
    last = block.spatial - 1
    images = [access for access in block.reads if access.index and last in access.index[-1].variables()]
    if block.spatial < 3 or len(images) != 1 or len(block.reads) != 2 or len(images[0].index) != block.spatial:
        return None
    moving = [form.variables() for form in images[0].index]
    channels_alone = 1 in moving[1] and all(1 not in axes for d, axes in enumerate(moving) if d != 1)
    steps = images[0].index[-1].coefficient(last)
    return images[0] if channels_alone and steps is not None and steps > 0 else None


def share_of(image: Access) -> int:
    """Return the number of filters that read the same channels."""
    divided = [atom for atom, _ in image.index[1].terms if isinstance(atom, Quotient) and not atom.is_mod]
    return divided[0].divisor if divided else 1


def _copy_rows(s: Schedule, copy: Handle, step: int, lanes: int) -> None:
    """Vectorize a copy of rows with a border in pieces: the left border, vectors without a mask, and the end. Columns
    of each remainder modulo `step` are copied together."""
    source = node_of(s, copy).reads[0]
    width = s.program.buffers[source.buffer].shape[-1]
    border = -min(0, source.index[-1].constant)
    column = own_loops(s, copy)[-1]
    if step > 1:
        column, part = s.split(column, [None, step])
        s.reorder(part, column)
        s.unroll(part)
    left_columns, end = -(-border // step), width + border
    pieces = (
        _pieces(left_columns, end // step, -(-end // step), lanes)
        if step > 1
        else [left_columns, left_columns + width // lanes * lanes]
    )
    for piece in _partitioned(s, column, pieces):
        vectors = cut(s, piece, lanes)
        if len(vectors) > 1 and s.extent(vectors[0]) <= FEW:
            s.unroll(vectors[0])
        s.vectorize(vectors[-1])


def _pieces(left: int, inner_end: int, end: int, lanes: int) -> list[int]:
    """Return the positions at which to cut the loop over the columns of one remainder: after the `left` border, after
    whole vectors, after ever shorter powers of two up to `inner_end`, where the shortest remainder ends, and at `end`.
    Masked lanes would be gathered one by one."""
    at = left + max(0, inner_end - left) // lanes * lanes
    cuts = [left, at]
    while at < inner_end:
        at += 1 << ((inner_end - at).bit_length() - 1)
        cuts.append(at)
    return [*cuts, end]


def _partitioned(s: Schedule, loop: Handle, positions: list[int]) -> list[Handle]:
    """Partition a loop at the positions inside its range; return the loops over the first piece, the last, and so
    on."""
    pieces = []
    for position in sorted(set(positions), reverse=True):
        if 0 < position < s.extent(loop):
            loop, tail = s.partition(loop, position)
            pieces.append(tail)
    return [loop, *pieces]


FEW = 8
"""The most vectors of a piece of a row whose copy is unrolled."""
