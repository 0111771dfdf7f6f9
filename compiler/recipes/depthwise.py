"""Depthwise convolutions, and grouped convolutions of few channels: vectors of pixels, one filter at a time."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.recipes.images import image_of, share_of
from compiler.recipes.register_tile import register_tile, vectors_of
from compiler.recipes.steps import cut, in_vectors, nest, node_of, own_loops, refusal, target_of, vectorize_rows
from compiler.schedule import Handle, Schedule, Size


@dataclass(frozen=True)
class PixelTiles:
    """The register tile of `by_pixels`, constants or parameters: `rows` of the result, and `vectors` of pixels of each
    row. With `unrolled` all taps are unrolled, else only those along a row."""

    rows: Size
    vectors: Size
    unrolled: bool = True


def by_pixels(s: Schedule, block: Handle, epilogue: Handle | None, tiles: PixelTiles, lanes: int = 16) -> Handle:
    """Schedule C[n, o, h, w] += X[n, o floordiv M + c, h*S + r, w*S + q] * W[o, c, r, q] with vectors along w.

        n { o { h { w { c { r { q { C } } } } } } }  n { o { h { w { D(C) } } } }
      ->
        n { o.0 { copy the channels of a group with their border, columns w mod S apart
          o.1 { h.0 { w.0 { C = 0
            c { r { q unrolled { h.1 = rows unrolled { w.1 = vectors unrolled { lanes vectorized { C } } } } } }
            D } } } } }

    The reduction has no conditions and only contiguous loads: with a stride S, columns of one remainder mod S are
    adjacent. `epilogue`, an elementwise consumer, is applied to each tile; without one the tile is copied out. The
    image has one to three dimensions. Returns the loop over groups of filters. Requires loops in the order of
    `te.nn.conv2d`; raises ScheduleError for other blocks than depthwise and grouped convolutions. `lanes`: the elements
    of a vector. Source: direct depthwise convolution as in XNNPACK and oneDNN; the copy is TVM's decompose_padding.
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


def _copy_rows(s: Schedule, copy: Handle, step: int, lanes: int) -> None:
    """Vectorize a copy of rows with a border in pieces: the left border, vectors of `lanes` without a mask, and the
    end. Columns of each remainder modulo the convolution's stride `step` are copied together. `copy`: the block that
    copies, whose target is the image inside its border."""
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
    Masked lanes would be gathered one by one. Positions may repeat; `_partitioned` skips those, and those outside the
    loop."""
    at = left + max(0, inner_end - left) // lanes * lanes
    cuts = [left, at]
    while at < inner_end:
        at += 1 << ((inner_end - at).bit_length() - 1)
        cuts.append(at)
    return [*cuts, end]


def _partitioned(s: Schedule, loop: Handle, positions: list[int]) -> list[Handle]:
    """Partition a loop at the positions inside its range, each once; without one the loop stays whole. Return the loop
    over the first piece, then those over the later pieces, the last piece first."""
    pieces = []
    for position in sorted(set(positions), reverse=True):
        if 0 < position < s.extent(loop):
            loop, tail = s.partition(loop, position)
            pieces.append(tail)
    return [loop, *pieces]


FEW = 8
"""The most vectors of a piece of a row whose copy is unrolled."""
