"""The alternatives of a convolution and their sizes: implicit GEMM, products over pixels, phases of strides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import gcd, prod

from compiler.affine.linear import Linear, variable
from compiler.program.tree import Access, Block
from compiler.recipes.depthwise import image_of, share_of
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.elementwise import is_costly
from compiler.recipes.implicit_gemm import (
    ConvolutionTiles,
    PointwiseTiles,
    by_phases,
    pointwise,
    pointwise_by_filters,
    pointwise_image,
    tapped_dimensions,
    taps_of,
    tiled_convolution,
)
from compiler.recipes.sizes import evens, pixel_tile, pixels_of, product_tile, rows_of
from compiler.schedule import Size

IDLE = {True: 1.2, False: 1.1}
"""The largest ratio of computed lanes to pixels for which pixels are in lanes; above it filters are. By whether the
filters are constant: others are packed in each call."""
FEWEST_TILES = 5
"""The fewest register tiles along filters for which packing a panel of pixels pays."""
FEW_PANELS = 2
"""The most panels of pixels for which filters larger than L2 are read once for each panel."""


def convolution(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of C[n, o, h, w] += X[n, c, h.., w..] * W[o, c, r, q], of one to three dimensions, by register
    tiles of pixels of a row times vectors of filters.

    There is no matrix of windows. The epilogue is computed on finished tiles. Weights are packed by chunks of channels,
    or beforehand. A convolution of one tap has the alternatives of `by_preference` too; a transposed convolution with a
    stride has only that of `by_phases`.
    """
    block = draft.block(label)
    if block.combiners != ("add",) or len(block.reads) != 2 or block.table is not None:
        return
    if not 3 <= block.spatial <= 5 or len(block.axes) != 2 * block.spatial - 1:
        return
    if any(block.axes[axis].size < 2 for axis in (1, block.spatial)):
        return
    if strides := strides_of_phases(block):
        yield Alternative("by phases of the stride", partial(_by_phases, label=label, strides=strides))
        return
    better, worse = by_preference(draft, label)
    yield from better
    constant = block.reads[1].buffer in draft.schedule.program.constants
    for beforehand in (constant, not constant):
        name = f"implicit gemm{', weights packed first' if beforehand else ''}"
        yield Alternative(name, partial(_implicit_gemm, label=label, beforehand=beforehand))
    yield from worse


def by_preference(draft: Draft, label: str) -> tuple[list[Alternative], list[Alternative]]:
    """Return the alternatives with packed pixels, in lanes or broadcast, of C[n, o, h, w] += X[n, c, h*S, w*S] * W[o,
    c, 0, 0]: those better than reading the image in place, and those worse. Both are empty for other blocks."""
    block = draft.block(label)
    image = pointwise_image(block)
    if image is None or (pixels := _pixels(block)) < 2:
        return [], []
    (filters,) = (access for access in block.reads if access is not image)
    constant = filters.buffer in draft.schedule.program.constants
    over_pixels = Alternative("by vectors over rows of pixels", partial(_pointwise, label=label, image=image))
    by_filters = Alternative(
        "by vectors of filters, pixels packed", partial(_pointwise_by_filters, label=label, constant=constant)
    )
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
    """Return the number of pixels of a channel of the result, along the dimensions without taps."""
    return prod(axis.size for axis in block.axes[2 + tapped_dimensions(block) : block.spatial])


def _pointwise(draft: Draft, label: str, image: Access) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    epilogue = draft.handle(after)
    lanes = min(draft.lanes(label), _pixels(block))
    tiles, before = _pointwise_tiles(draft, block, lanes), draft.producer(image.buffer)
    along_taps = s.program.buffers[image.buffer].shape[1 : 2 + tapped_dimensions(block)]
    together = 4 * prod(along_taps) * 2 * lanes <= draft.machine.l2_bytes // 2
    scheduled = pointwise(s, s.get_block(label), epilogue, tiles, lanes, together)
    if before is not None and together and draft.is_temporary(before.label) and not is_costly(before):
        s.inline(s.get_block(before.label))
    else:
        before = None  # costly functions would be computed for idle lanes too
    draft.parallel(scheduled.images, scheduled.panels)
    return labels(block, after, before)


