"""Attention on the tensor cores of GPUs: one kernel, whose scores and powers stay in the registers of warps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from xdsl.dialects.builtin import Float32Type
from xdsl.ir.affine import AffineExpr

from compiler.alternatives import StreamedNames
from compiler.intrinsics.warp import COLUMNS, LANES, ROWS
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.gpu.spread import spread_on_threads
from compiler.recipes.gpu.tiles import pad_rows
from compiler.recipes.gpu.warp import DEPTH, FIRST, KINDS
from compiler.recipes.steps import fused, inside, node_of, operands, refusal, target_of
from compiler.schedule import Handle, Schedule

NAMES = StreamedNames()
HALVES, GROUPS, QUAD, PAIR = 2, 8, 4, 2
"""An accumulator of 16 rows and 8 columns: two halves of 8 rows, a thread of a warp for each row and each pair of
columns, of which a row has four."""
BLOCK = 64
"""The most keys of a block. Of fewer keys a block has half, since a loop of one iteration reduces nothing."""
NARROW = 64
"""The most columns of results of which a thread's registers hold two tiles of queries beside their scores."""
EDGE = 16
"""The threads of a block along queries, and along keys and columns, without tensor cores."""
WORD = 4
"""The elements of f32 that a thread copies at once."""
VECTOR = 8
"""The elements that a thread copies at once."""


@dataclass(frozen=True)
class StreamTiles:
    """Tiles of an attention: warps of a block of threads, MMA tiles of 16 queries of a warp, keys of an iteration."""

    warps: int = 4
    tiles: int = 1
    keys: int = 64

    @property
    def queries(self) -> int:
        """The queries of a block of threads."""
        return self.warps * self.tiles * ROWS


@dataclass(frozen=True)
class ThreadStreamTiles:
    """Tiles of an attention without tensor cores: the queries and the keys of each of 16 x 16 threads."""

    rows: int = 4
    columns: int = 2

    @property
    def queries(self) -> int:
        """The queries of a block of threads."""
        return self.rows * EDGE

    @property
    def keys(self) -> int:
        """The keys of a block."""
        return self.columns * EDGE


