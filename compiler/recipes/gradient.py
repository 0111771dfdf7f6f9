"""Gradients of convolutions' weights: products over the pixels, with taps and output channels in registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.images import is_gradient
from compiler.recipes.packing import even, pack_panels
from compiler.recipes.register_tile import Sizes, accumulate, register_tile, vectors_of
from compiler.recipes.sizes import step_cycles
from compiler.recipes.steps import (
    by_axis,
    by_vectors,
    in_vectors,
    node_of,
    operand_over,
    other_operand,
    refusal,
    target_of,
)
from compiler.schedule import Handle, Schedule
from compiler.types.machines import Machine

AGAIN = 1.2
"""The cost factor of a step if each group of rows of taps needs a separate pass through the pixels."""


def taps_in_registers(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of a program that is E[o, c, r, q] = sum over n, h, w of A[n, c, h + r, w + q] * B[n, o, h, w],
    in one reduction or in steps, and ends with the block `label`: at most four register tiles, then the first one with
    groups of half and of twice the bytes. Yields nothing for other programs."""
    block = draft.block(label)
    if draft.left[-1] != label or block.spatial != 4 or len(draft.left) not in (1, 3):
        return
    if len(block.axes) != (7 if len(draft.left) == 1 else 4):
        return
    if len(block.axes) == 7 and not is_gradient(block):
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
    """Return the register tiles (rows of taps, vectors of output channels), sorted by cycles, those that do not fit the
    registers last. Sums in steps need all rows of taps, others take 1 row or up to 3."""
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


def _apply(draft: Draft, label: str, tiles: GradientTiles) -> Sequence[str]:
    s = draft.schedule
    scheduled = conv_grad_weight(s, s.get_block(label), tiles)
    draft.parallel(scheduled.panel, scheduled.channel)
    return draft.left


@dataclass(frozen=True)
class GradientTiles:
    """The register tile: `taps` rows of the filter with all columns, for one input channel, and `nr` output channels in
    vectors of `lanes`. `held` is the most bytes of both operands, in f32, in a group of images, or of rows of an image.

    3 rows of a 3 x 3 filter and 32 channels take 18 accumulators of 16 lanes and 11 loads for 18 multiply-adds.
    """

    taps: int = 3
    nr: int = 32
    lanes: int = 16
    held: int = 1 << 19


@dataclass(frozen=True)
class Gradient:
    """Loops of a scheduled gradient: over groups of images, groups of rows (of a sum in steps: the images of a group),
    panels of output channels, and input channels."""

    images: Handle
    rows: Handle
    panel: Handle
    channel: Handle


DEFAULT = GradientTiles()

AHEAD = 8
"""The prefetch distance of the packed operand, in pixels."""


def conv_grad_weight(s: Schedule, block: Handle, tiles: GradientTiles = DEFAULT) -> Gradient:
    """Schedule E[o, c, r, q] = sum over n, h, w of A[n, c, h + r, w + q] * B[n, o, h, w] with vectors along o.

        o { c { r { q { n { h { w { E } } } } } } }
      ->
        E.local[o.0, c, r, q, nr] = 0
        n.0 { h.0 { pack B in panels [o / nr][n.1][h.1][w][nr]
          o.0 { c { r.0 { n.1 { h.1 { w { taps x q x nr multiply-adds to E.local } } } } } } } }
        o.0 { c { E = E.local, vectors of o transposed to runs of r and q } }

    An element of A is read in place for each tap, without a copy of windows. A group of images, or of rows of one
    image, is as large as `held` bytes of A and B.

    A sum in steps is scheduled alike: P[n, c, o, r, q] over h and w, S[c, o, r, q] over n, E[o, c, r, q] = S[c, o, r,
    q]. P is one register tile, which is added to S after its pixels.

    Returns the outer loops. Raises ScheduleError for other blocks. `block` writes the result, and its nest must be
    unscheduled. A sum in steps requires several output channels and several pixels. Source: register tiles as in BLIS;
    the direct convolution of Georganas et al., SC 2018, whose update pass keeps taps in registers.
    """
    return _one_reduction(s, block, tiles) if len(node_of(s, block).sources) == 2 else _in_steps(s, block, tiles)


