"""Attention on tensor cores: scores and powers stay in the registers of warps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from xdsl.ir.affine import AffineExpr

from compiler.intrinsics.warp import COLUMNS, LANES, QUAD, ROWS
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.gpu.attention.blocks import (
    BLOCKS,
    NAMES,
    StreamedBlocks,
    block_by_block,
    in_one_place,
    is_streamed,
    on_blocks,
    queries_alike,
    set_first,
)
from compiler.recipes.gpu.spread import spread_on_threads
from compiler.recipes.gpu.tiles import pad_rows
from compiler.recipes.gpu.warp import DEPTH, FIRST, KINDS
from compiler.recipes.steps import fused, inside, operands, target_of
from compiler.schedule import Handle, Schedule

HALVES, GROUPS, PAIR = 2, 8, 2
"""An accumulator of 16 rows and 8 columns: two halves of 8 rows, a thread of a warp for each row and each pair of
columns, of which a row has QUAD."""
NARROW = 64
"""The most columns of results of which a thread's registers hold two tiles of queries beside their scores."""
VECTOR = 8
"""The elements that a thread copies at once."""


@dataclass(frozen=True)
class StreamTiles:
    """Tiles of an attention: warps of a block of threads, MMA tiles of 16 queries of a warp, keys of an iteration, a
    multiple of 16."""

    warps: int = 4
    tiles: int = 1
    keys: int = 64

    @property
    def queries(self) -> int:
        """The queries of a block of threads."""
        return self.warps * self.tiles * ROWS


