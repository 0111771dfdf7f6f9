"""Convolutions by Winograd's transforms: tiles of some rows are transformed, multiplied and transformed back in L2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from compiler.program.tree import Access, Block, Program
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.register_tile import accumulate, register_tile
from compiler.recipes.sizes import step_cycles
from compiler.recipes.steps import by_axis, in_vectors, inside, target_of
from compiler.schedule import Handle, Schedule, Size

MOST, FEWEST = 14, 7
"""The most Winograd tiles of a register tile, and the fewest of a block, if a row has as many."""
PANEL = 2.7
"""The approximate cycles of loading a vector of a panel of filters from L2."""
NEAR = 1.05
"""The largest cost ratio up to which fewer rows in a block are preferred: transformed tiles stay in L1 and L2."""


@dataclass(frozen=True)
class WinogradBlocks:
    """The labels of the blocks of a convolution by Winograd's transforms, as `alternatives.transforms.convolved` names
    them. `results` are the copy to the layout of the result and elementwise blocks after it, in program order.
    `reads_last`, `gives_last`: whether the image, and the result, have channels last."""

    border: str
    columns: str
    input: str
    filter: str
    product: str
    rows: str
    output: str
    results: tuple[str, ...]
    reads_last: bool
    gives_last: bool

    @property
    def row(self) -> int:
        """The axis of the result's rows, as a negative position from the end."""
        return -3 if self.gives_last else -2


@dataclass(frozen=True)
class WinogradTiles:
    """The tiles of a Winograd convolution: a block has `rows` rows of `columns` tiles; a register tile has `tiles`
    tiles, which may be an open choice, by `vectors` vectors of filters."""

    rows: int
    columns: int
    tiles: Size
    vectors: int


