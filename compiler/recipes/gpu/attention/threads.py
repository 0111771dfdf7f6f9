"""Attention of f32 without tensor cores: 16 x 16 threads have rows of queries along y, keys and columns along x."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import Float32Type

from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.gpu.attention.blocks import (
    BLOCKS,
    NAMES,
    StreamedBlocks,
    block_by_block,
    in_one_place,
    is_streamed,
    on_blocks,
    set_first,
)
from compiler.recipes.gpu.spread import spread_on_threads
from compiler.recipes.gpu.tiles import pad_rows
from compiler.recipes.steps import fused, inside
from compiler.schedule import Handle, Schedule

EDGE = 16
"""The threads of a block along queries, and along keys and columns."""
FEW = 4
"""The keys of an unrolled loop of the second product."""
NARROW = 64
"""The most columns of results of which a thread's registers hold four rows beside their scores."""
WORD = 4
"""The elements of f32 that a thread copies at once."""


@dataclass(frozen=True)
class ThreadStreamTiles:
    """Tiles of an attention without tensor cores: the queries of each of 16 threads along y, the keys of each along
    x."""

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


def streamed_on_threads(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of an attention of f32 in the form `streamed_attention`: one kernel without tensor cores, by
    tiles that fit in shared memory. Yields nothing for other programs, for blocks other than their result, if a part of
    the program is scheduled, and if no tiles fit."""
    program = draft.schedule.program
    if not is_streamed(draft, label) or not isinstance(program.buffers[NAMES.powers].element, Float32Type):
        return
    keys, columns = program.buffers[NAMES.powers].shape[-1], program.buffers[NAMES.values].shape[-1]
    depth, blocks = program.buffers[NAMES.rows].shape[-1], program.buffers[NAMES.running].shape[-2]
    for rows in (4, 2):
        tiles = ThreadStreamTiles(rows, keys // blocks // EDGE)
        words = tiles.keys * (depth + columns + 6 * WORD) + tiles.queries * (depth + tiles.keys + 4 * WORD)
        if 4 * words <= draft.gpu.block_shared_bytes and (tiles.rows < 4 or columns <= NARROW):
            name = f"streamed on threads, {tiles.queries} queries and {tiles.keys} keys a block"
            yield Alternative(name, partial(_apply, tiles=tiles))


def _apply(draft: Draft, tiles: ThreadStreamTiles) -> Sequence[str]:
    stream_on_threads(draft.schedule, tiles)
    return draft.left


def stream_on_threads(s: Schedule, tiles: ThreadStreamTiles) -> None:
    """Schedule an attention of f32 in the form that `streamed_attention` gives, as one kernel without tensor cores.

        scores; top.parts; top; running; powers; part; wide; result
      ->
        m.0 block_x { rows.shared = Q; alloc running.local, wide.local
          n.0 { keys.shared = K; values.shared = V
                thread_y { thread_x { scores += rows * keys, local;  top.parts = max of scores } }
                thread_y { top = max over the threads along x;  thread_x { running = max of running and top } }
                thread_y { thread_x { powers.shared = exp(scores - running) } }
                thread_y { thread_x { part += powers * values;  wide = wide * growth of running + part } } }
          thread_y { thread_x { Y = wide / the last column of wide } } }

    16 x 16 threads have rows of queries along y, columns along x. Raises ScheduleError for other programs.
    `tiles.columns` is ignored: the program states its blocks of keys.
    """
    s.inline(s.get_block(NAMES.columns))
    blocks = StreamedBlocks(*map(s.get_block, BLOCKS))
    many, m0, n0 = block_by_block(s, blocks, tiles.queries)
    values = s.get_block(NAMES.values)
    s.compute_at(values, n0)
    in_one_place(s, blocks, n0)
    for block in (blocks.rows, blocks.keys, values):
        _fetch_words(s, block, m0 if block is blocks.rows else n0)
    s.set_scope(blocks.scores, "local")
    m, n, d = inside(s, blocks.scores, n0)
    _on_threads(s, (m, *s.split(n, [None, EDGE])), tiles, first=[d])
    _maxima(s, blocks, n0, tiles)
    s.set_scope(blocks.powers, "shared")
    m, n = inside(s, blocks.powers, n0)
    _on_threads(s, (m, *s.split(n, [None, EDGE])), tiles)
    pad_rows(s, blocks.powers, WORD)
    m, q, lane, n = inside(s, blocks.part, n0)
    n, few = s.split(n, [None, FEW])
    _on_threads(s, (m, q, lane), tiles, first=[n, few])
    s.unroll(few)
    _on_threads(s, inside(s, blocks.wide, n0), tiles)
    for block in (blocks.part, blocks.wide):
        s.set_scope(block, "local")
    set_first(s, blocks, n0)
    m, e = inside(s, blocks.result, m0)
    _on_threads(s, (m, *s.split(e, [None, EDGE])), tiles)
    on_blocks(s, [*many, m0])


def _on_threads(s: Schedule, loops: Sequence[Handle], tiles: ThreadStreamTiles, first: Sequence[Handle] = ()) -> None:
    """Bind a loop over queries and one over 16 columns to threads, in each the loops `first`, and unroll the loop over
    many such columns. `loops`: over queries, over such columns, over the 16 columns."""
    m, many, x = loops
    y, r = s.split(m, [EDGE, tiles.rows])
    s.reorder(y, x, *first, r, many)
    s.bind(y, "thread_y")
    s.bind(x, "thread_x")
    s.unroll(r)
    s.unroll(many)


def _fetch_words(s: Schedule, block: Handle, at: Handle) -> None:
    """Copy rows of f32 to shared memory by all threads of a block, inside the loop `at`."""
    s.set_scope(block, "shared")
    spread_on_threads(s, fused(s, inside(s, block, at)), (EDGE, EDGE), WORD)
    pad_rows(s, block, WORD)


def _maxima(s: Schedule, blocks: StreamedBlocks, at: Handle, tiles: ThreadStreamTiles) -> None:
    """Reduce the scores of each thread to their maximum in registers, inside the loop `at`, then by shuffles those of
    the threads along x, and compute the maximum so far by each of them."""
    for block in (blocks.parts, blocks.top, blocks.running):
        s.set_scope(block, "local")
        m, j, *rest = inside(s, block, at)
        y, r = s.split(m, [EDGE, tiles.rows])
        s.reorder(y, r, j) if block is blocks.top else s.reorder(y, j, r, *rest)
        s.bind(y, "thread_y")
        s.unroll(r)
        if block is blocks.top:
            s.tensorize(j, "half.max.f32")
        else:
            s.bind(j, "thread_x")
            for loop in rest:
                s.unroll(loop)