def streamed_on_warps(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of an attention in the form `streamed_attention`: one kernel on tensor cores. Yields nothing for
    other programs, for blocks other than their result, if a part of the program is scheduled, and for a dtype that the
    GPU's tensor cores lack."""
    program = draft.schedule.program
    if not is_streamed(draft, label):
        return
    element = type(program.buffers[NAMES.powers].element)
    if element not in FIRST or int(draft.gpu.arch.removeprefix("sm_")) < FIRST[element]:
        return
    *batch, queries, keys = program.buffers[NAMES.powers].shape
    columns, blocks = program.buffers[NAMES.values].shape[-1], program.buffers[NAMES.running].shape[-2]
    small = StreamTiles(keys=keys // blocks)
    large = replace(small, tiles=2) if columns <= NARROW else replace(small, warps=8)
    fills = prod(batch) * queries >= large.queries * draft.gpu.multiprocessors
    fits = queries % large.queries == 0 and queries_alike(program, large.queries)
    for tiles in (large, small) if fills and fits else (small,):
        name = f"streamed on tensor cores, {tiles.queries} queries and {tiles.keys} keys a block"
        yield Alternative(name, partial(_apply, tiles=tiles))


def _apply(draft: Draft, tiles: StreamTiles) -> Sequence[str]:
    stream_on_warps(draft.schedule, tiles)
    return draft.left


def stream_on_warps(s: Schedule, tiles: StreamTiles) -> None:
    """Schedule an attention in the form that `streamed_attention` gives, as one kernel on the tensor cores of a GPU.

        scores; top.parts; top; running; powers; part; wide; result
      ->
        m.0 block_x { rows.shared = Q; alloc running.local, wide.local
          n.0 { keys.shared = K; thread_y { scores = mma of rows and keys, a fragment
                                             thread_x { top.parts = max of scores };  top = max over four threads
                                             thread_x { running = max of running and top;  powers } }
                values.shared = V; thread_y { part = mma of powers and values
                                               thread_x { wide = wide * growth of running + part } } }
          thread_y { thread_x { Y = wide / the last columns of wide } } }

    A warp has 16 queries for each tile, a block of threads all warps' queries. The threads of a warp compute with the
    elements of accumulators that they hold: each has the maximum of its rows, which four threads share by shuffles, and
    the powers, narrowed, are operand a of the second product where they are. Raises ScheduleError for other programs.
    Source: Dao, FlashAttention-2, 2023. `tiles.keys` is ignored: the program states its blocks of keys.
    """
    kind = KINDS[type(s.program.buffers[NAMES.powers].element)]
    blocks = StreamedBlocks(*map(s.get_block, BLOCKS))
    many, m0, n0 = block_by_block(s, blocks, tiles.queries)
    part_loops = _tile_part(s, blocks.part, n0, tiles)
    s.compute_at(s.get_block(NAMES.columns), part_loops.depth)
    s.compute_at(s.get_block(NAMES.values), n0)
    in_one_place(s, blocks, n0)
    _scores(s, blocks.scores, blocks.keys, n0, tiles, kind)
    _fetch(s, blocks.rows, m0, tiles)
    _maxima(s, blocks, n0, tiles)
    _powers(s, blocks.powers, n0, tiles)
    _values(s, blocks.part, part_loops, tiles, kind)
    _part(s, blocks.part, part_loops, kind)
    s.set_scope(blocks.wide, "local")
    m, q, lane = inside(s, blocks.wide, n0)
    _on_lanes(s, (m, q, lane), tiles)
    set_first(s, blocks, n0)
    m, e = inside(s, blocks.result, m0)
    _on_lanes(s, (m, *s.split(e, [None, COLUMNS])), tiles, vector=True)
    on_blocks(s, [*many, m0])


@dataclass(frozen=True)
class _PartLoops:
    """The loops of the second product: over blocks of keys, warps, 16 keys, MMA tiles of queries and of columns, and
    the outermost of one tile."""

    keys: Handle
    warps: Handle
    depth: Handle
    tiles: tuple[Handle, Handle]
    tile: Handle


def _tile_part(s: Schedule, part: Handle, at: Handle, tiles: StreamTiles) -> _PartLoops:
    m, q, lane, n = inside(s, part, at)
    m1, m2, m3 = s.split(m, [tiles.warps, tiles.tiles, ROWS])
    n1, n2 = s.split(n, [None, DEPTH])
    s.reorder(m1, n1, m2, q, m3, lane, n2)
    return _PartLoops(at, m1, n1, (m2, q), m3)


def _scores(s: Schedule, scores: Handle, keys: Handle, at: Handle, tiles: StreamTiles, kind: str) -> None:
    """Compute the scores of a block of keys inside the loop `at`, in fragments, from rows of queries and keys in shared
    memory. `kind`: the dtype's name in intrinsics."""
    m, n, d = inside(s, scores, at)
    m1, m2, m3 = s.split(m, [tiles.warps, tiles.tiles, ROWS])
    n1, n2 = s.split(n, [None, COLUMNS])
    d1, d2 = s.split(d, [None, DEPTH])
    s.reorder(m1, d1, m2, n1, m3, n2, d2)
    s.set_scope(scores, "fragment")
    s.transform_layout(scores, target_of(s, scores), _in_tiles(COLUMNS))
    _fetch(s, keys, at, tiles)
    names = operands(s, scores)
    _load(s, scores, names[0], d1, ROWS, f"mma.load.a.{kind}")
    _load(s, scores, names[1], d1, COLUMNS, f"mma.load.b%.{kind}.t")
    clear = s.decompose_reduction(scores, d1)
    _zero(s, clear, (m2, n1), m3)
    s.unroll(d1)
    _on_warps(s, m1, (m2, n1), m3, f"mma.f32.{kind}")


def _fetch(s: Schedule, block: Handle, at: Handle, tiles: StreamTiles) -> None:
    """Copy rows to shared memory by all threads of a block of threads, inside the loop `at`; the rows begin in
    different banks."""
    s.set_scope(block, "shared")
    spread_on_threads(s, fused(s, inside(s, block, at)), (tiles.warps, LANES), VECTOR)
    pad_rows(s, block, VECTOR)


def _load(s: Schedule, block: Handle, name: str, at: Handle, size: int, intrinsic: str) -> None:
    """Load the MMA tiles of `size` rows of the operand `name` that an iteration of `at` reads, by `intrinsic`."""
    load = s.cache_read(block, name, "fragment")
    s.compute_at(load, at)
    s.transform_layout(block, target_of(s, load), _OPERANDS[size])
    rows, _ = inside(s, load, at)
    many, row = s.split(rows, [None, size])
    if size == COLUMNS:
        _load_tiles(s, load, at, intrinsic)
    else:
        s.unroll(many)
        s.tensorize(row, intrinsic)


_OPERANDS: dict[int, Callable[..., tuple[AffineExpr, ...]]] = {
    ROWS: lambda *b: (*b[:-2], b[-2] // ROWS, b[-2] % ROWS, b[-1] % DEPTH),
    COLUMNS: lambda *b: (*b[:-2], b[-2] // COLUMNS, b[-1] % DEPTH, b[-2] % COLUMNS),
}
"""The index map to MMA tiles of operand a, by rows, and of operand b, whose columns are rows in memory."""


def _in_tiles(columns: int) -> Callable[..., tuple[AffineExpr, ...]]:
    """Return the index map from rows and columns to MMA tiles of ROWS rows and `columns` columns."""
    return lambda *b: (*b[:-2], b[-2] // ROWS, b[-1] // columns, b[-2] % ROWS, b[-1] % columns)


def _zero(s: Schedule, clear: Handle, tiles: Sequence[Handle], tile: Handle) -> None:
    """Schedule the block `clear` to set accumulators to zero, a `tile` at a time in the loops `tiles`. Loops of `tiles`
    that are not around the block, as those of one iteration, are skipped."""
    by_label = {s.label(loop): loop for loop in s.get_loops(clear)}
    for label in map(s.label, tiles):
        if label in by_label:  # a loop of one iteration is not there
            s.unroll(by_label[label])
    s.tensorize(by_label[s.label(tile)], "mma.zero.f32")


def _on_warps(s: Schedule, warps: Handle, tiles: Sequence[Handle], tile: Handle, intrinsic: str) -> None:
    s.bind(warps, "thread_y")
    for loop in tiles:
        s.unroll(loop)
    s.tensorize(tile, intrinsic)


def _on_lanes(s: Schedule, loops: Sequence[Handle], tiles: StreamTiles, vector: bool = False) -> None:
    """Bind loops over queries, tiles of columns and their columns to the threads that have their accumulators in
    registers; `vector`: two neighbouring columns at once."""
    m, many, n = loops
    warp, tile, half, group = s.split(m, [tiles.warps, tiles.tiles, HALVES, GROUPS])
    quad, pair = s.split(n, [QUAD, PAIR])
    s.reorder(warp, group, quad, tile, many, half, pair)
    s.bind(warp, "thread_y")
    s.bind(s.fuse(group, quad), "thread_x")
    for loop in (tile, many, half):
        s.unroll(loop)
    if vector:
        s.vectorize(pair)
    else:
        s.unroll(pair)


def _maxima(s: Schedule, blocks: StreamedBlocks, at: Handle, tiles: StreamTiles) -> None:
    """Reduce the scores of each thread to their maximum in registers, inside the loop `at`, then by shuffles those of
    the threads of a row, and compute the maximum so far by each of them."""
    for block in (blocks.parts, blocks.top, blocks.running):
        s.set_scope(block, "local")
    for block in (blocks.parts, blocks.running):
        m, j, *rest = inside(s, block, at)
        warp, tile, half, group = s.split(m, [tiles.warps, tiles.tiles, HALVES, GROUPS])
        s.reorder(warp, group, j, tile, half, *rest)
        s.bind(warp, "thread_y")
        s.bind(s.fuse(group, j), "thread_x")
        for loop in (tile, half, *rest):
            s.unroll(loop)
    m, *_ = inside(s, blocks.top, at)
    warp, tile, half, group = s.split(m, [tiles.warps, tiles.tiles, HALVES, GROUPS])
    s.bind(warp, "thread_y")
    for loop in (tile, half):
        s.unroll(loop)
    s.tensorize(group, "quad.max.f32")


def _powers(s: Schedule, powers: Handle, at: Handle, tiles: StreamTiles) -> None:
    """Compute the powers of a block of keys inside the loop `at`, as fragments of operand a, each by the thread that
    has the score."""
    s.set_scope(powers, "fragment")
    s.transform_layout(powers, target_of(s, powers), _in_tiles(DEPTH))
    m, n = inside(s, powers, at)
    _on_lanes(s, (m, *s.split(n, [None, COLUMNS])), tiles)


def _values(s: Schedule, part: Handle, loops: _PartLoops, tiles: StreamTiles, kind: str) -> None:
    """Copy a block of values to shared memory, and from there the MMA tiles of 16 keys to fragments of operand b. The
    last tile, of ones, is set by the threads that hold it. `kind`: the dtype's name in intrinsics."""
    values, columns = s.get_block(NAMES.values), s.get_block(NAMES.columns)
    _fetch(s, values, loops.keys, tiles)
    s.set_scope(columns, "fragment")
    s.transform_layout(part, target_of(s, columns), lambda *b: (*b[:-3], b[-2], b[-3], b[-1]))
    row, many, lane = inside(s, columns, loops.depth)
    s.reorder(many, row, lane)
    _, rest = s.partition(many, s.extent(many) - 1)
    ones = s.get_block(_only_block(s, rest))
    _load_tiles(s, columns, loops.depth, f"mma.load.b%.{kind}")
    _, row, lane = inside(s, ones, loops.depth)
    half, quad, pair = s.split(row, [None, QUAD, PAIR])
    s.reorder(lane, quad, half, pair)
    s.bind(s.fuse(lane, quad), "thread_x")
    for loop in (half, pair):
        s.unroll(loop)


def _only_block(s: Schedule, loop: Handle) -> str:
    """Return the label of the block in a loop that contains exactly one."""
    (number,) = [node.number for node in s.program.loops.values() if node.label == s.label(loop)]
    (label,) = [b for b in s.program.blocks if number in {around.number for around in s.program.enclosing(b)}]
    return label


def _load_tiles(s: Schedule, load: Handle, at: Handle, intrinsic: str) -> None:
    """Load MMA tiles of operand b, two at once if they are even in number; `%` in the name of the intrinsic stands for
    the 2 of two tiles. The outermost loop inside `at` is over tiles."""
    many, row, _ = inside(s, load, at)
    if s.extent(many) % 2:
        s.unroll(many)
        s.tensorize(row, intrinsic.replace("%", ""))
    else:
        many, two = s.split(many, [None, 2])
        s.unroll(many)
        s.tensorize(two, intrinsic.replace("%", "2"))


def _part(s: Schedule, part: Handle, loops: _PartLoops, kind: str) -> None:
    s.set_scope(part, "fragment")
    s.transform_layout(part, target_of(s, part), lambda *b: (*b[:-4], b[-4] // ROWS, b[-2], b[-4] % ROWS, b[-1]))
    clear = s.decompose_reduction(part, loops.depth)
    _zero(s, clear, loops.tiles, loops.tile)
    s.unroll(loops.depth)
    _on_warps(s, loops.warps, loops.tiles, loops.tile, f"mma.f32.{kind}")
