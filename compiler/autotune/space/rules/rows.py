"""Blocks that work along rows: elementwise functions, softmax and norms by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.autotune.space.rules.draft import Alternative, Draft, inlined
from compiler.schedule import library
from compiler.schedule.schedule import Size


def by_rows(draft: Draft, label: str) -> Iterator[Alternative]:
    """All that the last block needs of a row just before that row; with large results past the caches."""
    block = draft.block(label)
    if draft.readers(label) or block.combiners or len(block.axes) < 2 or len(draft.left) < 2 or block.axes[-1].size < 2:
        return
    if draft.left[-1] != label or set(draft.left) != set(draft.schedule.program.blocks):
        return
    for streamed in _streams(draft, label):
        name = f"by rows{', past the caches' if streamed else ''}"
        yield Alternative(name, partial(_by_rows, label=label, streamed=streamed))


def _streams(draft: Draft, label: str) -> list[bool]:
    """Whether results go past the caches: worth trying where they are large."""
    buffer = draft.schedule.program.buffers[draft.block(label).writes[0].buffer]
    large = 4 * prod(buffer.shape) > draft.machine.l2_bytes and buffer.name not in draft.schedule.program.allocs
    return [True, False] if large else [False]


def _by_rows(draft: Draft, label: str, streamed: bool) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    vectors = _vectors(draft, draft.block(label).axes[-1].size, lanes)
    row = library.by_rows(s, s.get_block(label), lanes, vectors, streamed)
    if draft.threads > 1:
        s.parallel(row)
    return draft.left


def _vectors(draft: Draft, extent: int, lanes: int) -> Size:
    count = -(-extent // lanes)
    return draft.choose([v for v in (2, 3, 4, 6, 8, 12, 16) if v <= count] or [1], 4, "vectors")


def elementwise(draft: Draft, label: str) -> Iterator[Alternative]:
    """A block without a reduction, on its own: its innermost loop by vectors; inlined into what reads it."""
    block = draft.block(label)
    if block.combiners or block.table is not None:
        return
    if not block.axes:
        yield Alternative("as it is", lambda draft: [label], optional=False)
        return
    if draft.readers(label):
        yield Alternative("inlined", partial(inlined, label=label), optional=False)
    for streamed in _streams(draft, label):
        name = f"by vectors{', past the caches' if streamed else ''}"
        yield Alternative(name, partial(_elementwise, label=label, streamed=streamed), optional=False)


def chains(draft: Draft, label: str) -> Iterator[Alternative]:
    """A block without a reduction or a mathematical function that one other such block reads: inlined into that."""
    block, readers = draft.block(label), draft.readers(label)
    if block.combiners or block.table is not None or library.is_costly(block) or len(readers) != 1:
        return
    if not readers[0].combiners and readers[0].table is None:
        yield Alternative("inlined", partial(inlined, label=label), optional=False)


def _elementwise(draft: Draft, label: str, streamed: bool) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    block = s.get_block(label)
    extent = draft.block(label).axes[-1].size
    loops = s.get_loops(block)
    outer = loops[-2] if len(loops) > 1 else None
    library.elementwise(s, block, lanes, _vectors(draft, extent, lanes))
    if streamed and outer is not None:
        s.annotate(outer, "nontemporal", draft.block(label).writes[0].buffer)
    if draft.threads > 1 and outer is not None:
        s.parallel(loops[0])
    return [label]


def partial_sums(draft: Draft, label: str) -> Iterator[Alternative]:
    """A reduction along its innermost loop into vectors of partial results."""
    block = draft.block(label)
    last = block.axes[-1] if block.axes else None
    if not block.combiners or len(block.combiners) != 1 or last is None or not last.is_reduce:
        return
    if last.size >= 2 * draft.lanes(label):
        yield Alternative("partial sums", partial(_partial_sums, label=label))


def _partial_sums(draft: Draft, label: str) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    extent = draft.block(label).axes[-1].size
    block = s.get_block(label)
    library.row_reduction(s, block, lanes, _vectors(draft, extent, lanes))
    return [label]
