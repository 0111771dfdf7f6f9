"""Blocks that work along rows: elementwise functions, softmax and norms by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.analysis.rows import Rows, plain, rows_of
from compiler.autotune.space.rules.draft import Alternative, Draft, inlined
from compiler.elements import element_bytes
from compiler.program.tree import Block
from compiler.schedule import library
from compiler.schedule.schedule import Size

LINE = 16
"""The elements of a cache line, if they are of four bytes."""


def by_rows(draft: Draft, label: str) -> Iterator[Alternative]:
    """All that a block needs of one row just before that row, with what else works along the same rows.

    Where rows lie side by side, some of them together, by vectors across them.
    """
    rows = region(draft, label)
    if rows is None or not any(draft.block(member).combiners for member in rows.axes):
        return
    columns = _columns(draft, rows)
    for streamed in _streams(draft, label):
        name = f"by {'columns' if columns else 'rows'}{', past the caches' if streamed else ''}"
        run = partial(_by_rows, rows=rows, streamed=streamed, columns=columns)
        yield Alternative(name, partial(run, factored=False))
        if not columns:
            yield Alternative(f"{name}, partial sums", partial(run, factored=True))


def region(draft: Draft, label: str) -> Rows | None:
    """The blocks that are left whose rows a block shares, if it is the last of them."""
    program, left = draft.schedule.program, list(draft.left)
    while label in left:
        rows = rows_of(program, left[-1], left)
        if left[-1] == label:
            return rows
        left = [one for one in left[:-1] if rows is None or one not in rows.axes]
    return None


def _columns(draft: Draft, rows: Rows) -> int:
    """The rows that are computed together where these lie side by side: as many as let what is stored of them stay in
    half of L2, a multiple of a vector, and a cache line at least; 0 where rows do not lie so."""
    block, lanes = draft.block(rows.anchor), draft.lanes(rows.anchor)
    members = [draft.block(label) for label in rows.axes]
    last = plain(block.writes[0].index[-1]) if block.writes[0].index else None
    if last is None or last not in rows.axes[rows.anchor] or block.axes[last].size < lanes:
        return 0
    if any(member.combiners and _reads_along(member) for member in members):
        return 0
    count = prod(block.axes[n].size for n in rows.axes[rows.anchor])
    length = max(prod(axis.size for axis in member.axes[: member.spatial]) // count for member in members)
    most = draft.machine.l2_bytes // (2 * 4 * max(1, length)) // lanes * lanes
    return min(max(most, LINE, lanes), -(-block.axes[last].size // lanes) * lanes)


def _reads_along(block: Block) -> bool:
    """Whether a reduction runs along the last dimension of what it reads."""
    forms = [access.index[-1] for access in block.reads if access.index]
    return any(axis >= block.spatial for form in forms for axis in form.variables())


def _streams(draft: Draft, label: str) -> list[bool]:
    """Whether results go past the caches: what reads them next finds them in L3, where they fit into that."""
    buffer = draft.schedule.program.buffers[draft.block(label).writes[0].buffer]
    bytes = prod(buffer.shape) * element_bytes(buffer.element)
    if bytes <= draft.machine.l2_bytes or buffer.name in draft.schedule.program.allocs:
        return [False]
    return [True, False] if bytes > draft.machine.l3_bytes else [False, True]


def _by_rows(draft: Draft, rows: Rows, streamed: bool, columns: int, factored: bool) -> Sequence[str]:
    s, lanes, label = draft.schedule, draft.lanes(rows.anchor), rows.anchor
    vectors = _vectors(draft, draft.block(label).axes[-1].size, lanes)
    within = list(rows.axes)
    row = library.by_rows(s, s.get_block(label), lanes, vectors, streamed, within, columns, factored)
    if draft.threads > 1:
        s.parallel(row)
    return within


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
    written = {access.buffer for access in block.writes}
    uses = sum(access.buffer in written for access in readers[0].reads)
    if uses > 1 and len(block.reads) > 1:
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
