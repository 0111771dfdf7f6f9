"""Convolutions as products without a matrix of windows: register tiles of pixels and filters, one of them in lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod

from compiler.affine.linear import Linear
from compiler.program.tree import Access
from compiler.recipes.images import pointwise_image, tapped_dimensions
from compiler.recipes.packing import copy_in_vectors, even
from compiler.recipes.register_tile import accumulate, register_tile, vectors_of
from compiler.recipes.steps import (
    around,
    cut,
    fused,
    in_vectors,
    nest,
    node_of,
    operand_over,
    operands,
    other_operand,
    own_loops,
    refusal,
    target_of,
)
from compiler.schedule import Handle, Schedule, Size

LINE = 16
"""The elements of a cache line, in f32."""
AT_ONCE = 4
"""The most lines prefetched at a time: a core has some 16 requests of L1 in flight, including the loads of a tile."""


@dataclass(frozen=True)
class ImplicitGemm:
    """Loops of a scheduled convolution: over panels of filters, over rows of the image (the loop `tiles` for an image
    without rows), over tiles of a row."""

    panels: Handle
    rows: Handle
    tiles: Handle


@dataclass(frozen=True)
class ConvolutionTiles:
    """The tiles of an implicit GEMM, constants or parameters: a register tile of `pixels` of a row and `vectors` of
    filters, and the number of input `channels` in a chunk. The weights of a chunk are packed together."""

    pixels: Size
    vectors: Size
    channels: Size


@dataclass(frozen=True)
class PointwiseTiles:
    """The register tile of a product over pixels: `rows` filters and `vectors` of pixels, constants or parameters; a
    parameter is above one."""

    rows: Size
    vectors: Size


@dataclass(frozen=True)
class Pointwise:
    """Loops of a convolution scheduled by `pointwise`: over images, and over panels of pixels."""

    images: Handle
    panels: Handle


@dataclass(frozen=True)
class ConvolutionNest:
    """The loops of a convolution: over images and filters, along the dimensions of an image, over channels and taps. A
    transposed convolution also has loops over the `phases` of its strides."""

    images: Handle
    filters: Handle
    image: list[Handle]
    channels: Handle
    taps: list[Handle]
    phases: list[Handle] = field(default_factory=list)


def implicit_gemm(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    pixels: int,
    filters: int,
    channels: int,
    lanes: int = 16,
    beforehand: bool = False,
) -> ImplicitGemm:
    """Schedule a convolution C[n, o, h, w] += X[n, c, h + r, w + s] * W[o, c, r, s] as a GEMM over a padded image: a
    register tile of `pixels` of a row, broadcast, times `filters` in vectors of `lanes`, by chunks of `channels`.

        n { o { h { w { c { r { s { C } } } } } } }  n { o { h { w { D(C) } } } }
      ->
        pad X
        n { o panels { c chunks { pack W[filters, chunk]
          h { w tiles { C = 0 in the first chunk
            c { r { s { w = pixels unrolled { o = filters / lanes unrolled { lanes vectorized { C } } } } } }
            D in the last chunk, transposed in registers } } } } }

    The image gets a border where it is read under conditions; C is stored in panels of filters; `epilogue`, an
    elementwise consumer of C, writes the result, without one a copy does. The weights of the next chunk are prefetched,
    a few lines at a time, so that the loads of the tile are not delayed. With `beforehand` all weights are packed
    first, best for constants.

    Returns the outer loops. Requires the loops of `te.nn.conv1d`, `conv2d` or `conv3d` in their order. Source: implicit
    GEMM as in cuDNN (Chetlur et al. 2014) and the direct convolutions of Georganas et al. (SC 2018). Raises
    ScheduleError for a block with other loops or operands.
    """
    lanes = gcd(filters, lanes)
    loops = _nest(s, block)
    channels = even(s.extent(loops.channels), channels, 1)
    tiles = ConvolutionTiles(min(pixels, s.extent(loops.image[-1])), filters // lanes, channels)
    return tiled_convolution(s, block, epilogue, tiles, lanes, beforehand)


def tiled_convolution(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    sizes: ConvolutionTiles,
    lanes: int = 16,
    beforehand: bool = False,
) -> ImplicitGemm:
    """Schedule a convolution as `implicit_gemm` by tiles that may be parameters; that of vectors must be above one.
    `epilogue`, an elementwise consumer of C, writes the result; without one a copy does, if C is an output. lanes:
    the elements of a vector. beforehand: whether all weights are packed before the nest. Returns the outer loops.
    Raises ScheduleError for a block with other loops or operands."""
    loops = _nest(s, block)
    _pad_image(s, block, lanes)
    return _filters_in_lanes(s, block, epilogue, loops, sizes, lanes, beforehand)


def by_phases(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    strides: Sequence[int],
    sizes: ConvolutionTiles,
    lanes: int = 16,
) -> ImplicitGemm:
    """Schedule a transposed convolution as one convolution for each phase of its strides.

        n { o { h { w { c { r { C[n, o, h, w] += X[n, c, h / S - r, ..] * W[c, o, h % S + r*S, ..] } } } } } }
      ->
        pad X;  pack W
        n { o panels { h / S { copy X[:, h / S];  h % S { w % S { w / S tiles { c { r { C } } } } };  D } } }

    A phase is the outputs with equal remainders along each dimension: they have the same taps. `strides` are those
    along the image; `epilogue`, an elementwise consumer of C, writes the result, without one a copy does; `sizes`: the
    pixels, vectors of filters and channels of a register tile; `lanes`: the elements of a vector; D is applied to the
    rows of one h / S. An image without a border is copied row by row, since the lines of its channels may share a cache
    set. Returns the outer loops. Requires the loops of `te.nn.conv2d_transpose`. Source: sub-pixel convolution, Shi et
    al. 2016. Raises ScheduleError for a block with other loops or operands.
    """
    loops = _nest(s, block)
    image = _pad_image(s, block, lanes)
    row = s.cache_read(block, image, "local") if image is not None and len(strides) > 1 else None
    split = [
        s.split(loop, [None, step]) if step > 1 else [loop] for loop, step in zip(loops.image, strides, strict=True)
    ]
    rows, phases = [pair[0] for pair in split], [pair[1] for pair in split if len(pair) > 1]
    scheduled = _filters_in_lanes(s, block, epilogue, replace(loops, image=rows, phases=phases), sizes, lanes, True)
    if row is not None:
        s.compute_at(row, rows[-2])
        copy_in_vectors(s, row, lanes)
    return scheduled


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

    The pixels p of an image are h and w fused, so that only the last tile of an image is partial, and tiles are
    contiguous. Returns the outer loops. `epilogue`, an elementwise consumer of C, writes the result, without one a copy
    does; `lanes`: the elements of a vector. With `beforehand` all weights are packed first. Requires an image without a
    border, read by all filters alike. Raises ScheduleError for a block of another form.
    """
    loops, copy, epilogue = _over_pixels(s, block, epilogue, "pointwise_by_filters")
    flat = target_of(s, copy)
    rank = len(s.program.buffers[flat].shape)
    order = [0, rank - 1, *range(1, rank - 1), rank]
    image = s.pack(block, flat, [*(1 for _ in range(rank - 1)), tiles.pixels], order)
    s.inline(copy)
    copy_in_vectors(s, image, lanes)
    return _filters_in_lanes(s, block, epilogue, replace(loops, image=loops.image[-1:]), tiles, lanes, beforehand)


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

    The pixels p of an image are h and w fused: a vector may continue in the next row. Pixels are packed by panels,
    without those that strides skip. `epilogue`, an elementwise consumer of C, is applied to each tile; without one the
    tile is copied out. Requires an image without a border, read by all filters alike. Source: GEBP with the packed
    operand in L1, Goto and van de Geijn 2008.

    The first dimensions of the image, but not the last, may have taps and a border, such as filters over the time of a
    video: only dimensions without taps are fused. With `together` a panel has all pixels along the dimensions with
    taps, else those of one position along them. Returns the loops over images and panels. Raises ScheduleError for a
    block of another form.
    """
    loops, copy, epilogue = _over_pixels(s, block, epilogue, "pointwise")
    *tapped, pixel = loops.image
    weights = next(access for access in node_of(s, block).reads if access.buffer != target_of(s, copy))
    pack = s.pack(block, weights.buffer, [tiles.rows, *(1 for _ in weights.index[1:])])
    sizes = {pixel: vectors_of(tiles.vectors, lanes), loops.filters: [tiles.rows]}
    around, reduction = [loops.images, pixel, *tapped, loops.filters], [loops.channels, *loops.taps]
    tile = register_tile(s, around, reduction, [loops.filters, pixel], sizes, "pad", reordered=False)
    _, panels, *rows, filters = tile.around
    copy = _bordered(s, block, copy)
    tile.reorder(s)
    s.compute_at(copy, panels if together else [panels, *rows][-1])
    s.reverse_compute_at(epilogue, filters)
    for each in (copy, epilogue):
        *outer, pixels = own_loops(s, each)
        in_vectors(s, [*(outer[-1:] if each is epilogue else []), *cut(s, pixels, lanes)])
    copy_in_vectors(s, pack, lanes)
    accumulate(s, block, tile)
    return Pointwise(loops.images, panels)


def _nest(s: Schedule, block: Handle) -> ConvolutionNest:
    """Return the loops of a convolution over n, o, one to three dimensions of the image, c, and a tap for each
    dimension. Raises ScheduleError for other blocks."""
    loops, spatial = nest(s, block, "implicit_gemm", fewest=5), node_of(s, block).spatial
    if len(loops) != 2 * spatial - 1 or spatial < 3 or len(operands(s, block)) != 2:
        reason = (
            f"a convolution has 5, 7 or 9 loops and 2 operands, this has {len(loops)} and {len(operands(s, block))}"
        )
        raise refusal(s, block, "implicit_gemm", reason)
    return ConvolutionNest(loops[0], loops[1], loops[2:spatial], loops[spatial], loops[spatial + 1 :])


def _pad_image(s: Schedule, block: Handle, lanes: int) -> str | None:
    """Return the buffer of a convolution's image that is read without conditions. If it is read under conditions, copy
    it with a border first, by vectors of `lanes`, and return None."""
    image = other_operand(s, block, _weights(s, block))
    if not any(access.where for access in node_of(s, block).reads if access.buffer == image):
        return image
    copy_in_vectors(s, s.pad(block, image), lanes)
    return None


def _filters_in_lanes(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    loops: ConvolutionNest,
    sizes: ConvolutionTiles,
    lanes: int,
    beforehand: bool,
) -> ImplicitGemm:
    """Schedule a convolution without conditions by register tiles: pixels are broadcast, filters are in lanes. Without
    an `epilogue`, a copy stores C if it is an output of the function; a temporary has no copy. With `beforehand` all
    weights are packed before the nest. Return the outer loops."""
    if epilogue is None and target_of(s, block) not in s.program.allocs:
        epilogue = s.cache_write(block)
    weights, panel = _weights(s, block), s.multiple(sizes.vectors, lanes)
    access = next(access for access in node_of(s, block).reads if access.buffer == weights)
    dim = next((d for d, form in enumerate(access.index) if 1 in form.variables()), 0)
    pack = pack_filters(s, block, access, dim, panel, bool(loops.phases))
    *rows, pixels = loops.image
    tile = register_tile(
        s,
        [loops.images, loops.filters, loops.channels, *rows, *loops.phases, pixels],
        [loops.channels, *loops.taps],
        [pixels, loops.filters],
        {loops.filters: vectors_of(sizes.vectors, lanes), pixels: [sizes.pixels], loops.channels: [sizes.channels]},
    )
    (_, panels, chunks, *_, tiles), c = tile.around, tile.reduction[0]
    if not beforehand:
        s.compute_at(pack, chunks)
    target = target_of(s, block)
    if epilogue is not None:
        s.reverse_compute_at(epilogue, [chunks, *rows][-1] if loops.phases else tiles)
    s.transform_layout(block, target, tiles=[1, panel, *(1 for _ in loops.image)])
    if epilogue is not None:
        _transposed(s, epilogue, lanes)
    accumulate(s, block, tile)
    _pack_weights(s, pack, lanes)
    if s.extent(chunks) > 1:
        lines = s.value(panel) * s.extent(c) * prod(map(s.extent, loops.taps)) // LINE
        prefetched = target_of(s, pack) if beforehand else weights
        s.prefetch(chunks, prefetched, 1, over=_spread(s, [*rows, tiles, c, *loops.taps[:-1]], lines))
    return ImplicitGemm(panels, [*rows, tiles][0], tiles)


def _weights(s: Schedule, block: Handle) -> str:
    """Return the buffer of a convolution's weights: the first read in whose index axis 1, the filter, has a constant
    factor, and is not only in a quotient (its group); without one the first read in whose index it occurs."""
    indexed_by_filter = [
        access.buffer for access in node_of(s, block).reads if any(form.coefficient(1) for form in access.index)
    ]
    return indexed_by_filter[0] if indexed_by_filter else operand_over(s, block, 1)


def pack_filters(s: Schedule, block: Handle, weights: Access, dim: int, panel: Size, taps_first: bool) -> Handle:
    """Pack the weights that a block reads by the access `weights` in panels of `panel` filters, along their dimension
    `dim`; in a panel channels come before taps, or after them with `taps_first`. Return the block that packs."""
    tiles = [panel if d == dim else 1 for d in range(len(weights.index))]
    other_dims = [d for d in range(len(tiles)) if d != dim]
    order = [dim, *(other_dims[1:] + other_dims[:1] if taps_first else other_dims), len(tiles)]
    return s.pack(block, weights.buffer, tiles, order if order != sorted(order) else [])


def _spread(s: Schedule, loops: Sequence[Handle], lines: int) -> Handle:
    """Return the outermost of nested loops with at most AT_ONCE of `lines` cache lines to prefetch in an iteration; the
    innermost if there is none."""
    iterations = 1
    for loop in loops:
        iterations *= s.extent(loop)
        if lines <= AT_ONCE * iterations:
            return loop
    return loops[-1]


def _transposed(s: Schedule, block: Handle, lanes: int) -> None:
    """Vectorize the own loops of an elementwise block along filters by `lanes` and unroll its pixels, along which its
    result is contiguous: LLVM transposes them in registers. A single loop is vectorized; without loops it stays."""
    loops = own_loops(s, block)
    if len(loops) == 1:
        s.vectorize(loops[0])
    if len(loops) < 2:
        return
    filters, *rows, pixels = loops
    *outer, vector = cut(s, filters, lanes)
    if rows:
        tiles, pixels = s.split(pixels, [None, min(lanes, s.extent(pixels))])
        rows.append(tiles)
    s.reorder(*rows, *outer, pixels, vector)
    in_vectors(s, [pixels, vector])


def _pack_weights(s: Schedule, pack: Handle, lanes: int) -> None:
    """Vectorize the packing of weights along channels and taps, fused, by `lanes`, with a transpose in registers; a
    packing without loops over them outside that over filters stays as it is."""
    node = node_of(s, pack)
    *_, filters = s.get_loops(pack)
    axes = set().union(*(form.variables() for form in node.reads[0].index[1:]))
    bound = set().union(*(node.bindings[axis].variables() for axis in axes))
    handles, loop_labels = around(s, pack), {s.label(h) for h in own_loops(s, pack)}
    taps = [h for h, loop in handles if loop.number in bound and loop.label in loop_labels]
    if not taps or s.label(filters) in {s.label(h) for h in taps}:
        return
    *rounds, filters = cut(s, filters, lanes)
    tap = fused(s, taps)
    outer, vector = s.split(tap, [None, min(lanes, s.extent(tap))])
    s.reorder(*rounds, outer, filters, vector)
    in_vectors(s, [filters, vector])


def _over_pixels(
    s: Schedule, block: Handle, epilogue: Handle | None, composite: str
) -> tuple[ConvolutionNest, Handle, Handle]:
    """Fuse the loops of a convolution along dimensions without taps. Return its loops, of which the fused loop is the
    last along the image; the copy of the image with these dimensions flattened; and the epilogue, a new copy of the
    result if None. Raises ScheduleError, in the name of `composite`, for other blocks."""
    node = node_of(s, block)
    image = pointwise_image(node)
    if image is None:
        raise refusal(s, block, composite, "it is no convolution of one tap without a border")
    loops, spatial = nest(s, block, composite, fewest=node.spatial + 2), node.spatial
    first = 2 + tapped_dimensions(node)
    if epilogue is None:
        epilogue = s.cache_write(block)
    pad = s.pad(block, image.buffer) if image.where else None
    copy = _flat_image(s, block, image.buffer if pad is None else target_of(s, pad), image.index, first)
    if pad is not None:
        s.inline(pad)
    target, sizes = target_of(s, block), [axis.size for axis in node.axes[first:spatial]]
    pixel = _flat(s, block, loops[first:spatial])
    _flat(s, epilogue, s.get_loops(epilogue)[first - spatial :])
    _row_major(s, block, target, first, sizes)
    along = [*loops[2:first], pixel]
    return ConvolutionNest(loops[0], loops[1], along, loops[spatial], loops[spatial + 1 :]), copy, epilogue


def _flat_image(s: Schedule, block: Handle, buffer: str, index: Sequence[Linear], first: int) -> Handle:
    """Copy the image `buffer`, read at `index`, without pixels that strides skip, and flatten its dimensions from
    `first` on; return the block that copies."""
    steps = [form.coefficient(first + d) or 1 for d, form in enumerate(index[first:])]
    rank, cut_dims = len(index), [d for d, step in enumerate(steps) if step > 1]
    inner = range(rank, rank + len(cut_dims))
    copy = s.pack(block, buffer, [*(1 for _ in range(first)), *steps], [*range(2), *inner, *range(2, rank)])
    target = target_of(s, copy)
    shape = s.program.buffers[target].shape
    _flat(s, copy, s.get_loops(copy)[-len(steps) :])
    _row_major(s, copy, target, len(shape) - len(steps), shape[len(shape) - len(steps) :])
    return copy


def _bordered(s: Schedule, block: Handle, copy: Handle) -> Handle:
    """Return a copy extended by zeros in place of `copy` if vectors read beyond its last pixel, under conditions; else
    `copy` itself."""
    target = target_of(s, copy)
    access = next(access for access in node_of(s, block).reads if access.buffer == target)
    if not access.where:
        return copy
    longer = s.pad(block, target)
    s.inline(copy)
    return longer


def _flat(s: Schedule, block: Handle, loops: list[Handle]) -> Handle:
    """Fuse the loops of a block along an image, and the axes that they bind; return the fused loop, the loop itself if
    only one has several iterations."""
    sizes = [s.extent(loop) for loop in loops]
    loop = fused(s, loops)
    if sum(size > 1 for size in sizes) > 1:
        s.join_axes(block)
    return loop


def _row_major(s: Schedule, block: Handle, buffer: str, first: int, sizes: Sequence[int]) -> None:
    """Flatten the dimensions of a buffer from `first` on, of extents `sizes`, in row-major order."""
    steps = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
    s.transform_layout(
        block,
        buffer,
        lambda *index: (*index[:first], sum((i * n for i, n in zip(index[first:], steps, strict=True)), 0 * index[0])),
    )
