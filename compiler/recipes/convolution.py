"""Convolutions as implicit GEMM, transposed ones by phases of their strides, with the elementwise block that follows
in their tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import gcd

from compiler.affine.linear import Linear, variable
from compiler.program.tree import Block
from compiler.recipes.depthwise import image_of, share_of
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.implicit_gemm import ConvolutionTiles, by_phases, taps_of, tiled_convolution
from compiler.recipes.pointwise import by_preference
from compiler.recipes.sizes import evens, pixel_tile, pixels_of


def convolution(draft: Draft, label: str) -> Iterator[Alternative]:
    """C[n, o, h, w] += X[n, c, h.., w..] * W[o, c, r, q], of one to three dimensions: pixels of a row times filters in
    vectors.

    There is no matrix of windows. The elementwise block that reads the result is computed tile by tile. Weights are
    packed a chunk of channels at a time, or all of them first. Those of one tap also have the ways of `pointwise`,
    before the others where these are better. A transposed one with a stride is one for each phase of it.
    """
    block = draft.block(label)
    if block.combiners != ("add",) or len(block.reads) != 2 or block.table is not None:
        return
    if not 3 <= block.spatial <= 5 or len(block.axes) != 2 * block.spatial - 1:
        return
    if any(block.axes[axis].size < 2 for axis in (1, block.spatial)):
        return
    if strides := strides_of_phases(block):
        yield Alternative("by phases of the stride", partial(_apply_by_phases, label=label, strides=strides))
        return
    better, worse = by_preference(draft, label)
    yield from better
    constant = block.reads[1].buffer in draft.schedule.program.constants
    for beforehand in (constant, not constant):
        name = f"implicit gemm{', weights packed first' if beforehand else ''}"
        yield Alternative(name, partial(_apply, label=label, beforehand=beforehand))
    yield from worse


def _apply(draft: Draft, label: str, beforehand: bool) -> Sequence[str]:
    s, block = draft.schedule, draft.block(label)
    readers = [b for b in draft.readers(label) if not b.combiners and b.label in draft.left]
    after = readers[0] if len(readers) == 1 and readers[0].spatial == block.spatial else None
    share = _share(draft, label)
    lanes = gcd(share, draft.lanes(label)) if share < block.axes[1].size else min(draft.lanes(label), share)
    epilogue, handle = draft.handle(after), s.get_block(label)
    done = tiled_convolution(s, handle, epilogue, _tiles(draft, block, lanes, share), lanes, beforehand)
    draft.parallel(done.panels, done.rows)
    return [label, *labels(after)]


def _apply_by_phases(draft: Draft, label: str, strides: Sequence[int]) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    o, w, c = (block.axes[axis].size for axis in (1, block.spatial - 1, block.spatial))
    lanes = min(draft.lanes(label), o)
    vectors, w = -(-o // lanes), -(-w // strides[-1])
    counts = range(1, min(4, vectors) + 1)
    pixels, filters = pixel_tile(draft.machine, w, counts, vectors, c * taps_of(block))
    tiles = ConvolutionTiles(
        draft.choose(pixels_of(w), pixels, "pixels"), draft.choose(counts[1:] or counts, filters, "vectors"), c
    )
    epilogue = draft.handle(after)
    done = by_phases(s, s.get_block(label), epilogue, strides, tiles, lanes)
    draft.parallel(done.panels, done.rows)
    return [label, *labels(after)]


def _share(draft: Draft, label: str) -> int:
    """The filters that read the same channels: all but in a grouped convolution."""
    image = image_of(draft.block(label))
    return draft.block(label).axes[1].size if image is None else share_of(image)


def _tiles(draft: Draft, block: Block, lanes: int, share: int) -> ConvolutionTiles:
    """The open choices: what suits registers and L1 is where the search begins."""
    o, w, c = (block.axes[axis].size for axis in (1, block.spatial - 1, block.spatial))
    machine, taps, vectors = draft.machine, taps_of(block), -(-share // lanes)
    divisors = [n for n in range(1, min(4, vectors) + 1) if share == o or share % (n * lanes) == 0]
    pixels, filters = pixel_tile(machine, w, divisors, vectors, c * taps)
    channels = max(1, min(c, 2 * machine.l1_bytes // 5 // (4 * taps * filters * lanes)))
    run = lanes // gcd(taps, lanes)  # so many channels of a filter are whole vectors, which are transposed at once
    chunks = evens(c, run, min(c, 4), 512)
    return ConvolutionTiles(
        draft.choose(pixels_of(w), pixels, "pixels"),
        draft.choose([n for n in divisors if n > 1] or [1], filters, "vectors"),
        draft.choose(chunks, _whole(c, chunks, channels), "channels"),
    )


def _whole(c: int, chunks: Sequence[int], most: int) -> int:
    """The largest chunk up to `most` that c is a multiple of, so that the loops that pack it have no ragged end; `most`
    where that is much shorter."""
    return max((n for n in chunks if n <= most < 4 * n and c % n == 0), default=most)


def strides_of_phases(block: Block) -> list[int]:
    """The strides along the image of a block that `by_phases` takes; none for other blocks."""
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
    """The divisor in a form; 0 if the form has none."""
    return next((atom.divisor for atom, _ in form.terms if not isinstance(atom, int) and not atom.is_mod), 0)