def _one_reduction(s: Schedule, block: Handle, tiles: GradientTiles) -> Gradient:
    o, c, r, q, n, h, w = _seven(s, block)
    b = operand_over(s, block, 0)
    count, lanes = even(s.extent(o), tiles.nr, tiles.lanes), min(tiles.lanes, s.extent(o))
    images, height = _groups(s, other_operand(s, block, b), b, tiles)
    out = s.cache_write(block, "local")
    size = count * lanes
    sizes: Sizes = {
        o: vectors_of(count, lanes),
        r: [min(tiles.taps, s.extent(r))],
        n: [images],
        h: [height],
    }
    tile = register_tile(s, [n, h, o, c, r], [n, h, w], [r, q, o], sizes)
    n0, h0, panel, *_ = tile.around
    s.transform_layout(block, target_of(s, block), lambda o, c, r, q: (o // size, c, r, q, o % size))
    pack = pack_panels(s, block, b, 0, size, h0, tiles.lanes)
    accumulate(s, block, tile, n0)
    s.prefetch(w, target_of(s, pack), AHEAD)
    _transposed(s, out, count, tiles)
    return Gradient(n0, h0, panel, c)


def _in_steps(s: Schedule, block: Handle, tiles: GradientTiles) -> Gradient:
    total = _producer(s, block)
    product = _producer(s, total)
    if len(node_of(s, product).sources) != 2 or len(s.get_loops(product)) != 7 or len(s.get_loops(total)) != 5:
        raise refusal(s, block, "conv_grad_weight", _NO_GRADIENT)
    _require_several(s, product)
    c, o, r, q, n = s.get_loops(total)
    b = operand_over(s, product, 2)
    count, lanes = even(s.extent(o), tiles.nr, tiles.lanes), min(tiles.lanes, s.extent(o))
    images, _ = _groups(s, other_operand(s, product, b), b, tiles)
    size, vectors = count * lanes, vectors_of(count, lanes)
    sums = register_tile(s, [n, o, c], [n], [r, q, o], {o: vectors, n: [images]})
    (n0, panel, c), (n1,) = sums.around, sums.reduction
    s.transform_layout(total, target_of(s, total), lambda c, o, r, q: (c, o // size, r, q, o % size))
    s.compute_at(product, n1)
    s.transform_layout(product, target_of(s, product), lambda n, c, o, r, q: (n, c, r, q, o))
    *_, channels, tap_rows, taps, h, w = by_axis(s, product, n1)
    tile = register_tile(s, [], [*h, *w], [*tap_rows, *taps, *channels], {channels[0]: vectors})
    pack = pack_panels(s, product, b, 2, size, n0, tiles.lanes)
    accumulate(s, product, tile)
    accumulate(s, total, sums, n0)
    s.prefetch(tile.reduction[-1], target_of(s, pack), AHEAD)
    _transposed(s, block, count, tiles)
    return Gradient(n0, n1, panel, c)


_NO_GRADIENT = "it is no gradient of a convolution's weights: a sum over n, h, w of two operands, or that in steps"


def _seven(s: Schedule, block: Handle) -> list[Handle]:
    """Return the loops o, c, r, q, n, h, w of a gradient. Raises ScheduleError for other blocks."""
    loops = s.get_loops(block)
    if len(loops) != 7 or node_of(s, block).spatial != 4:
        raise refusal(s, block, "conv_grad_weight", _NO_GRADIENT)
    return loops


def _require_several(s: Schedule, block: Handle) -> None:
    """Raise ScheduleError for a product of one output channel or one pixel, which would lack that loop in the sum."""
    _, _, o, _, _, h, w = node_of(s, block).axes
    for several in ((o,), (h, w)):
        if all(axis.size == 1 for axis in several):
            axis = " and ".join(f"'{axis.label}'" for axis in several)
            reason = f"there is one element along {axis}: nothing to tile"
            raise refusal(s, block, "conv_grad_weight", reason)


def _producer(s: Schedule, block: Handle) -> Handle:
    """Return the only producer of a block. Raises ScheduleError for none or several."""
    producers = s.get_producers(block)
    if len(producers) != 1:
        raise refusal(s, block, "conv_grad_weight", _NO_GRADIENT)
    return producers[0]


def _groups(s: Schedule, a: str, b: str, tiles: GradientTiles) -> tuple[int, int]:
    """Return the numbers of images, and of rows of an image, in a group, whose parts of the buffers `a` and `b` take at
    most `held` bytes in f32; at least 1, and evened out over the groups."""
    shapes = [s.program.buffers[name].shape for name in (a, b)]
    row = sum(4 * channels * width for _, channels, _, width in shapes)
    count, _, height, _ = shapes[1]
    image = row * height
    images = max(1, min(count, tiles.held // image))
    rows = max(1, min(height, tiles.held // row))
    return even(count, images, 1), even(height, rows, 1)


def _transposed(s: Schedule, block: Handle, count: int, tiles: GradientTiles) -> None:
    """Vectorize the copy `block` to E along output channels, `count` vectors in a panel, with a transpose to contiguous
    taps in registers. A copy without a loop over output channels stays as it is."""
    o, c, r, q = by_axis(s, block)
    if not o:  # one output channel: the loop over it is gone
        return
    panel, *lanes = by_vectors(s, o[0], tiles.lanes, count)
    s.reorder(panel, *c, *lanes[:-1], *r, *q, lanes[-1])
    in_vectors(s, [*r, *q, lanes[-1]])