def _pointwise_tiles(draft: Draft, block: Block, lanes: int) -> PointwiseTiles:
    """Add the choices of a register tile for `pointwise`; the default is the tile of least estimated work."""
    machine, pixels, o = draft.machine, _pixels(block), block.axes[1].size
    preferred, vectors = product_tile(machine, o, pixels, lanes)
    fitting = {r for v in range(1, 5) for r in rows_of(machine, v) if r <= o}
    rows = draft.choose([r for r in fitting if r in (2, 3, 4, 6, 7, 8, 10, 12, 14)] or [o], preferred, "rows")
    counts = range(2, min(4, -(-pixels // lanes)) + 1)
    return PointwiseTiles(rows, draft.choose(list(counts) or [1], vectors, "vectors"))


def _pointwise_by_filters(draft: Draft, label: str, constant: bool) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    epilogue = draft.handle(after)
    o, c = block.axes[1].size, block.axes[block.spatial].size
    lanes = min(draft.lanes(label), o)
    most = draft.machine.l2_bytes // 4 // (4 * 2 * lanes)
    pixels, vectors, _ = _register_tile(draft, _pixels(block), -(-o // lanes), c)
    tiles = ConvolutionTiles(pixels, vectors, draft.choose(evens(c, lanes, min(c, 64), c), min(c, most), "channels"))
    scheduled = pointwise_by_filters(s, s.get_block(label), epilogue, tiles, lanes, constant)
    draft.parallel(scheduled.panels, scheduled.rows)
    return labels(block, after)


def _implicit_gemm(draft: Draft, label: str, beforehand: bool) -> Sequence[str]:
    s, block = draft.schedule, draft.block(label)
    readers = [b for b in draft.readers(label) if not b.combiners and b.label in draft.left]
    after = readers[0] if len(readers) == 1 and readers[0].spatial == block.spatial else None
    image, filters = image_of(block), block.axes[1].size
    share = filters if image is None else share_of(image)  # of filters that read the same channels
    lanes = gcd(share, draft.lanes(label)) if share < filters else min(draft.lanes(label), share)
    epilogue, handle = draft.handle(after), s.get_block(label)
    scheduled = tiled_convolution(s, handle, epilogue, _tiles(draft, block, lanes, share), lanes, beforehand)
    draft.parallel(scheduled.panels, scheduled.rows)
    return labels(block, after)


def _by_phases(draft: Draft, label: str, strides: Sequence[int]) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    o, w, c = (block.axes[axis].size for axis in (1, block.spatial - 1, block.spatial))
    lanes = min(draft.lanes(label), o)
    pixels, vectors, _ = _register_tile(draft, -(-w // strides[-1]), -(-o // lanes), c * taps_of(block))
    epilogue = draft.handle(after)
    scheduled = by_phases(s, s.get_block(label), epilogue, strides, ConvolutionTiles(pixels, vectors, c), lanes)
    draft.parallel(scheduled.panels, scheduled.rows)
    return labels(block, after)


def _register_tile(draft: Draft, w: int, vectors: int, steps: int, multiple: int = 0) -> tuple[Size, Size, int]:
    """Add the choices of pixels in a tile, for rows of w pixels and `steps` reduction steps, and of vectors of filters,
    at most `vectors` and divisors of `multiple` unless 0; return both choices and the preferred number of vectors."""
    counts = [n for n in range(1, min(4, vectors) + 1) if multiple % n == 0]
    pixels, preferred = pixel_tile(draft.machine, w, counts, vectors, steps)
    chosen = draft.choose(pixels_of(w), pixels, "pixels")
    return chosen, draft.choose([n for n in counts if n > 1] or [1], preferred, "vectors"), preferred


def _tiles(draft: Draft, block: Block, lanes: int, share: int) -> ConvolutionTiles:
    """Add the choices of an implicit GEMM, whose defaults fit registers and L1; `share` filters read the same
    channels."""
    o, w, c = (block.axes[axis].size for axis in (1, block.spatial - 1, block.spatial))
    taps, vectors = taps_of(block), -(-share // lanes)
    divisor = 0 if share == o else share // lanes
    pixels, filters, preferred = _register_tile(draft, w, vectors, c * taps, divisor)
    run = lanes // gcd(taps, lanes)  # so many channels of a filter are whole vectors, which are transposed at once
    chunks = evens(c, run, min(c, 4), 512)
    channels = max(1, min(c, 2 * draft.machine.l1_bytes // 5 // (4 * taps * preferred * lanes)))
    return ConvolutionTiles(pixels, filters, draft.choose(chunks, _whole(c, chunks, channels), "channels"))


def _whole(c: int, chunks: Sequence[int], most: int) -> int:
    """Return the largest of `chunks` from most / 4 to `most` that divides c, so that packing loops have no remainder;
    `most` itself if there is none."""
    return max((n for n in chunks if n <= most < 4 * n and c % n == 0), default=most)


def strides_of_phases(block: Block) -> list[int]:
    """Return the strides along the image of a transposed convolution; empty for other blocks."""
    spatial = block.spatial
    image = next((a for a in block.reads if any(map(_quotient, a.index[2:]))), None)
    if image is None or not 3 <= spatial <= 5 or len(block.axes) != 2 * spatial - 1 or len(image.index) != spatial:
        return []
    if image.index[0] != variable(0) or image.index[1] != variable(spatial):
        return []
    strides = [_quotient(form) or 1 for form in image.index[2:]]
    plain = all(form.coefficient(2 + d) == 1 for d, form in enumerate(image.index[2:]) if strides[d] == 1)
    return strides if plain else []


def _quotient(form: Linear) -> int:
    """Return the divisor of an index with a floordiv; 0 without one. The index (h + 1) floordiv 2 - r has 2."""
    return next((atom.divisor for atom, _ in form.terms if not isinstance(atom, int) and not atom.is_mod), 0)
