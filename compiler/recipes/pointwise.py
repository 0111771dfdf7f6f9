"""Convolutions of one tap: products of weights and pixels, with vectors of pixels or of filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from compiler.affine.linear import Linear
from compiler.program.tree import Access, Block
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.elementwise import is_costly
from compiler.recipes.implicit_gemm import ConvolutionNest, ConvolutionTiles, ImplicitGemm, taps_of, tiled_nest
from compiler.recipes.packing import copy_in_vectors
from compiler.recipes.sizes import evens, pixel_tile, pixels_of, register_tile, rows_of
from compiler.recipes.steps import cut, fused, in_vectors, nest, node_of, own_loops, refusal, target_of
from compiler.schedule import Handle, Schedule, Size

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
    if pointwise_image(block) is None or _pixels(block) < 2:
        return [], []
    over_pixels = Alternative("by vectors over rows of pixels", partial(_by_pixels, label=label))
    by_filters = Alternative("by vectors of filters, pixels packed", partial(_by_filters, label=label))
    o, lanes = block.axes[1].size, draft.lanes(label)
    rows, vectors = register_tile(draft.machine, o, _pixels(block), lanes)
    idle = IDLE[_has_constant_filters(draft, block)]
    if tapped_dimensions(block):
        suits = _lanes_of(block, vectors, lanes) <= idle * _pixels(block) and o * taps_of(block) >= FEWEST_TILES * rows
        return ([over_pixels], []) if suits else ([], [over_pixels])
    if _lanes_of(block, vectors, lanes) <= idle * _pixels(block):
        return ([over_pixels], [by_filters]) if o >= FEWEST_TILES * rows else ([], [over_pixels, by_filters])
    return ([by_filters], [over_pixels]) if o >= FEWEST_TILES * lanes else ([], [by_filters, over_pixels])


def _pixels(block: Block) -> int:
    """The pixels of a channel of the result, along the dimensions without taps."""
    return prod(axis.size for axis in block.axes[2 + tapped_dimensions(block) : block.spatial])


def _lanes_of(block: Block, vectors: int, lanes: int) -> int:
    """The lanes of all tiles of so many vectors of pixels."""
    return -(-_pixels(block) // (vectors * lanes)) * vectors * lanes


def _has_constant_filters(draft: Draft, block: Block) -> bool:
    filters = next(access for access in block.reads if access != pointwise_image(block))
    return filters.buffer in draft.schedule.program.constants


def _by_pixels(draft: Draft, label: str) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    epilogue = draft.handle(after)
    lanes = min(draft.lanes(label), _pixels(block))
    tiles, together, before = _tiles(draft, block, lanes), _fits(draft, block, lanes), _before(draft, block)
    done = pointwise(s, s.get_block(label), epilogue, tiles, lanes, together)
    if together and before is not None:
        s.inline(s.get_block(before.label))
    draft.parallel(done.images, done.panels)
    return labels(block, after, before if together else None)


def _before(draft: Draft, block: Block) -> Block | None:
    """The elementwise block that computes the image, for this alone: a copy reads each pixel once. None where there is
    no such block, and where a function in it would be computed for idle lanes too."""
    image = pointwise_image(block)
    producer = draft.producer(image.buffer) if image else None
    return producer if producer and draft.is_temporary(producer.label) and not is_costly(producer) else None


def _fits(draft: Draft, block: Block, lanes: int) -> bool:
    """Whether half of L2 holds a panel of two vectors of pixels along all dimensions with taps."""
    image = pointwise_image(block)
    assert image is not None
    sizes = draft.schedule.program.buffers[image.buffer].shape[1 : 2 + tapped_dimensions(block)]
    return 4 * prod(sizes) * 2 * lanes <= draft.machine.l2_bytes // 2


def _by_filters(draft: Draft, label: str) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    epilogue = draft.handle(after)
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
    done = pointwise_by_filters(s, s.get_block(label), epilogue, tiles, lanes, constant)
    draft.parallel(done.panels, done.rows)
    return [label, *labels(after)]


def _tiles(draft: Draft, block: Block, lanes: int) -> PointwiseTiles:
    """The open choices: the search begins at the register tile of least work."""
    machine, pixels, o = draft.machine, _pixels(block), block.axes[1].size
    wanted, vectors = register_tile(machine, o, pixels, lanes)
    fitting = {r for v in range(1, 5) for r in rows_of(machine, v) if r <= o}
    rows = draft.choose([r for r in fitting if r in (2, 3, 4, 6, 7, 8, 10, 12, 14)] or [o], wanted, "rows")
    counts = range(2, min(4, -(-pixels // lanes)) + 1)
    return PointwiseTiles(rows, draft.choose(list(counts) or [1], vectors, "vectors"))


@dataclass(frozen=True)
class PointwiseTiles:
    """The register tile of a product over pixels, constants or parameters: `rows` of filters and `vectors` of pixels. A
    parameter is taken to be above one."""

    rows: Size
    vectors: Size


@dataclass(frozen=True)
class Pointwise:
    """The loops over images, and over panels of pixels."""

    images: Handle
    panels: Handle


def pointwise(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    tiles: PointwiseTiles,
    lanes: int = 16,
    together: bool = True,
) -> Pointwise:
    """Schedule a convolution of one tap C[n, o, h, w] += X[n, c, h*S, w*S] * W[o, c, 0, 0] as a product over pixels.

        n { o { h { w { c { C } } } } }  n { o { h { w { D(C) } } } }
      ->
        pack W[o] in panels of rows
        n { p.0 { pack X[c, p.1]
          o.0 { C = 0
            c { o.1 = rows unrolled { p.1 = vectors unrolled { lanes vectorized { C } } } }
            D } } }

    The pixels p of an image are h and w fused: a vector may go on in the next row. Pixels are packed a panel at a time,
    those between the strides left out. `epilogue`, an elementwise consumer of C, works on each tile; without one the
    tile is copied out. Requires an image without a border, read by all filters alike. Source: GEBP with the packed
    operand in L1, Goto and van de Geijn 2008.

    The first dimensions of the image, but not the last, may have taps and a border, as filters over time of a video
    have them: those without taps are fused, and inside of a panel loops run over the others. A panel has all of these
    if half of L2 holds it, as `together` says.
    """
    spatial, tapped = node_of(s, block).spatial, tapped_dimensions(node_of(s, block))
    loops, pixel, copy, epilogue = _over_pixels(s, block, epilogue, "pointwise")
    weights = next(access for access in node_of(s, block).reads if access.buffer != target_of(s, copy))
    pack = s.pack(block, weights.buffer, [tiles.rows, *(1 for _ in weights.index[1:])])
    vectors = [] if tiles.vectors == 1 else [tiles.vectors]
    panels, *columns = s.split(pixel, [None, *vectors, lanes], tail="pad")
    filters, row = s.split(loops[1], [None, tiles.rows], tail="pad")
    copy = _bordered(s, block, copy)
    outer = [panels, *loops[2 : 2 + tapped]]
    s.reorder(loops[0], *outer, filters, *loops[spatial:], row, *columns)
    s.compute_at(copy, panels if together else outer[-1])
    s.reverse_compute_at(epilogue, filters)
    for each in (copy, epilogue):
        *outer, pixels = own_loops(s, each)
        in_vectors(s, [*(outer[-1:] if each is epilogue else []), *cut(s, pixels, lanes)])
    copy_in_vectors(s, pack, lanes)
    in_vectors(s, [row, *columns])
    s.decompose_reduction(block, loops[spatial])
    return Pointwise(loops[0], panels)


def pointwise_by_filters(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    tiles: ConvolutionTiles,
    lanes: int = 16,
    beforehand: bool = False,
) -> ImplicitGemm:
    """Schedule a convolution of one tap as `implicit_gemm` with vectors of filters, over the pixels of all rows.

        n { o { h { w { c { C } } } } }  n { o { h { w { D(C) } } } }
      ->
        pack X[n, p.0, c, p.1]
        n { o panels { c chunks { p tiles { C = 0 in the first chunk
          c { p.1 = pixels unrolled { o = filters / lanes unrolled { lanes vectorized { C } } } }
          D in the last chunk, transposed in registers } } } }

    The pixels p of an image are h and w fused, so that only the last tile of an image may not be whole, and the tiles
    lie one behind the other. Requires what `pointwise` does. Source: as there.
    """
    spatial = node_of(s, block).spatial
    loops, pixel, copy, epilogue = _over_pixels(s, block, epilogue, "pointwise_by_filters")
    flat = target_of(s, copy)
    rank = len(s.program.buffers[flat].shape)
    order = [0, rank - 1, *range(1, rank - 1), rank]
    image = s.pack(block, flat, [*(1 for _ in range(rank - 1)), tiles.pixels], order)
    s.inline(copy)
    copy_in_vectors(s, image, lanes)
    fused_nest = ConvolutionNest(loops[0], loops[1], [pixel], loops[spatial], loops[spatial + 1 :])
    return tiled_nest(s, block, epilogue, fused_nest, tiles, lanes, beforehand)


def pointwise_image(block: Block) -> Access | None:
    """The read of the image by a convolution without taps along its last dimension; None for other blocks. Only
    dimensions with taps have a border."""
    spatial = block.spatial
    if not 3 <= spatial <= 5 or len(block.reads) != 2 or len(block.axes) <= spatial:
        return None
    tapped = tapped_dimensions(block)
    if tapped and (tapped == spatial - 2 or len(block.axes) != 2 * spatial - 1):
        return None
    taps = [{spatial + 1 + d} if d < tapped else set() for d in range(spatial - 2)]
    for image, weights in (block.reads, block.reads[::-1]):
        steps = [form.coefficient(2 + d) for d, form in enumerate(image.index[2:])]
        plain = len(image.index) == spatial and all(step is not None and step > 0 for step in steps)
        moved = [_long(block, form) for form in image.index]
        moving = [{0}, {spatial}, *({2 + d, *tap} for d, tap in enumerate(taps))]
        over = [_long(block, form) for form in weights.index]
        level = all(form.constant == 0 for form in image.index[2 + tapped :])
        bordered = set[int]().union(*({2 + d, *taps[d]} for d in range(tapped)))
        inside = all(condition.form.variables() <= bordered for condition in image.where) and not weights.where
        long = [{axis for axis in axes if block.axes[axis].size > 1} for axes in moving]
        rest = set[int]().union(*over[2:])
        if plain and level and inside and moved == long and over[:2] == [{1}, {spatial}] and rest <= bordered:
            return image
    return None


def tapped_dimensions(block: Block) -> int:
    """How many dimensions of the image of a convolution there are up to the last that has several taps."""
    taps = [axis.size for axis in block.axes[block.spatial + 1 :]]
    return max((d + 1 for d, size in enumerate(taps) if size > 1), default=0)


def _long(block: Block, form: Linear) -> set[int]:
    """The axes of a form that have several elements."""
    return {axis for axis in form.variables() if block.axes[axis].size > 1}


def _over_pixels(
    s: Schedule, block: Handle, epilogue: Handle | None, composite: str
) -> tuple[list[Handle], Handle, Handle, Handle]:
    """The loops of a convolution of one tap, the one over all pixels of an image that replaces those along it, the copy
    of the image that it reads, and the block behind it, over the same pixels. Raises ScheduleError for other blocks."""
    node = node_of(s, block)
    image = pointwise_image(node)
    if image is None:
        raise refusal(s, block, composite, "it is no convolution of one tap without a border")
    loops, spatial = nest(s, block, composite, fewest=node.spatial + 2), node.spatial
    first = 2 + tapped_dimensions(node)
    if epilogue is None:
        epilogue = s.cache_write(block)
    pad = s.pad(block, image.buffer) if image.where else None
    copy = _copied(s, block, image.buffer if pad is None else target_of(s, pad), image, first)
    if pad is not None:
        s.inline(pad)
    target, sizes = target_of(s, block), [axis.size for axis in node.axes[first:spatial]]
    pixel = _flat(s, block, loops[first:spatial])
    _flat(s, epilogue, s.get_loops(epilogue)[first - spatial :])
    _row_major(s, block, target, first, sizes)
    return loops, pixel, copy, epilogue


def _copied(s: Schedule, block: Handle, buffer: str, image: Access, first: int) -> Handle:
    """A copy of an image, its pixels in one dimension, those between the strides apart; its dimensions before the first
    one of pixels stay."""
    steps = [form.coefficient(first + d) or 1 for d, form in enumerate(image.index[first:])]
    rank, cut_dims = len(image.index), [d for d, step in enumerate(steps) if step > 1]
    inner = range(rank, rank + len(cut_dims))
    copy = s.pack(block, buffer, [*(1 for _ in range(first)), *steps], [*range(2), *inner, *range(2, rank)])
    target = target_of(s, copy)
    shape = s.program.buffers[target].shape
    _flat(s, copy, s.get_loops(copy)[-len(steps) :])
    _row_major(s, copy, target, len(shape) - len(steps), shape[len(shape) - len(steps) :])
    return copy


def _bordered(s: Schedule, block: Handle, copy: Handle) -> Handle:
    """The copy, with zeros beyond the last pixel where a vector runs over."""
    target = target_of(s, copy)
    access = next(access for access in node_of(s, block).reads if access.buffer == target)
    if not access.where:
        return copy
    longer = s.pad(block, target)
    s.inline(copy)
    return longer


def _flat(s: Schedule, block: Handle, loops: list[Handle]) -> Handle:
    """The loops along an image as one, which binds one axis."""
    sizes = [s.extent(loop) for loop in loops]
    loop = fused(s, loops)
    if sum(size > 1 for size in sizes) > 1:
        s.join_axes(block)
    return loop


def _row_major(s: Schedule, block: Handle, buffer: str, first: int, sizes: Sequence[int]) -> None:
    """The dimensions of a buffer from one on as one."""
    steps = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
    s.transform_layout(
        block,
        buffer,
        lambda *index: (*index[:first], sum((i * n for i, n in zip(index[first:], steps, strict=True)), 0 * index[0])),
    )
