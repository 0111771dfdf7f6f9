"""Convolutions of one tap as products over vectors of pixels (library.pointwise)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from compiler.autotune.space.rules.draft import Alternative, Draft
from compiler.autotune.space.rules.sizes import register_tile, rows_of
from compiler.program.tree import Block
from compiler.schedule import library
from compiler.schedule.library import PointwiseTiles

IDLE = 1.02
"""By how much the lanes of all vectors of pixels may exceed the pixels: beyond, filters go into the lanes."""
IDLE_IF_DEEP = 1.1
"""The same where the weights of a register tile with filters in its lanes, two vectors of them, overflow L1's share."""
FEWEST_TILES = 5
"""So many register tiles at least read the pixels that have been packed."""


def over_rows(draft: Draft, label: str) -> Alternative | None:
    """C[n, o, h, w] += X[n, c, h*S, w*S] * W[o, c, 0, 0] by vectors that go on where a row of the image ends; None for
    other blocks."""
    block = draft.block(label)
    if library.pointwise_image(block) is None or _pixels(block) < 2:
        return None
    return Alternative("by vectors over rows of pixels", partial(_apply, label=label))


def pays(draft: Draft, label: str) -> bool:
    """Whether whole register tiles have few more pixels than a channel of the result, and enough of them read the same
    pixels."""
    block, lanes, machine = draft.block(label), draft.lanes(label), draft.machine
    o, c = block.axes[1].size, block.axes[block.spatial].size
    rows, vectors = register_tile(machine, o, _pixels(block), lanes)
    deep = 4 * c * 2 * lanes > 2 * machine.l1_bytes // 5
    lanes_used = -(-_pixels(block) // (vectors * lanes)) * vectors * lanes
    return o >= FEWEST_TILES * rows and lanes_used <= (IDLE_IF_DEEP if deep else IDLE) * _pixels(block)


def _pixels(block: Block) -> int:
    """The pixels of a channel of the result."""
    return prod(axis.size for axis in block.axes[2 : block.spatial])


def _apply(draft: Draft, label: str) -> Sequence[str]:
    s, block, after = draft.schedule, draft.block(label), draft.consumer(label)
    epilogue = s.get_block(after.label) if after is not None else None
    lanes = min(draft.lanes(label), _pixels(block))
    done = library.pointwise(s, s.get_block(label), epilogue, _tiles(draft, block, lanes), lanes)
    if draft.threads > 1:
        s.parallel(done.images if s.extent(done.images) >= draft.threads else done.panels)
    return [label, *([after.label] if after is not None else [])]


def _tiles(draft: Draft, block: Block, lanes: int) -> PointwiseTiles:
    """The open choices: the search begins at the register tile of least work."""
    machine, pixels, o = draft.machine, _pixels(block), block.axes[1].size
    wanted, vectors = register_tile(machine, o, pixels, lanes)
    fitting = {r for v in range(1, 5) for r in rows_of(machine, v) if r <= o}
    rows = draft.choose([r for r in fitting if r in (2, 3, 4, 6, 7, 8, 10, 12, 14)] or [o], wanted, "rows")
    counts = range(2, min(4, -(-pixels // lanes)) + 1)
    return PointwiseTiles(rows, draft.choose(list(counts) or [1], vectors, "vectors"))
