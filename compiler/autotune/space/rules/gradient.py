"""Gradients of convolutions' weights (library.conv_grad_weight): taps and output channels in registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from compiler.autotune.space.rules.draft import Alternative, Draft
from compiler.program.tree import Block
from compiler.schedule import library
from compiler.schedule.library import GradientTiles


def taps_in_registers(draft: Draft, label: str) -> Iterator[Alternative]:
    """E[o, c, r, q] = sum over n, h, w of A[n, c, h + r, w + q] * B[n, o, h, w], in one reduction or in steps."""
    block = draft.block(label)
    if draft.left[-1] != label or block.spatial != 4 or len(draft.left) not in (1, 3):
        return
    if len(block.axes) != (7 if len(draft.left) == 1 else 4):
        return
    if len(block.axes) == 7 and not _is_gradient(block):
        return
    if any(not draft.block(before).combiners for before in draft.left[:-1]):
        return
    rows, lanes = block.axes[2].size, draft.lanes(label)
    held = draft.machine.l2_bytes // 4
    tiles = [(rows, 2, held), (rows, 1, held), (1, 4, held), (1, 2, held), (rows, 2, held // 2), (rows, 2, 2 * held)]
    for taps, vectors, bytes in dict.fromkeys(tiles):
        name = f"{taps} rows of taps, {vectors} vectors, {bytes >> 10} KiB at a time"
        chosen = GradientTiles(min(taps, 3), vectors * lanes, lanes, bytes)
        yield Alternative(name, partial(_apply, label=label, tiles=chosen))


def _is_gradient(block: Block) -> bool:
    """Whether the channels of both operands, their second dimension, are the first two axes of the result: those of a
    convolution itself are its images and filters."""
    channels = [access.index[1].variables() for access in block.reads if len(access.index) == 4]
    return len(channels) == 2 and {0} in channels and any(1 in axes for axes in channels)


def _apply(draft: Draft, label: str, tiles: GradientTiles) -> Sequence[str]:
    s = draft.schedule
    done = library.conv_grad_weight(s, s.get_block(label), tiles)
    if draft.threads > 1:
        s.parallel(done.panel if s.extent(done.panel) >= draft.threads else done.channel)
    return draft.left
