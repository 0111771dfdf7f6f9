"""Composite for convolutions of one tap: a product of weights and pixels, with vectors of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from compiler.affine.linear import Linear
from compiler.program.tree import Access, Block
from compiler.schedule.library.convolution import ConvolutionNest, ConvolutionTiles, ImplicitGemm, tiled_nest
from compiler.schedule.library.loops import cut, fused, in_vectors, nest, node_of, own_loops, refusal, target_of
from compiler.schedule.library.packing import copy_in_vectors
from compiler.schedule.schedule import Handle, Schedule, Size


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
