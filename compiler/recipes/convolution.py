"""The rule of convolutions: their ways of reading an image, and the sizes of the register tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import gcd, prod
from typing import TypeAlias

from compiler.program.tree import Access, Block
from compiler.recipes.channels_last import channels_last
from compiler.recipes.depthwise import PixelTiles, by_pixels
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.elementwise import is_costly
from compiler.recipes.gradient import taps_in_registers
from compiler.recipes.images import (
    LastWindow,
    image_of,
    last_window,
    pointwise_image,
    share_of,
    strides_of_phases,
    tapped_dimensions,
    taps_of,
)
from compiler.recipes.implicit_gemm import (
    ConvolutionTiles,
    PointwiseTiles,
    by_phases,
    pointwise,
    pointwise_by_filters,
    tiled_convolution,
)
from compiler.recipes.sizes import evens, pixel_tile, pixels_of, product_tile, rows_of
from compiler.recipes.steps import sums_pairs
from compiler.schedule import Handle, Size

IDLE = {True: 1.2, False: 1.1}
"""The largest ratio of computed lanes to pixels for which pixels are in lanes; above it filters are. By whether the
filters are constant: others are packed in each call."""
FEWEST_TILES = 5
"""The fewest register tiles along filters for which packing a panel of pixels pays."""
FEW_PANELS = 2
"""The most panels of pixels for which filters larger than L2 are read once for each panel."""
MOST_UNROLLED = 180
"""The most multiplications of a register tile with all taps unrolled, so that rows of the result share loads: more code
compiles slowly. Twice as many if a tile covers the image, which is then read in place; half as many with a stride,
since rows share fewer loads."""
ROLLED = 1.3
"""The time with a loop over taps relative to unrolled taps: 1.15 to 1.6 by measurement."""

Nest: TypeAlias = Callable[[Draft, Block, Handle | None], Sequence[Handle]]
"""A function that schedules a convolution and its epilogue, None for a copy, with the choices of its sizes; it returns
the loops of which one may run on threads, the preferred first."""


def convolution(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of a convolution of one to three dimensions by register tiles, in each way of reading its image:

        E[o, c, r, q] += A[n, c, h + r, w + q] * B[n, o, h, w]        gradient of weights: `taps_in_registers`
        Y[n, h, w, k] += X[n, h*S + r, w*S + q, c] * W[k, c, r, q]    channels last, or depthwise: `channels_last`
        C[n, o, h, w] += X[n, o floordiv M + c, h.., w..] * W[o, c, r, q]    M below the lanes: `by_pixels`
        C[n, o, h, w] += X[n, c, (h - r) floordiv S, ..] * W[c, o, h mod S + r, ..]    transposed: `by_phases`
        C[n, o, h, w] += X[n, c, h*S, w*S] * W[o, c, 0, 0]            one tap: `pointwise`
        C[n, o, h, w] += X[n, c, h.., w..] * W[o, c, r, q]            any other, and one tap: `implicit_gemm`

    There is no matrix of windows. The epilogue is computed on finished tiles. Weights of an implicit GEMM are packed by
    chunks of channels, or beforehand. Yields nothing for other blocks.
    """
    yield from taps_in_registers(draft, label)
    block, program = draft.block(label), draft.schedule.program
    if not sums_pairs(block) or block.spatial < 3:
        return
    if (window := last_window(program, block)) is not None:
        yield _way("filters in lanes", label, partial(_channels_last, window=window))
    image = image_of(block)
    if image is not None and share_of(image) < draft.lanes(label) and _width(block) > 1:
        yield _way("by vectors of pixels", label, _by_pixels)
    if block.spatial > 5 or len(block.axes) != 2 * block.spatial - 1:
        return
    if any(block.axes[axis].size < 2 for axis in (1, block.spatial)):
        return
    if strides := strides_of_phases(block):
        yield _way("by phases of the stride", label, partial(_by_phases, strides=strides))
        return
    better, worse = _one_tap(draft, label)
    yield from better
    constant = block.reads[1].buffer in program.constants
    for beforehand in (constant, not constant):
        name = f"implicit gemm{', weights packed first' if beforehand else ''}"
        yield _way(name, label, partial(_implicit_gemm, beforehand=beforehand), any_index=True)
    yield from worse