def streamed_on_warps(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of an attention in the form `streamed_attention`: one kernel on tensor cores. Yields nothing for
    other programs, and for a dtype that the GPU's tensor cores lack."""
    if not _is_streamed(draft, label):
        return
    program = draft.schedule.program
    element = type(program.buffers[NAMES.powers].element)
    if element not in FIRST or int(draft.gpu.arch.removeprefix("sm_")) < FIRST[element]:
        return
    *batch, queries, keys = program.buffers[NAMES.powers].shape
    columns = program.buffers[NAMES.values].shape[-1]
    most = BLOCK // (1 if columns % BLOCK == 0 else 2)  # uneven rows take registers for their addresses
    block = min(most, keys // 2)
    large = StreamTiles(tiles=2, keys=BLOCK // 2) if columns <= NARROW else StreamTiles(warps=8, keys=block)
    fills = prod(batch) * queries >= large.queries * draft.gpu.multiprocessors
    small = dict.fromkeys((StreamTiles(keys=block), StreamTiles(keys=BLOCK // 2)))
    for tiles in (large, *small) if fills and queries % large.queries == 0 else small:
        name = f"streamed on tensor cores, {tiles.queries} queries and {tiles.keys} keys a block"
        yield Alternative(name, partial(_apply, tiles=tiles))


def _is_streamed(draft: Draft, label: str) -> bool:
    """Return whether a block is the result of a program in the form `streamed_attention`, of which nothing is
    scheduled."""
    return label == NAMES.result and {*vars(NAMES).values()} <= {*draft.left}


def streamed_on_threads(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of an attention of f32 in the form `streamed_attention`: one kernel without tensor cores, by
    tiles that fit in shared memory. Yields nothing for other programs."""
    if not _is_streamed(draft, label):
        return
    program = draft.schedule.program
    powers, columns = program.buffers[NAMES.powers], program.buffers[NAMES.values].shape[-1]
    if not isinstance(powers.element, Float32Type):
        return
    depth = program.buffers[NAMES.rows].shape[-1]
    for tiles in (ThreadStreamTiles(4, 2), ThreadStreamTiles(2, 2), ThreadStreamTiles(2, 1)):
        rows = tiles.keys * (2 * depth + columns + 6 * WORD) + tiles.queries * (depth + tiles.keys + 4 * WORD)
        if 4 * rows <= draft.gpu.block_shared_bytes and (tiles.rows < 4 or columns <= NARROW):
            name = f"streamed on threads, {tiles.queries} queries and {tiles.keys} keys a block"
            yield Alternative(name, partial(_apply_on_threads, tiles=tiles))


def _apply_on_threads(draft: Draft, tiles: ThreadStreamTiles) -> Sequence[str]:
    stream_on_threads(draft.schedule, tiles)
    return draft.left


def _apply(draft: Draft, tiles: StreamTiles) -> Sequence[str]:
    stream_on_warps(draft.schedule, tiles)
    return draft.left


def stream_on_warps(s: Schedule, tiles: StreamTiles) -> None:
    """Schedule an attention in the form that `streamed_attention` gives, as one kernel on the tensor cores of a GPU.

        scores; top; scores.again; powers; wide; result
      ->
        m.0 block_x { rows.shared = Q; alloc top.local, wide fragment
          n.0 { keys.shared = K; thread_y { scores = mma of rows and keys, a fragment
                                             thread_x { top.local = max of top.local and scores } } }
          top = max of top.local over the four threads of a row
          n.0 { keys.shared = K; values.shared = V; thread_y { scores.again = mma of rows and keys
                                                               thread_x { powers = exp(scores.again - top) }
                                                               wide += mma of powers and values } }
          thread_y { thread_x { Y = wide / the last columns of wide } } }

    A warp has 16 queries for each tile, a block of threads all warps' queries. The threads of a warp compute with the
    elements of accumulators that they hold: the maximum of a row is finished once, behind the loop over keys, and the
    powers, narrowed, are operand a of the second product where they are. Raises ScheduleError for other programs.
    Source: Dao, FlashAttention-2, 2023.
    """
    result, wide, powers, top = map(s.get_block, (NAMES.result, NAMES.wide, NAMES.powers, NAMES.top))
    logits = {name: _logits(s, s.get_block(name)) for name in (NAMES.top, NAMES.powers)}
    for block in [block for chain in logits.values() for block in chain]:
        s.inline(block)
    kind = KINDS[type(s.program.buffers[NAMES.powers].element)]
    *many, m, e = _result_loops(s, result)
    m0, m = s.split(m, [None, tiles.queries])
    s.reorder(*many, m0, m, e)
    s.compute_at(wide, m0)
    wide_loops = _tile_wide(s, wide, m0, tiles)
    n0 = wide_loops.keys
    s.compute_at(powers, n0)
    s.compute_at(top, m0)
    top_m, top_n = inside(s, top, m0)
    top_n0, top_n = s.split(top_n, [None, tiles.keys])
    s.reorder(top_n0, top_m, top_n)
    for scores, keys, at in ((NAMES.scores, NAMES.keys, top_n0), (NAMES.scores_again, NAMES.keys_again, n0)):
        _scores(s, s.get_block(scores), s.get_block(keys), at, tiles, kind)
    rows = s.get_block(NAMES.rows)
    s.compute_at(rows, m0)
    _fetch(s, rows, m0, tiles)
    _top(s, top, (m0, top_n0), (top_m, top_n), tiles)
    _powers(s, powers, n0, tiles)
    _values(s, wide, wide_loops, tiles, kind)
    _wide(s, wide, wide_loops, kind)
    _on_lanes(s, inside(s, result, m0), tiles, vector=True)
    s.bind(fused(s, [*many, m0]), "block_x")


def stream_on_threads(s: Schedule, tiles: ThreadStreamTiles) -> None:
    """Schedule an attention of f32 in the form that `streamed_attention` gives, as one kernel without tensor cores.

        scores; top; scores.again; powers; wide; result
      ->
        m.0 block_x { rows.shared = Q; alloc top.local, wide local
          n.0 { keys.shared = K; thread_y { thread_x { scores += rows * keys, local } }
                thread_y { thread_x { top.local = max of top.local and scores } } }
          top = max of top.local over the threads along x
          n.0 { keys.shared = K; values.shared = V; thread_y { thread_x { scores.again += rows * keys, local } }
                thread_y { thread_x { powers.shared = exp(scores.again - top) } }
                thread_y { thread_x { wide += powers * values } } }
          thread_y { thread_x { Y = wide / the last column of wide } } }

    16 x 16 threads have rows of queries along y, columns along x. Raises ScheduleError for other programs.
    """
    result, wide, powers, top = map(s.get_block, (NAMES.result, NAMES.wide, NAMES.powers, NAMES.top))
    for block in [block for name in (NAMES.top, NAMES.powers) for block in _logits(s, s.get_block(name))]:
        s.inline(block)
    s.inline(s.get_block(NAMES.columns))
    *many, m, e = _result_loops(s, result)
    m0, m = s.split(m, [None, tiles.queries])
    s.reorder(*many, m0, m, e)
    s.compute_at(wide, m0)
    m, q, lane, n = inside(s, wide, m0)
    y, r = s.split(m, [EDGE, tiles.rows])
    n0, n = s.split(n, [None, tiles.keys])
    s.reorder(n0, y, lane, n, r, q)
    s.compute_at(powers, n0)
    s.compute_at(top, m0)
    top_m, top_n = inside(s, top, m0)
    top_n0, top_n = s.split(top_n, [None, tiles.keys])
    s.reorder(top_n0, top_m, top_n)
    for scores, keys, at in ((NAMES.scores, NAMES.keys, top_n0), (NAMES.scores_again, NAMES.keys_again, n0)):
        _scores_on_threads(s, s.get_block(scores), s.get_block(keys), at, tiles)
    rows, values = s.get_block(NAMES.rows), s.get_block(NAMES.values)
    s.compute_at(rows, m0)
    s.compute_at(values, n0)
    for fetch, at in ((rows, m0), (values, n0)):
        _fetch_words(s, fetch, at)
    _top_on_threads(s, top, (m0, top_n0), (top_m, top_n), tiles)
    s.set_scope(powers, "shared")
    _on_threads(s, inside(s, powers, n0), tiles)
    pad_rows(s, powers, WORD)
    s.set_scope(wide, "local")
    clear = s.decompose_reduction(wide, n0)
    for block in (clear, wide):
        by_label = {s.label(loop): loop for loop in s.get_loops(block)}
        s.bind(by_label[s.label(y)], "thread_y")
        s.bind(by_label[s.label(lane)], "thread_x")
        for label in map(s.label, (r, q)):
            s.unroll(by_label[label])
    _on_threads(s, inside(s, result, m0), tiles)
    s.bind(fused(s, [*many, m0]), "block_x")


def _on_threads(s: Schedule, loops: Sequence[Handle], tiles: ThreadStreamTiles) -> None:
    """Bind the loops over queries and columns to EDGE threads along y and x: a thread has `tiles.rows` neighbouring
    queries, and every EDGE-th column, in unrolled loops."""
    m, n = loops
    y, r = s.split(m, [EDGE, tiles.rows])
    c, x = s.split(n, [None, EDGE])
    s.reorder(y, x, r, c)
    s.bind(y, "thread_y")
    s.bind(x, "thread_x")
    s.unroll(r)
    s.unroll(c)


def _scores_on_threads(s: Schedule, scores: Handle, keys: Handle, at: Handle, tiles: ThreadStreamTiles) -> None:
    """Compute the scores of a block of keys inside the loop `at`, in registers, from rows of queries and keys in shared
    memory."""
    s.compute_at(scores, at)
    s.compute_at(keys, at)
    _fetch_words(s, keys, at)
    s.set_scope(scores, "local")
    m, n, d = inside(s, scores, at)
    y, r = s.split(m, [EDGE, tiles.rows])
    c, x = s.split(n, [None, EDGE])
    s.reorder(y, x, d, r, c)
    s.bind(y, "thread_y")
    s.bind(x, "thread_x")
    s.unroll(r)
    s.unroll(c)


def _fetch_words(s: Schedule, block: Handle, at: Handle) -> None:
    """Copy rows of f32 to shared memory by all threads of a block, inside the loop `at`."""
    s.set_scope(block, "shared")
    spread_on_threads(s, fused(s, inside(s, block, at)), (EDGE, EDGE), WORD)
    pad_rows(s, block, WORD)


def _top_on_threads(
    s: Schedule, top: Handle, at: tuple[Handle, Handle], loops: tuple[Handle, Handle], tiles: ThreadStreamTiles
) -> None:
    """Reduce the scores of each thread, in registers, and behind the loop over keys those of the threads along x. at:
    the loops over blocks of queries and of keys; loops: those over queries and keys inside."""
    (m0, n0), (m, n) = at, loops
    y, r = s.split(m, [EDGE, tiles.rows])
    c, x = s.split(n, [None, EDGE])
    s.reorder(y, x, r, c)
    partial_top = s.rfactor(top, x)
    s.set_scope(top, "shared")
    copy = s.cache_write(partial_top, "local")
    s.set_scope(copy, "shared")
    for block, outer in ((partial_top, n0), (copy, m0)):
        if block is copy:
            x, m = inside(s, copy, m0)
            y, r = s.split(m, [EDGE, tiles.rows])
            s.reorder(y, x, r)
        y, x, *rest = inside(s, block, outer)
        s.bind(y, "thread_y")
        s.bind(x, "thread_x")
        for loop in rest:
            s.unroll(loop)
    y, *_ = inside(s, top, m0)
    s.bind(y, "thread_y")


@dataclass(frozen=True)
class _WideLoops:
    """The loops of the second product: over blocks of keys, warps, 16 keys, MMA tiles of queries and of columns, and
    the outermost of one tile."""

    keys: Handle
    warps: Handle
    depth: Handle
    tiles: tuple[Handle, Handle]
    tile: Handle


def _result_loops(s: Schedule, result: Handle) -> list[Handle]:
    """Return the loops of the result: over batches, queries and columns. Raises ScheduleError if one is missing."""
    node, loops = node_of(s, result), s.get_loops(result)
    read = node.reads[0]
    by_number = {loop.number: handle for handle, loop in zip(loops, s.program.enclosing(NAMES.result), strict=True)}
    m = {by_number[v] for v in node.at(read.index[-3], s.program.ranges).variables()}
    e = {by_number[v] for v in node.at(read.index[-2], s.program.ranges).variables()}
    if len(m) != 1 or len(e) != 1 or m == e:
        raise refusal(s, result, "stream_on_warps", "it has no loop over queries and no loop over columns")
    return [*(loop for loop in loops if loop not in m | e), *m, *e]


def _logits(s: Schedule, block: Handle) -> list[Handle]:
    """Return the elementwise blocks between the scores and a reader of logits, the last first."""
    blocks: list[Handle] = []
    while True:
        names = (NAMES.scores, NAMES.scores_again, NAMES.top)
        before = [h for h in s.get_producers(block) if s.label(h) not in names]
        if not before:
            return blocks
        (block,) = before
        blocks.append(block)


def _tile_wide(s: Schedule, wide: Handle, at: Handle, tiles: StreamTiles) -> _WideLoops:
    m, q, lane, n = inside(s, wide, at)
    m1, m2, m3 = s.split(m, [tiles.warps, tiles.tiles, ROWS])
    n0, n1, n2 = s.split(n, [None, tiles.keys // DEPTH, DEPTH])
    s.reorder(n0, m1, n1, m2, q, m3, lane, n2)
    return _WideLoops(n0, m1, n1, (m2, q), m3)


def _scores(s: Schedule, scores: Handle, keys: Handle, at: Handle, tiles: StreamTiles, kind: str) -> None:
    """Compute the scores of a block of keys inside the loop `at`, in fragments, from rows of queries and keys in shared
    memory. `kind`: the dtype's name in intrinsics."""
    s.compute_at(scores, at)
    s.compute_at(keys, at)
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
    """Schedule the block `clear` to set accumulators to zero, a `tile` at a time in the loops `tiles`."""
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
    """Bind loops over queries and columns to the threads that have their accumulators in registers; `vector`: two
    neighbouring columns at once."""
    m, n = loops
    warp, tile, half, group = s.split(m, [tiles.warps, tiles.tiles, HALVES, GROUPS])
    many, quad, pair = s.split(n, [None, QUAD, PAIR])
    s.reorder(warp, group, quad, tile, many, half, pair)
    s.bind(warp, "thread_y")
    s.bind(s.fuse(group, quad), "thread_x")
    for loop in (tile, many, half):
        s.unroll(loop)
    if vector:
        s.vectorize(pair)
    else:
        s.unroll(pair)


def _top(s: Schedule, top: Handle, at: tuple[Handle, Handle], loops: tuple[Handle, Handle], tiles: StreamTiles) -> None:
    """Reduce the scores of each thread in registers; after the loop over keys, reduce those of the threads of a row.
    at: the loops over blocks of queries and of keys; loops: those over queries and keys inside."""
    (m0, n0), (m, n) = at, loops
    warp, tile, half, group = s.split(m, [tiles.warps, tiles.tiles, HALVES, GROUPS])
    many, quad, pair = s.split(n, [None, QUAD, PAIR])
    s.reorder(warp, group, quad, tile, half, many, pair)
    partial_top = s.rfactor(top, quad)
    s.set_scope(top, "shared")
    copy = s.cache_write(partial_top, "local")
    s.set_scope(copy, "shared")
    warp, group, quad, *rest = inside(s, partial_top, n0)
    s.bind(warp, "thread_y")
    s.bind(s.fuse(group, quad), "thread_x")
    for loop in rest:
        s.unroll(loop)
    quad, m = inside(s, copy, m0)
    warp, tile, half, group = s.split(m, [tiles.warps, tiles.tiles, HALVES, GROUPS])
    s.reorder(warp, group, quad, tile, half)
    s.bind(warp, "thread_y")
    s.bind(s.fuse(group, quad), "thread_x")
    for loop in (tile, half):
        s.unroll(loop)
    warp, group, *_ = inside(s, top, m0)
    s.bind(warp, "thread_y")
    s.bind(group, "thread_x")


def _powers(s: Schedule, powers: Handle, at: Handle, tiles: StreamTiles) -> None:
    """Compute the powers of a block of keys inside the loop `at`, as fragments of operand a, each by the thread that
    has the score."""
    s.set_scope(powers, "fragment")
    s.transform_layout(powers, target_of(s, powers), _in_tiles(DEPTH))
    _on_lanes(s, inside(s, powers, at), tiles)


def _values(s: Schedule, wide: Handle, loops: _WideLoops, tiles: StreamTiles, kind: str) -> None:
    """Copy a block of values to shared memory, and from there the MMA tiles of 16 keys to fragments of operand b. The
    last tile, of ones, is set by the threads that hold it. `kind`: the dtype's name in intrinsics."""
    values, columns = s.get_block(NAMES.values), s.get_block(NAMES.columns)
    s.compute_at(columns, loops.depth)
    s.compute_at(values, loops.keys)
    _fetch(s, values, loops.keys, tiles)
    s.set_scope(columns, "fragment")
    s.transform_layout(wide, target_of(s, columns), lambda *b: (*b[:-3], b[-2], b[-3], b[-1]))
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
    """Return the label of the only block in a loop."""
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


def _wide(s: Schedule, wide: Handle, loops: _WideLoops, kind: str) -> None:
    s.set_scope(wide, "fragment")
    s.transform_layout(wide, target_of(s, wide), lambda *b: (*b[:-3], b[-3] // ROWS, b[-2], b[-3] % ROWS, b[-1]))
    clear = s.decompose_reduction(wide, loops.keys)
    warp = next(loop for loop in s.get_loops(clear) if s.label(loop) == s.label(loops.warps))
    s.bind(warp, "thread_y")
    _zero(s, clear, loops.tiles, loops.tile)
    s.unroll(loops.depth)
    _on_warps(s, loops.warps, loops.tiles, loops.tile, f"mma.f32.{kind}")
