"""Gradients of convolutions' weights (library.conv_grad_weight): taps and output channels in registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.sizes import step_cycles
from compiler.schedule import library
from compiler.schedule.library import GradientTiles
from compiler.types.machines import Machine

AGAIN = 1.2
"""The cost of one pass through the pixels for each row of taps."""


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
    chunk_bytes, lanes = draft.machine.l2_bytes // 4, draft.lanes(label)
    ordered = _by_cycles(draft.machine, block, lanes)
    best, *alternatives = [(taps, vectors, chunk_bytes) for taps, vectors in ordered]
    tiles = [best, *alternatives[:3], *((*best[:2], bytes) for bytes in (chunk_bytes // 2, 2 * chunk_bytes))]
    for taps, vectors, bytes in tiles:
        name = f"{taps} rows of taps, {vectors} vectors, {bytes >> 10} KiB at a time"
        chosen = GradientTiles(taps, vectors * lanes, lanes, bytes)
        yield Alternative(name, partial(_apply, label=label, tiles=chosen))


def _by_cycles(machine: Machine, block: Block, lanes: int) -> list[tuple[int, int]]:
    """Rows of taps, one or all of up to three, of sums in steps all, and vectors of output channels, of register tiles:
    those that fit the registers first, and the least cycles first. A step loads the taps' elements and the vectors."""
    in_one = len(block.axes) == 7
    rows, columns, channels = block.axes[2].size, block.axes[3].size, block.axes[0].size

    def cost(tile: tuple[int, int]) -> tuple[bool, float]:
        taps, vectors = tile
        sums = taps * columns * vectors
        step = step_cycles(sums, taps * columns + vectors)
        passes = -(-rows // taps) * -(-channels // (vectors * lanes))
        return sums + vectors + 1 > machine.registers, passes * (step if taps == rows else AGAIN * step)

    counts = sorted({1, min(rows, 3)}) if in_one else [rows]
    return sorted(((t, v) for t in counts for v in range(1, 5)), key=cost)


def _is_gradient(block: Block) -> bool:
    """Whether the channels of both operands, their second dimension, are the first two axes of the result: those of a
    convolution itself are its images and filters."""
    channels = [access.index[1].variables() for access in block.reads if len(access.index) == 4]
    return len(channels) == 2 and {0} in channels and any(1 in axes for axes in channels)


def _apply(draft: Draft, label: str, tiles: GradientTiles) -> Sequence[str]:
    s = draft.schedule
    done = library.conv_grad_weight(s, s.get_block(label), tiles)
    draft.parallel(done.panel, done.channel)
    return draft.left
