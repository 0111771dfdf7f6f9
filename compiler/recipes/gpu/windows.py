"""Convolutions of f16 and bf16 on tensor cores, as implicit products: filters times pixels, over taps and channels.

Source: implicit GEMM of cuDNN (Chetlur et al. 2014) and of CUTLASS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import gcd, prod

from xdsl.ir.affine import AffineExpr

from compiler.intrinsics.warp import COLUMNS, ROWS
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.gpu.convolution import WindowRead, window_read
from compiler.recipes.gpu.spread import spread
from compiler.recipes.gpu.warp import (
    DEPTH,
    FEWEST,
    FIRST,
    MOST_STAGES,
    WarpTiles,
    padded_tiles,
    stages_that_fit,
    tile_product,
)
from compiler.recipes.steps import axes_of, by_axis, node_of, refusal, target_of
from compiler.schedule import Handle, Schedule


def convolve_on_warps(s: Schedule, block: Handle, epilogue: Handle | None, tiles: WarpTiles) -> None:
    """Schedule a convolution C[n, o, h, w] += X[n, c, h + r, w + q] * W[o, c, r, q] for the tensor cores of a GPU.

        n { o { h { w { c { r { q { C } } } } } } }  n { o { h { w { D } } } }
      ->
        W.axes[o, r q c] = W
        o.0_hw.0 block_x { alloc C.fragment
          r_q_c.0 { fetch W.shared; fetch X.shared[c.1, hw], zeros where a window leaves the image
            warp thread_y { C.fragment += W.fragment * X.fragment, tensorized } }
          thread_y { thread_x { D = f(C.shared) } } }

    The pixels of an image are an axis of the product, and taps and channels the one that is summed up: a panel of
    channels has one tap, so that the address and the conditions of a pixel are computed once. Weights of several taps
    are stored with channels last by a kernel of their own. Requires a block that `window_read` recognises, of f16 or
    bf16 summed up in f32, with a loop for each axis, filters before pixels, and an epilogue that reads only its result,
    elementwise. Raises ScheduleError for other blocks.
    """
    node, loops = node_of(s, block), [loop for each in by_axis(s, block) for loop in each]
    read = window_read(node, slides=False)
    if read is None or not is_plain(node, read) or len(loops) != len(node.axes):
        raise refusal(s, block, "convolve_on_warps", "it is no convolution of images, filters and pixels in this order")
    out = epilogue if epilogue is not None else s.cache_write(block, "shared")
    if epilogue is not None:
        s.set_scope(block, "shared")
    kept, reduce = read.filters + 1, [*read.taps, *read.channels]
    image, weights = read.image.buffer, read.weights.buffer
    copies = [s.reindex(block, name) for name in (image, weights)]
    sizes = [axis.size for axis in node.axes]
    pixels = [*range(kept, node.spatial)]
    images = [*range(read.filters)]
    orders = ([*images, *reduce], [*images, *read.taps, read.filters, *read.channels])
    for copy, access, order in zip(copies, (read.image, read.weights), orders, strict=True):
        s.transform_layout(block, target_of(s, copy), _flattened(sorted(axes_of(access)), order, pixels, sizes))
    order = [*images, read.filters]
    s.transform_layout(block, target_of(s, block), _flattened(range(node.spatial), order, pixels, sizes))
    s.reorder(*(loops[n] for n in (*range(node.spatial), *reduce)))
    if len(pixels) > 1:
        axes = sorted(axes_of(read.image))
        of_copy = [loop for n, each in zip(axes, by_axis(s, copies[0]), strict=True) for loop in each if n in pixels]
        of_out = s.get_loops(out)[-len(pixels) :]
        for each, together in ((block, loops[kept : node.spatial]), (out, of_out), (copies[0], of_copy)):
            s.fuse(*together)
            s.join_axes(each)
    has_taps = any(sizes[n] > 1 for n in read.taps)
    if has_taps:
        spread(s, copies[1])
    flat = gcd(tiles.vector, sizes[pixels[-1]]) if is_flat(node, read) else 1
    channels = gcd(tiles.vector, sizes[read.channels[0]])
    tile_product(s, block, out, tiles, copies[:1] if has_taps else copies, (channels, flat), len(read.taps))


def is_flat(block: Block, read: WindowRead) -> bool:
    """Return whether neighbouring pixels read neighbouring elements: one tap, no stride and no border."""
    steps = [form.coefficient(n) for form in read.image.index for n in read.pixels if n in form.variables()]
    return not read.image.where and all(block.axes[n].size == 1 for n in read.taps) and all(step == 1 for step in steps)


def convolution_on_warps(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of a convolution of f16 or bf16 with sums in f32 by `convolve_on_warps`: its channels are a
    multiple of the depth of an MMA tile, and its tiles suffice for half of the multiprocessors. Yields nothing for
    other blocks, which are faster in parts, on threads."""
    block = draft.block(label)
    read = window_read(block, slides=False)
    elements = {type(draft.schedule.program.buffers[access.buffer].element) for access in block.reads}
    if read is None or not is_plain(block, read) or len(elements) != 1 or not elements <= FIRST.keys():
        return
    (element,) = elements
    sizes = [axis.size for axis in block.axes]
    pixels, channels = prod(sizes[read.filters + 1 : block.spatial]), sizes[read.channels[0]]
    architecture = int(draft.gpu.arch.removeprefix("sm_"))
    if architecture < FIRST[element] or channels % DEPTH or min(pixels, sizes[read.filters]) < FEWEST:
        return
    warps, matrices = padded_tiles(draft, [sizes[read.filters], pixels, channels])
    rows, columns = (w * t * edge for w, t, edge in zip(warps, matrices, (ROWS, COLUMNS), strict=True))
    blocks = prod(sizes[: read.filters]) * -(-sizes[read.filters] // rows) * -(-pixels // columns)
    if 2 * blocks < draft.gpu.multiprocessors:
        return
    after = draft.consumer(label)
    for twice in (True, False):
        name = f"windows on tensor cores{', a round ahead' if twice else ''}"
        name += f", with '{after.label}'" if after is not None else ""
        yield Alternative(name, partial(_apply, label=label, after=after, twice=twice))


def _apply(draft: Draft, label: str, after: Block | None, twice: bool) -> Sequence[str]:
    s, block = draft.schedule, draft.block(label)
    read = window_read(block, slides=False)
    assert read is not None
    sizes = [axis.size for axis in block.axes]
    extents = [*sizes[: read.filters + 1], prod(sizes[read.filters + 1 : block.spatial]), sizes[read.channels[0]]]
    panel = 2 if extents[-1] % (2 * DEPTH) == 0 else 1
    warps, matrices = padded_tiles(draft, extents)
    tiles = WarpTiles(warps, matrices, panel, twice=twice)
    stages = stages_that_fit(
        draft, tiles, MOST_STAGES if is_flat(block, read) and sizes[read.pixels[-1]] % 2 == 0 else 2, True
    )
    epilogue = draft.handle(after)
    convolve_on_warps(s, s.get_block(label), epilogue, replace(tiles, stages=stages))
    return [label, *labels(after)]


def is_plain(block: Block, read: WindowRead) -> bool:
    """Return whether a convolution has one axis of channels, and filters between images and the pixels of an image, and
    writes its result by its spatial axes in order."""
    pixels = [n for n in read.pixels if n > read.filters]
    in_order = [next(iter(form.variables()), n) for n, form in enumerate(block.writes[0].index)]
    return (
        len(read.channels) == 1
        and pixels == [*range(read.filters + 1, block.spatial)]
        and in_order == [*range(block.spatial)]
    )


def _flattened(
    axes: Sequence[int], order: Sequence[int], pixels: Sequence[int], sizes: Sequence[int]
) -> Callable[..., tuple[AffineExpr, ...]]:
    """Return an index map from dimensions of `axes`: those of `order`, then the pixels, row-major, as one dimension;
    `sizes` are the extents of all axes."""

    def layout(*dims: AffineExpr) -> tuple[AffineExpr, ...]:
        by_axis = dict(zip(axes, dims, strict=True))
        forms = [by_axis[n] for n in order if n in by_axis]
        members = [n for n in pixels if n in by_axis]
        if members:
            form = by_axis[members[0]]
            for n in members[1:]:
                form = form * sizes[n] + by_axis[n]
            forms.append(form)
        return tuple(forms)

    return layout