def transformed_tiles(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the schedule of a convolution in the form `winograd-2x2` or `winograd-4x4`, for the block of its products;
    nothing for any other block."""
    blocks = _blocks(draft, label)
    if blocks is not None:
        yield Alternative("winograd", partial(_apply, blocks=blocks), optional=False)


def _blocks(draft: Draft, label: str) -> WinogradBlocks | None:
    """Match the blocks around the product `label` of transformed tiles; None for other blocks."""
    program, product = draft.schedule.program, draft.block(label)
    sizes = [axis.size for axis in product.axes]
    if product.combiners != ("add",) or product.spatial != 5 or len(sizes) != 6 or sizes[0] != sizes[1]:
        return None
    input_chain = [product]
    for _ in range(3):  # input, columns, border
        writers = [draft.block(name) for name in _writers(program, input_chain[-1]) if name in draft.left]
        input_chain += writers
        if len(writers) != 1:
            return None
    filters = [name for name in _writers(program, product) if name not in draft.left]
    consumers = list(_readers(draft, product))
    if len(filters) != 1 or len(consumers) < 3:
        return None
    if any(block.combiners for block in (*input_chain[1:], *consumers)):
        return None
    ranks = [block.spatial for block in (*input_chain[1:], *consumers[:2])]
    if ranks != [5, 5, 4, 5, 5] or consumers[-1].spatial not in (4, 5):
        return None
    _, input, columns, border = (block.label for block in input_chain)
    rows, output, *results = (block.label for block in consumers)
    output_read = next(access for access in consumers[2].reads if access.buffer == consumers[1].writes[0].buffer)
    reads_last, gives_last = _is_last(input_chain[-1], input_chain[-1].reads[0]), _is_last(consumers[2], output_read)
    return WinogradBlocks(
        border, columns, input, filters[0], label, rows, output, tuple(results), reads_last, gives_last
    )


def _is_last(block: Block, access: Access) -> bool:
    """Return whether the last index of an access depends on the block's last spatial axis and no other."""
    return access.index[-1].variables() == {block.spatial - 1}


def _writers(program: Program, block: Block) -> list[str]:
    """Return the labels of the blocks that alone write a temporary that a block reads, in the order of its operands."""
    writers_of_sources = (program.writers[name] for name in block.sources if name in program.allocs)
    return [writers[0].label for writers in writers_of_sources if len(writers) == 1]


def _readers(draft: Draft, block: Block) -> Iterator[Block]:
    """Iterate over the unscheduled blocks that depend on a block, directly or not, in program order."""
    written = {block.writes[0].buffer}
    for label, other in draft.schedule.program.blocks.items():
        if written & set(other.sources) and label in draft.left:
            written.add(other.writes[0].buffer)
            yield other


def _apply(draft: Draft, blocks: WinogradBlocks) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(blocks.product)
    m, height = draft.block(blocks.rows).axes[3].size, draft.block(blocks.results[-1]).axes[blocks.row].size
    for label in blocks.results[:-1]:
        s.inline(s.get_block(label))
    tiles = _tiles(draft, draft.block(blocks.product), -(-height // m), lanes)
    border, rows, columns = winograd(s, blocks, tiles, m, lanes)
    draft.parallel(border)
    draft.parallel(rows, columns)
    b = blocks
    return (b.border, b.columns, b.input, b.product, b.rows, b.output, *b.results)


def _tiles(draft: Draft, product: Block, down: int, lanes: int) -> WinogradTiles:
    """Choose the tiles of a block, with vectors of `lanes` filters, whole rows if a transformed row fits half of L2; an
    image has `down` rows of Winograd tiles. Add the choice of the tiles of a register tile to the draft, by default
    that of the fewest cycles; it divides the block's tiles unless the block is one whole row."""
    _, points, _, across, filters, channels = (axis.size for axis in product.axes)
    machine, vectors = draft.machine, 2 if filters > lanes else 1
    fitting = machine.l2_bytes // (2 * 4 * points**2 * (channels + filters))
    columns = max(n for n in range(1, across + 1) if across % n == 0 and n <= max(fitting, FEWEST))
    largest, fewest = max(fitting, 2 * FEWEST), min(draft.threads, down)
    row_counts = [n for n in range(1, down + 1) if down % n == 0 and n * columns <= largest and down // n >= fewest]
    most = min((machine.registers - vectors - 1) // vectors, MOST)

    def cycles(rows: int, tile: int) -> float:
        """Estimate the cycles of a reduction step for each Winograd tile, with register tiles of `tile` tiles."""
        step = max(step_cycles(tile * vectors, tile + vectors), PANEL * vectors)
        return -(-rows * columns // tile) * step / (rows * columns)

    fitted = [
        (rows, tile)
        for rows in row_counts or [1]
        for tile in range(1, min(most, rows * columns) + 1)
        if rows * columns % tile == 0 or (rows == 1 and columns == across)
    ]
    fewest_cycles = min(cycles(*each) for each in fitted)
    near_best = [each for each in fitted if cycles(*each) <= NEAR * fewest_cycles]
    rows, best = min(near_best, key=lambda each: (each[0], cycles(*each)))
    options = [tile for r, tile in fitted if r == rows and 2 * tile >= best]
    return WinogradTiles(rows, columns, draft.choose(options, best, "tiles"), vectors)


def winograd(
    s: Schedule, blocks: WinogradBlocks, tiles: WinogradTiles, m: int, lanes: int
) -> tuple[Handle, Handle, Handle]:
    """Schedule a convolution by Winograd's transforms F(m x m, 3 x 3) in blocks of rows of tiles. m: the rows and
    columns of results of a tile. lanes: the elements of a vector. Return the loops over rows of the border copy, and
    over rows and columns of blocks.

        border; columns; input; product; rows; output; result
      ->
        border of an image, channels in lanes
        h.0 { w.0 {
          input, from columns of each tile, channels in lanes
          product, a register tile of tiles and vectors of filters over all channels
          k.0 = vectors of filters { output, from rows of each tile, filters in lanes
            result, transposed in registers } } }

    Source: Lavin and Gray 2015; the blocks are those of oneDNN's fused Winograd.
    """
    result, border, product = map(s.get_block, (blocks.results[-1], blocks.border, blocks.product))
    n, *axes = by_axis(s, result)
    (k,), *between, (h,), (w,) = (axes[-1], *axes[:-1]) if blocks.gives_last else axes
    step = tiles.columns * m
    vector = min(lanes, step) if step >= s.extent(w) else max(n for n in range(1, lanes + 1) if step % n == 0)
    h0, h1 = s.split(h, [None, tiles.rows * m])
    k0, k1 = s.split(k, [None, lanes])
    w0, *w1 = s.split(w, [None, step] if blocks.gives_last else [None, -(-step // vector), vector])
    images = [loop for loop in (*n, *chain(*between)) if s.extent(loop) > 1]
    s.reorder(*n, *chain(*between), h0, w0, k0, h1, *w1, k1)
    _transform_back(s, blocks, k0)
    s.compute_at(product, w0)
    _transform(s, blocks, w0, lanes)
    in_vectors(s, [k1] if blocks.gives_last else [w1[-1], k1])
    _multiply(s, blocks, tiles, w0, lanes)
    _transform_filters(s, blocks)
    if images:
        s.compute_at(border, images[-1])
    _, (y,), (z,), (c,) = by_axis(s, border, images[-1] if images else None)
    c0, c1 = s.split(c, [None, lanes])
    if blocks.reads_last:
        s.reorder(y, z, c0, c1)
        in_vectors(s, [c1])
        return y, h0, w0
    z0, z1 = s.split(z, [None, lanes])
    s.reorder(y, c0, z0, z1, c1)
    in_vectors(s, [z1, c1])
    return y, h0, w0


def _transform_back(s: Schedule, blocks: WinogradBlocks, at: Handle) -> None:
    """Compute the results of each tile from its transformed rows inside the loop `at` over vectors of filters."""
    rows, output = map(s.get_block, (blocks.rows, blocks.output))
    s.compute_at(output, at)
    down, across, p, q, k = by_axis(s, output, at)
    s.reorder(*down, *across, *p, *q, *k)
    tile = [at, *down, *across][-1]
    s.compute_at(rows, tile)
    for block in (rows, output):
        in_vectors(s, inside(s, block, tile))


def _transform(s: Schedule, blocks: WinogradBlocks, at: Handle, lanes: int) -> None:
    """Compute the transformed tiles from their transformed columns inside the loop `at`, for a vector of `lanes`
    channels."""
    columns, input = map(s.get_block, (blocks.columns, blocks.input))
    s.compute_at(input, at)
    i, j, down, across, (c,) = by_axis(s, input, at)
    c0, c1 = s.split(c, [None, lanes])
    s.reorder(*down, *across, c0, *i, *j, c1)
    s.compute_at(columns, c0)
    for block in (columns, input):
        in_vectors(s, inside(s, block, c0))


def _transform_filters(s: Schedule, blocks: WinogradBlocks) -> None:
    """Transform the filters channel by channel: the transformed columns of a channel's filters stay in the caches."""
    filters = s.get_block(blocks.filter)
    i, j, (channel,), filter = by_axis(s, filters)
    s.reorder(channel, *i, *j, *filter)
    for columns in s.get_producers(filters):
        s.compute_at(columns, channel)


def _multiply(s: Schedule, blocks: WinogradBlocks, tiles: WinogradTiles, at: Handle, lanes: int) -> None:
    """Tile the products of transformed tiles inside the loop `at` in registers, with packed panels of vectors of
    `lanes` filters."""
    product, panel = s.get_block(blocks.product), tiles.vectors * lanes
    s.transform_layout(product, target_of(s, s.get_block(blocks.filter)), tiles=[1, 1, 1, panel], order=[0, 1, 3, 2, 4])
    i, j, down, across, (k,), (c,) = by_axis(s, product, at)
    x = s.fuse(*down, *across) if down and across else [*down, *across][0]
    tile = register_tile(s, [*i, *j, k, x], [c], [x, k], {x: [tiles.tiles], k: [tiles.vectors, lanes]})
    accumulate(s, product, tile)