def _way(name: str, label: str, nest: Nest, any_index: bool = False) -> Alternative:
    """Return the alternative that schedules the block `label` by `nest`; with `any_index` its epilogue may read at
    another index than it writes."""
    return Alternative(name, partial(_apply, label=label, nest=nest, any_index=any_index))


def _apply(draft: Draft, label: str, nest: Nest, any_index: bool) -> Sequence[str]:
    """Schedule the convolution `label` and its epilogue, if it has one, by the function `nest`, and make one of the
    loops that it returns parallel. The epilogue is the only elementwise reader, at the same index; with `any_index` it
    may read at another index, such as one that stores channels last. Return the labels of both, and of the blocks in
    `left` that were inlined meanwhile."""
    block, after = draft.block(label), draft.consumer(label)
    if any_index:
        readers = [reader for reader in draft.readers(label) if not reader.combiners and reader.label in draft.left]
        after = readers[0] if len(readers) == 1 and readers[0].spatial == block.spatial else None
    draft.parallel(*nest(draft, block, draft.handle(after)))
    inlined = [name for name in draft.left if name not in draft.schedule.program.blocks]
    return [*labels(block, after), *inlined]


def _channels_last(draft: Draft, block: Block, epilogue: Handle | None, window: LastWindow) -> Sequence[Handle]:
    """Apply `channels_last` to a convolution and its epilogue, None for a copy, with choices of its tile; return the
    loops of which one may be parallel, the preferred first. A depthwise tile uses at most a quarter of the registers
    for accumulators, since neighbouring tiles read common elements twice."""
    width, filters = (axis.size for axis in block.axes[block.spatial - 2 : block.spatial])
    lanes = min(draft.lanes(block.label), filters)
    sizes: tuple[Size, Size]
    if window.is_depthwise:
        options = range(1, min(width, draft.machine.registers // 4) + 1)
        best = min(options, key=lambda pixels: -(-width // pixels) * (pixels + 2))
        sizes = draft.choose(options, best, "pixels"), 1
    else:
        steps = prod(axis.size for axis in block.axes[block.spatial :])
        sizes = _register_tile(draft, width, -(-filters // lanes), steps, fewest=1)[:2]
    return channels_last(draft.schedule, draft.schedule.get_block(block.label), epilogue, window, sizes, lanes)


def _by_pixels(draft: Draft, block: Block, epilogue: Handle | None) -> Sequence[Handle]:
    s, lanes = draft.schedule, min(draft.lanes(block.label), 1 << (_width(block) - 1).bit_length())
    return [by_pixels(s, s.get_block(block.label), epilogue, _pixel_tiles(draft, block, lanes), lanes)]


def _width(block: Block) -> int:
    """Return the number of pixels in a row of the result, along the last spatial axis."""
    return block.axes[block.spatial - 1].size


def _one_tap(draft: Draft, label: str) -> tuple[list[Alternative], list[Alternative]]:
    """Return the alternatives with packed pixels, in lanes or broadcast, of C[n, o, h, w] += X[n, c, h*S, w*S] * W[o,
    c, 0, 0]: first a list of those to prefer to reading the image in place, then a list of the others. Both are empty
    for other blocks, and for a single pixel."""
    block = draft.block(label)
    image = pointwise_image(block)
    if image is None or (pixels := _pixels(block)) < 2:
        return [], []
    (filters,) = (access for access in block.reads if access is not image)
    constant = filters.buffer in draft.schedule.program.constants
    over_pixels = _way("by vectors over rows of pixels", label, partial(_pointwise, image=image))
    by_filters = _way("by vectors of filters, pixels packed", label, partial(_pointwise_by_filters, constant=constant))
    o, lanes = block.axes[1].size, draft.lanes(label)
    rows, vectors = product_tile(draft.machine, o, pixels, lanes)
    panels = -(-pixels // (vectors * lanes))
    fills = panels * vectors * lanes <= IDLE[constant] * pixels
    if tapped_dimensions(block):
        return ([over_pixels], []) if fills and o * taps_of(block) >= FEWEST_TILES * rows else ([], [over_pixels])
    if fills and panels > FEW_PANELS and 4 * o * block.axes[block.spatial].size > draft.machine.l2_bytes:
        # Each panel of pixels reads all filters, here from L3, or from memory where other programs fill L3.
        return [], [over_pixels, by_filters]
    first, second, step = (over_pixels, by_filters, rows) if fills else (by_filters, over_pixels, lanes)
    return ([first], [second]) if o >= FEWEST_TILES * step else ([], [first, second])


def _pixels(block: Block) -> int:
    """Return the number of pixels of a channel of the result along the dimensions after the last one with taps."""
    return prod(axis.size for axis in block.axes[2 + tapped_dimensions(block) : block.spatial])


def _pointwise(draft: Draft, block: Block, epilogue: Handle | None, image: Access) -> Sequence[Handle]:
    s, o, pixels = draft.schedule, block.axes[1].size, _pixels(block)
    lanes, before = min(draft.lanes(block.label), pixels), draft.producer(image.buffer)
    preferred, vectors = product_tile(draft.machine, o, pixels, lanes)
    fitting = {r for v in range(1, 5) for r in rows_of(draft.machine, v) if r <= o}
    rows = draft.choose([r for r in fitting if r in (2, 3, 4, 6, 7, 8, 10, 12, 14)] or [o], preferred, "rows")
    counts = range(2, min(4, -(-pixels // lanes)) + 1)
    tiles = PointwiseTiles(rows, draft.choose(counts or [1], vectors, "vectors"))
    along_taps = s.program.buffers[image.buffer].shape[1 : 2 + tapped_dimensions(block)]
    together = 4 * prod(along_taps) * 2 * lanes <= draft.machine.l2_bytes // 2
    scheduled = pointwise(s, s.get_block(block.label), epilogue, tiles, lanes, together)
    if before is not None and together and draft.is_temporary(before.label) and not is_costly(before):
        s.inline(s.get_block(before.label))  # a costly function would be computed for idle lanes too
    return [scheduled.images, scheduled.panels]


def _pointwise_by_filters(draft: Draft, block: Block, epilogue: Handle | None, constant: bool) -> Sequence[Handle]:
    o, c = block.axes[1].size, block.axes[block.spatial].size
    lanes = min(draft.lanes(block.label), o)
    most = draft.machine.l2_bytes // 4 // (4 * 2 * lanes)
    pixels, vectors, _ = _register_tile(draft, _pixels(block), -(-o // lanes), c)
    tiles = ConvolutionTiles(pixels, vectors, draft.choose(evens(c, lanes, min(c, 64), c), min(c, most), "channels"))
    handle = draft.schedule.get_block(block.label)
    scheduled = pointwise_by_filters(draft.schedule, handle, epilogue, tiles, lanes, constant)
    return [scheduled.panels, scheduled.rows]


def _implicit_gemm(draft: Draft, block: Block, epilogue: Handle | None, beforehand: bool) -> Sequence[Handle]:
    image, filters = image_of(block), block.axes[1].size
    share = filters if image is None else share_of(image)  # of filters that read the same channels
    lanes = draft.lanes(block.label)
    lanes = gcd(share, lanes) if share < filters else min(lanes, share)
    s, handle = draft.schedule, draft.schedule.get_block(block.label)
    scheduled = tiled_convolution(s, handle, epilogue, _tiles(draft, block, lanes, share), lanes, beforehand)
    return [scheduled.panels, scheduled.rows]


def _by_phases(draft: Draft, block: Block, epilogue: Handle | None, strides: Sequence[int]) -> Sequence[Handle]:
    o, w, c = (block.axes[axis].size for axis in (1, block.spatial - 1, block.spatial))
    s, lanes = draft.schedule, min(draft.lanes(block.label), o)
    pixels, vectors, _ = _register_tile(draft, -(-w // strides[-1]), -(-o // lanes), c * taps_of(block))
    tiles = ConvolutionTiles(pixels, vectors, c)
    scheduled = by_phases(s, s.get_block(block.label), epilogue, strides, tiles, lanes)
    return [scheduled.panels, scheduled.rows]


def _pixel_tiles(draft: Draft, block: Block, lanes: int) -> PixelTiles:
    """Add the choices of a tile for `by_pixels`, in vectors of `lanes` pixels, and return the tile. By default at most
    a quarter of the registers are accumulators, and the vectors of a tile divide those of a row."""
    count, most = -(-_width(block) // lanes), max(1, draft.machine.registers // 4)
    vectors = max(n for n in range(1, min(count, most) + 1) if count % n == 0)
    height = block.axes[block.spatial - 2].size if block.spatial > 3 else 1
    image, taps = image_of(block), taps_of(block)
    dense = image is not None and image.index[-1].coefficient(block.spatial - 1) == 1  # neighbours lie side by side
    unrolled = MOST_UNROLLED if dense else MOST_UNROLLED // 2

    def cost(rows: int) -> float:
        """Estimate the relative cost of tiles of `rows` rows: padded rows, the start of each tile, a loop over taps."""
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


def _register_tile(
    draft: Draft, w: int, vectors: int, steps: int, multiple: int = 0, fewest: int = 2
) -> tuple[Size, Size, int]:
    """Add the choices of pixels in a tile, for rows of w pixels and `steps` reduction steps, and of vectors of filters,
    from `fewest` to `vectors`, at most 4, divisors of `multiple` unless 0. Return the chosen pixels and vectors,
    perhaps parameters, and the default of vectors."""
    counts = [n for n in range(1, min(4, vectors) + 1) if multiple % n == 0]
    pixels, preferred = pixel_tile(draft.machine, w, counts, vectors, steps)
    chosen = draft.choose(pixels_of(w), pixels, "pixels")
    return chosen, draft.choose([n for n in counts if n >= fewest] or [1], preferred, "vectors"), preferred


def _tiles(draft: Draft, block: Block, lanes: int, share: int) -> ConvolutionTiles:
    """Add the choices of an implicit GEMM with vectors of `lanes` filters to the draft, and return its tiles; defaults
    fit registers and L1. `share` filters read the same channels."""
    o, w, c = (block.axes[axis].size for axis in (1, block.spatial - 1, block.spatial))
    taps, vectors = taps_of(block), -(-share // lanes)
    divisor = 0 if share == o else share // lanes
    pixels, filters, preferred = _register_tile(draft, w, vectors, c * taps, divisor)
    run = lanes // gcd(taps, lanes)  # so many channels of a filter are whole vectors, which are transposed at once
    chunks = evens(c, run, min(c, 4), 512)
    channels = max(1, min(c, 2 * draft.machine.l1_bytes // 5 // (4 * taps * preferred * lanes)))
    return ConvolutionTiles(pixels, filters, draft.choose(chunks, _whole(c, chunks, channels), "channels"))


def _whole(c: int, chunks: Sequence[int], most: int) -> int:
    """Return the largest of `chunks` above most / 4 and at most `most` that divides c, so that packing loops have no
    remainder; `most` itself if there is none."""
    return max((n for n in chunks if n <= most < 4 * n and c % n == 0), default=most)
