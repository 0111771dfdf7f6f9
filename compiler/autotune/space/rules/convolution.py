"""Convolutions as implicit GEMM (library.tiled_convolution), with the elementwise block that follows in its tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import gcd

from compiler.autotune.space.rules.draft import Alternative, Draft
from compiler.autotune.space.rules.sizes import evens
from compiler.program.tree import Block
from compiler.schedule import library
from compiler.schedule.library import ConvolutionTiles

MOST_PIXELS = 14


def implicit_gemm(draft: Draft, label: str) -> Iterator[Alternative]:
    """C[n, o, h, w] += X[n, c, h.., w..] * W[o, c, r, q]: pixels of a row times filters in vectors.

    There is no matrix of windows. The elementwise block that reads the result is computed tile by tile. Weights are
    packed a chunk of channels at a time, or all of them first.
    """
    block = draft.block(label)
    if block.combiners != ("add",) or len(block.reads) != 2 or block.table is not None or _shape(block) != (4, 3):
        return
    if any(block.axes[axis].size < 2 for axis in (1, 4)):
        return
    constant = block.reads[1].buffer in draft.schedule.program.constants
    for beforehand in (constant, not constant):
        name = f"implicit gemm{', weights packed first' if beforehand else ''}"
        yield Alternative(name, partial(_apply, label=label, beforehand=beforehand))


def _shape(block: Block) -> tuple[int, int]:
    """How many axes are spatial, and how many reduced over."""
    return block.spatial, len(block.axes) - block.spatial


def _apply(draft: Draft, label: str, beforehand: bool) -> Sequence[str]:
    s, block = draft.schedule, draft.block(label)
    readers = [b for b in draft.readers(label) if not b.combiners and b.label in draft.left]
    after = readers[0] if len(readers) == 1 and readers[0].spatial == 4 else None
    lanes = min(draft.lanes(label), block.axes[1].size)
    epilogue = s.get_block(after.label) if after is not None else None
    done = library.tiled_convolution(s, s.get_block(label), epilogue, _tiles(draft, block, lanes), lanes, beforehand)
    if draft.threads > 1:
        s.parallel(done.panels if s.extent(done.panels) >= draft.threads else done.rows)
    return [label, *([after.label] if after is not None else [])]


def _tiles(draft: Draft, block: Block, lanes: int) -> ConvolutionTiles:
    """The open choices: what suits registers and L1 is where the search begins."""
    _, o, _, w, c, r, q = (axis.size for axis in block.axes)
    machine, vectors = draft.machine, -(-o // lanes)
    filters = min(2, vectors)
    most = min((machine.registers - filters - 1) // filters, MOST_PIXELS, w)
    pixels = min(range(min(5, w), most + 1), key=lambda p: (-(-w // p) * p, -p), default=most)
    channels = max(1, min(c, 2 * machine.l1_bytes // 5 // (4 * r * q * filters * lanes)))
    whole = lanes // gcd(r * q, lanes)  # so many channels of a filter are whole vectors, which are transposed at once
    return ConvolutionTiles(
        draft.choose(range(min(3, w), min(w, MOST_PIXELS) + 1), pixels, "pixels"),
        draft.choose(range(2, min(4, vectors) + 1) or [1], filters, "vectors"),
        draft.choose(evens(c, whole, min(c, 4), 512), channels, "channels"),
    )
