"""Composite for depthwise and grouped convolutions: vectors of pixels, one filter at a time."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.affine.linear import Quotient
from compiler.program.tree import Access, Block
from compiler.schedule.library.loops import cut, in_vectors, nest, node_of, own_loops, refusal, target_of
from compiler.schedule.schedule import Handle, Schedule, Size


@dataclass(frozen=True)
class PixelTiles:
    """The register tile of a convolution by pixels, constants or parameters: `rows` of the image, and `vectors` of
    pixels of each. With `unrolled` all taps are unrolled, not only those along a row."""

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

    No condition is left inside, and all loads are of neighbours: with a stride S, columns of one remainder lie side by
    side. `epilogue`, an elementwise consumer, works on each tile; without one the tile is copied out. The image has one
    to three dimensions. Gives the loop over groups of filters. Requires loops in the order of `te.nn.conv2d`, and that
    a filter reads some channels alone. Source: direct depthwise convolution as in XNNPACK and oneDNN; the copy is TVM's
    decompose_padding.
    """
    loops, spatial = nest(s, block, "by_pixels", fewest=4), node_of(s, block).spatial
    image = image_of(node_of(s, block))
    if image is None or len(loops) < spatial + 2 or spatial < 3:
        raise refusal(s, block, "by_pixels", "it is no convolution whose filters read some channels alone")
    if epilogue is None:
        epilogue = s.cache_write(block)
    share, step = share_of(image), image.index[-1].coefficient(spatial - 1) or 1
    groups, *filters = s.split(loops[1], [None, share]) if share > 1 else [loops[1]]
    row: list[Handle] = []
    rows: list[Handle] = []
    if spatial > 3:
        rows, row = ([h] for h in s.split(loops[spatial - 2], [None, tiles.rows], tail="pad"))
    count = [] if tiles.vectors == 1 else [tiles.vectors]
    pixels, *vectors = s.split(loops[spatial - 1], [None, *count, lanes], tail="pad")
    access = next(access for access in node_of(s, block).reads if access.buffer == image.buffer)
    in_one_tile = step == 1 and tiles.unrolled and s.extent(pixels) == 1 and all(s.extent(loop) == 1 for loop in rows)
    pad = None
    if not in_one_tile:
        pad = s.pad(block, image.buffer) if access.where else s.cache_read(block, image.buffer, "global")
    outer, (c, *taps) = loops[2 : spatial - 2] if spatial > 3 else [], loops[spatial:]
    s.reorder(loops[0], groups, *filters, *outer, *rows, pixels, c, *taps, *row, *vectors)
    s.reverse_compute_at(epilogue, pixels)
    if pad is not None:
        s.compute_at(pad, groups)
        if step > 1:
            s.transform_layout(pad, target_of(s, pad), lambda *i: (*i[:-1], i[-1] % step, i[-1] // step))
        _copy_rows(s, pad, step, lanes)
    epilogue_loops = own_loops(s, epilogue)
    in_vectors(s, [*epilogue_loops[:-1], *cut(s, epilogue_loops[-1], lanes)])
    for loop in [c, *taps]:
        if s.extent(loop) == 1 or loop is taps[-1] or (tiles.unrolled and loop is not c):
            s.unroll(loop)
    in_vectors(s, [*row, *vectors])
    return groups


def image_of(block: Block) -> Access | None:
    """The read of a convolution's image by a block whose filters, the second axis, read some channels each; None for
    other blocks."""
    last = block.spatial - 1
    images = [access for access in block.reads if access.index and last in access.index[-1].variables()]
    if block.spatial < 3 or len(images) != 1 or len(block.reads) != 2 or len(images[0].index) != block.spatial:
        return None
    moving = [form.variables() for form in images[0].index]
    apart = 1 in moving[1] and all(1 not in axes for d, axes in enumerate(moving) if d != 1)
    steps = images[0].index[-1].coefficient(last)
    return images[0] if apart and steps is not None and steps > 0 else None


def share_of(image: Access) -> int:
    """How many filters read the same channels."""
    divided = [atom for atom, _ in image.index[1].terms if isinstance(atom, Quotient) and not atom.is_mod]
    return divided[0].divisor if divided else 1


def _copy_rows(s: Schedule, copy: Handle, step: int, lanes: int) -> None:
    """Copy rows with a border by vectors: the border on the left, whole vectors without a mask, and the end."""
    source = node_of(s, copy).reads[0]
    width = s.program.buffers[source.buffer].shape[-1]
    border = -min(0, source.index[-1].constant)
    column = own_loops(s, copy)[-1]
    if step > 1:
        column, part = s.split(column, [None, step])
        s.reorder(part, column)
        s.unroll(part)
    left, end = -(-border // step), width + border
    pieces = _pieces(left, end // step, -(-end // step), lanes) if step > 1 else [left, left + width // lanes * lanes]
    for piece in _partitioned(s, column, pieces):
        vectors = cut(s, piece, lanes)
        if len(vectors) > 1 and s.extent(vectors[0]) <= FEW:
            s.unroll(vectors[0])
        s.vectorize(vectors[-1])


def _pieces(left: int, inner_end: int, end: int, lanes: int) -> list[int]:
    """Where to cut a row whose columns lie apart: after the border on the left; vectors, then shorter and shorter ones,
    up to the column that is the last in each part; and where the last part ends. Lanes with a mask would be gathered
    one by one."""
    at = left + max(0, inner_end - left) // lanes * lanes
    cuts = [left, at]
    while at < inner_end:
        at += 1 << ((inner_end - at).bit_length() - 1)
        cuts.append(at)
    return [*cuts, end]


def _partitioned(s: Schedule, loop: Handle, positions: list[int]) -> list[Handle]:
    """A loop cut at the positions that are inside it."""
    pieces = []
    for position in sorted(set(positions), reverse=True):
        if 0 < position < s.extent(loop):
            loop, tail = s.partition(loop, position)
            pieces.append(tail)
    return [loop, *pieces]


FEW = 8
"""The most vectors of a row that are copied by unrolled code."""
