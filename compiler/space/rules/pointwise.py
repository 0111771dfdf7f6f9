"""Convolutions of one tap as products over vectors of pixels (library.pointwise)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.sizes import evens, pixel_tile, pixels_of, register_tile, rows_of
from compiler.schedule import library
from compiler.schedule.library import ConvolutionTiles, PointwiseTiles

IDLE = {True: 1.2, False: 1.1}
"""By how much the lanes of all vectors of pixels may exceed the pixels, by whether the filters never change: beyond,
filters go into the lanes. Vectors of pixels want them packed, which each call does where they change."""
FEWEST_TILES = 5
"""So many register tiles at least read the pixels that have been packed."""


def by_preference(draft: Draft, label: str) -> tuple[list[Alternative], list[Alternative]]:
    """The ways of C[n, o, h, w] += X[n, c, h*S, w*S] * W[o, c, 0, 0] over pixels that are packed, vectors of them or of
    filters: those that are better than reading the image where it lies, and those that are not. None for other
    blocks."""
    block = draft.block(label)
    if library.pointwise_image(block) is None or _pixels(block) < 2:
        return [], []
    over_pixels = Alternative("by vectors over rows of pixels", partial(_over_pixels, label=label))
    by_filters = Alternative("by vectors of filters, pixels packed", partial(_by_filters, label=label))
    o, lanes = block.axes[1].size, draft.lanes(label)
    rows, vectors = register_tile(draft.machine, o, _pixels(block), lanes)
    idle = IDLE[_has_constant_filters(draft, block)]
    if library.tapped_dimensions(block):
        suits = _lanes_of(block, vectors, lanes) <= idle * _pixels(block) and o * _taps(block) >= FEWEST_TILES * rows
        return ([over_pixels], []) if suits else ([], [over_pixels])
    if _lanes_of(block, vectors, lanes) <= idle * _pixels(block):
        return ([over_pixels], [by_filters]) if o >= FEWEST_TILES * rows else ([], [over_pixels, by_filters])
    return ([by_filters], [over_pixels]) if o >= FEWEST_TILES * lanes else ([], [by_filters, over_pixels])


def _pixels(block: Block) -> int:
    """The pixels of a channel of the result, along the dimensions without taps."""
    return prod(axis.size for axis in block.axes[2 + library.tapped_dimensions(block) : block.spatial])


def _lanes_of(block: Block, vectors: int, lanes: int) -> int:
    """The lanes of all tiles of so many vectors of pixels."""
    return -(-_pixels(block) // (vectors * lanes)) * vectors * lanes


def _taps(block: Block) -> int:
    return prod(axis.size for axis in block.axes[block.spatial + 1 :])


def _has_constant_filters(draft: Draft, block: Block) -> bool:
    filters = next(access for access in block.reads if access != library.pointwise_image(block))
    return filters.buffer in draft.schedule.program.constants


def _over_pixels(draft: Draft, label: str) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    epilogue = s.get_block(after.label) if after is not None else None
    lanes = min(draft.lanes(label), _pixels(block))
    tiles, together, before = _tiles(draft, block, lanes), _fits(draft, block, lanes), _before(draft, block)
    done = library.pointwise(s, s.get_block(label), epilogue, tiles, lanes, together)
    if together and before is not None:
        s.inline(s.get_block(before.label))
    draft.parallel(done.images, done.panels)
    return [b.label for b in (block, after, before if together else None) if b is not None]


def _before(draft: Draft, block: Block) -> Block | None:
    """The elementwise block that computes the image, for this alone: a copy reads each pixel once. None where there is
    no such block, and where a function in it would be computed for idle lanes too."""
    image = library.pointwise_image(block)
    makers = [draft.block(label) for label in draft.left if image and image.buffer in _written(draft.block(label))]
    if len(makers) != 1 or makers[0].combiners or makers[0].table is not None or library.is_costly(makers[0]):
        return None
    alone = draft.is_temporary(makers[0].label) and draft.readers(makers[0].label) == [block]
    return makers[0] if alone else None


def _written(block: Block) -> set[str]:
    return {access.buffer for access in block.writes}


def _fits(draft: Draft, block: Block, lanes: int) -> bool:
    """Whether half of L2 holds a panel of two vectors of pixels along all dimensions with taps."""
    image = library.pointwise_image(block)
    assert image is not None
    sizes = draft.schedule.program.buffers[image.buffer].shape[1 : 2 + library.tapped_dimensions(block)]
    return 4 * prod(sizes) * 2 * lanes <= draft.machine.l2_bytes // 2


def _by_filters(draft: Draft, label: str) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    epilogue = s.get_block(after.label) if after is not None else None
    o, c = block.axes[1].size, block.axes[block.spatial].size
    lanes = min(draft.lanes(label), o)
    most = draft.machine.l2_bytes // 4 // (4 * 2 * lanes)
    vectors = -(-o // lanes)
    pixels, filters = pixel_tile(draft.machine, _pixels(block), range(1, min(4, vectors) + 1), vectors, c)
    tiles = ConvolutionTiles(
        draft.choose(pixels_of(_pixels(block)), pixels, "pixels"),
        draft.choose(range(min(2, vectors), min(4, vectors) + 1), filters, "vectors"),
        draft.choose(evens(c, lanes, min(c, 64), c), min(c, most), "channels"),
    )
    constant = _has_constant_filters(draft, block)
    done = library.pointwise_by_filters(s, s.get_block(label), epilogue, tiles, lanes, constant)
    draft.parallel(done.panels, done.rows)
    return [label, *([after.label] if after is not None else [])]


def _tiles(draft: Draft, block: Block, lanes: int) -> PointwiseTiles:
    """The open choices: the search begins at the register tile of least work."""
    machine, pixels, o = draft.machine, _pixels(block), block.axes[1].size
    wanted, vectors = register_tile(machine, o, pixels, lanes)
    fitting = {r for v in range(1, 5) for r in rows_of(machine, v) if r <= o}
    rows = draft.choose([r for r in fitting if r in (2, 3, 4, 6, 7, 8, 10, 12, 14)] or [o], wanted, "rows")
    counts = range(2, min(4, -(-pixels // lanes)) + 1)
    return PointwiseTiles(rows, draft.choose(list(counts) or [1], vectors, "vectors"))
