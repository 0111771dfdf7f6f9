"""The nest of convolutions as products without a matrix of windows: pixels of a row times filters in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod

from compiler.program.tree import Access, Block
from compiler.recipes.packing import copy_in_vectors, even
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


@dataclass(frozen=True)
class ImplicitGemm:
    """The loops of a convolution: over panels of filters, rows of the image, tiles of a row."""

    panels: Handle
    rows: Handle
    tiles: Handle


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
    register tile of some pixels of a row, broadcast, times some filters, in vectors.

        n { o { h { w { c { r { s { C } } } } } } }  n { o { h { w { D(C) } } } }
      ->
        pad X
        n { o panels { c chunks { pack W[filters, chunk]
          h { w tiles { C = 0 in the first chunk
            c { r { s { w = pixels unrolled { o = filters / lanes unrolled { lanes vectorized { C } } } } } }
            D in the last chunk, transposed in registers } } } } }

    The image gets a border where it is read under conditions; C lies in panels of filters; `epilogue`, an elementwise
    consumer of C, writes the result. The weights of the next chunk are prefetched, a few lines at a time, so that the
    loads of the tile do not wait behind them. With `beforehand` all weights are packed first, as is right for constant
    ones.

    Requires the loops of `te.nn.conv1d`, `conv2d` or `conv3d` in their order. Source: implicit GEMM as in cuDNN
    (Chetlur et al. 2014) and the direct convolutions of Georganas et al. (SC 2018).
    """
    lanes = gcd(filters, lanes)
    nest = _nest(s, block)
    w, c = nest.image[-1], nest.channels
    tiles = ConvolutionTiles(min(pixels, s.extent(w)), filters // lanes, even(s.extent(c), channels, 1))
    return tiled_convolution(s, block, epilogue, tiles, lanes, beforehand)


@dataclass(frozen=True)
class ConvolutionTiles:
    """The tiles of an implicit GEMM, constants or parameters: `pixels` of a row and `vectors` of filters of a register
    tile, and the `channels` of a chunk."""

    pixels: Size
    vectors: Size
    channels: Size


@dataclass(frozen=True)
class ConvolutionNest:
    """The loops of a convolution: over images and filters, along the dimensions of an image, over channels and taps;
    of a transposed one those over the phases of its strides."""

    images: Handle
    filters: Handle
    image: list[Handle]
    channels: Handle
    taps: list[Handle]
    phases: list[Handle] = field(default_factory=list)


def taps_of(block: Block) -> int:
    """How many taps a filter of a convolution has for each channel."""
    return prod(axis.size for axis in block.axes[block.spatial + 1 :])


def _nest(s: Schedule, block: Handle) -> ConvolutionNest:
    """The loops n, o, h, w, c, r, q, or the corresponding ones of another rank."""
    loops, spatial = nest(s, block, "implicit_gemm", fewest=5), node_of(s, block).spatial
    if len(loops) != 2 * spatial - 1 or spatial < 3 or len(operands(s, block)) != 2:
        reason = (
            f"a convolution has 5, 7 or 9 loops and 2 operands, this has {len(loops)} and {len(operands(s, block))}"
        )
        raise refusal(s, block, "implicit_gemm", reason)
    return ConvolutionNest(loops[0], loops[1], loops[2:spatial], loops[spatial], loops[spatial + 1 :])


def tiled_convolution(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    sizes: ConvolutionTiles,
    lanes: int = 16,
    beforehand: bool = False,
) -> ImplicitGemm:
    """`implicit_gemm` with tiles that are taken as they are, parameters among them; a parameter that counts vectors is
    taken to be above one."""
    loops = _nest(s, block)
    weights = _weights(s, block)
    image = other_operand(s, block, weights)
    if any(access.where for access in node_of(s, block).reads if access.buffer == image):
        copy_in_vectors(s, s.pad(block, image), lanes)
    return tiled_nest(s, block, epilogue, loops, sizes, lanes, beforehand)


def by_phases(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    strides: Sequence[int],
    sizes: ConvolutionTiles,
    lanes: int = 16,
) -> ImplicitGemm:
    """Schedule a transposed convolution as the convolutions that the phases of its strides are.

        n { o { h { w { c { r { C[n, o, h, w] += X[n, c, h / S - r, ..] * W[c, o, h % S + r*S, ..] } } } } } }
      ->
        pad X;  pack W
        n { o panels { h / S { copy X[:, h / S];  h % S { w % S { w / S tiles { c { r { C } } } } };  D } } }

    A phase is the outputs with one remainder along each dimension; all of them meet the same taps. `strides` are the
    strides along the image; sizes and lanes as of `implicit_gemm`, of which this is a form; D runs on the rows of an h
    / S. An image without a border is copied a row at a time, since the lines of its channels may lie in one set of the
    cache. Requires the loops of `te.nn.conv2d_transpose`. Source: sub-pixel convolution, Shi et al. 2016.
    """
    loops = _nest(s, block)
    image = other_operand(s, block, _weights(s, block))
    conditional = any(access.where for access in node_of(s, block).reads if access.buffer == image)
    if conditional:
        copy_in_vectors(s, s.pad(block, image), lanes)
    row = s.cache_read(block, image, "local") if len(strides) > 1 and not conditional else None
    split = [
        s.split(loop, [None, step]) if step > 1 else [loop] for loop, step in zip(loops.image, strides, strict=True)
    ]
    phases = [pair[1] for pair in split if len(pair) > 1]
    rows = [pair[0] for pair in split]
    done = tiled_nest(s, block, epilogue, replace(loops, image=rows, phases=phases), sizes, lanes, True)
    if row is not None:
        s.compute_at(row, rows[-2])
        copy_in_vectors(s, row, lanes)
    return done


def tiled_nest(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    loops: ConvolutionNest,
    sizes: ConvolutionTiles,
    lanes: int,
    beforehand: bool,
) -> ImplicitGemm:
    """The loops of a convolution whose image has no border, tiled."""
    if epilogue is None and target_of(s, block) not in s.program.allocs:
        epilogue = s.cache_write(block)
    weights, filters = _weights(s, block), s.multiple(sizes.vectors, lanes)
    access = next(access for access in node_of(s, block).reads if access.buffer == weights)
    dim = next((d for d, form in enumerate(access.index) if 1 in form.variables()), 0)
    pack = pack_filters(s, block, access, dim, filters, bool(loops.phases))
    panels, *columns = s.split(loops.filters, [None, *([] if sizes.vectors == 1 else [sizes.vectors]), lanes])
    tiles, pixel = s.split(loops.image[-1], [None, sizes.pixels])
    chunks, c = s.split(loops.channels, [None, sizes.channels])
    rows = [*loops.image[:-1], tiles]
    above = [loops.images, panels, chunks, *rows[:-1]]
    s.reorder(*above, *loops.phases, tiles, c, *loops.taps, pixel, *columns)
    if not beforehand:
        s.compute_at(pack, chunks)
    target = target_of(s, block)
    if epilogue is not None:
        s.reverse_compute_at(epilogue, above[-1] if loops.phases else tiles)
    s.transform_layout(block, target, tiles=[1, filters, *(1 for _ in rows)])
    if epilogue is not None:
        _transposed(s, epilogue, lanes)
    in_vectors(s, [pixel, *columns])
    s.decompose_reduction(block, c)
    _pack_weights(s, pack, lanes)
    if s.extent(chunks) > 1:
        lines = s.value(filters) * s.extent(c) * prod(map(s.extent, loops.taps)) // LINE
        asked = target_of(s, pack) if beforehand else weights
        s.prefetch(chunks, asked, 1, over=_spread(s, [*rows, c, *loops.taps[:-1]], lines))
    return ImplicitGemm(panels, rows[0], tiles)


def _weights(s: Schedule, block: Handle) -> str:
    """The operand that each filter reads for itself: the image of a grouped convolution depends on the filter's group
    alone."""
    indexed_by_filter = [
        access.buffer for access in node_of(s, block).reads if any(form.coefficient(1) for form in access.index)
    ]
    return indexed_by_filter[0] if indexed_by_filter else operand_over(s, block, 1)


def pack_filters(s: Schedule, block: Handle, weights: Access, dim: int, panel: Size, taps_first: bool) -> Handle:
    """Pack weights in panels of filters, which are one dimension; the panels come first, then channels and taps, or the
    other way round."""
    tiles = [panel if d == dim else 1 for d in range(len(weights.index))]
    others = [d for d in range(len(tiles)) if d != dim]
    order = [dim, *(others[1:] + others[:1] if taps_first else others), len(tiles)]
    return s.pack(block, weights.buffer, tiles, order if order != sorted(order) else [])


LINE = 16
"""The elements of a cache line, in f32."""
AT_ONCE = 4
"""The most lines to ask for at a time: a core has some 16 requests of L1 under way, and a tile's loads are
among them."""


def _spread(s: Schedule, loops: Sequence[Handle], lines: int) -> Handle:
    """The outermost of some nested loops that asks for few enough of so many lines in each iteration."""
    iterations = 1
    for loop in loops:
        iterations *= s.extent(loop)
        if lines <= AT_ONCE * iterations:
            return loop
    return loops[-1]


def _transposed(s: Schedule, block: Handle, lanes: int) -> None:
    """An elementwise block over filters, rows, and pixels: vectors of filters, pixels of each side by side."""
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
    """The nest that packs: channels and taps, which lie side by side, as one loop of vectors, transposed."""
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
