"""Blocks that work along rows: elementwise functions, softmax and norms by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.analysis.order import step
from compiler.analysis.rows import Rows, rows_of
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft, inlined
from compiler.schedule import library
from compiler.schedule.library.loops import along
from compiler.schedule.schedule import Size
from compiler.space.rules.moving import is_cut
from compiler.types.elements import element_bytes

LINE = 16
"""The elements of a cache line, if they are of four bytes."""

SHORT = 48
"""The most vectors of a sum whose partial sums cost more to combine than they hide."""


def by_rows(draft: Draft, label: str) -> Iterator[Alternative]:
    """All that a block needs of one row just before that row, with what else works along the same rows.

    Where rows lie side by side, some of them together, by vectors across them.
    """
    rows = region(draft, label)
    if rows is None or not any(draft.block(member).combiners for member in rows.axes):
        return
    columns = _columns(draft, rows)
    if _scattered(draft, rows, columns) or _is_small(draft, rows, columns):
        return
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
        left = [name for name in left[:-1] if rows is None or name not in rows.axes]
    return None


def _columns(draft: Draft, rows: Rows) -> int:
    """The rows that are computed together where these lie side by side: even pieces of as many as let what is stored of
    them stay in half of L2, a multiple of a vector, and a cache line at least; 0 where rows do not lie so."""
    block, lanes = draft.block(rows.anchor), draft.lanes(rows.anchor)
    members = [draft.block(label) for label in rows.axes]
    long = [n for n in rows.axes[rows.anchor] if step(draft.schedule.program, block.writes[0], n) == 1]
    last = next((n for n in long if n == rows.axes[rows.anchor][-1] and block.axes[n].size >= lanes), None)
    if last is None or 3 * (-block.axes[last].size % lanes) > block.axes[last].size:
        return 0
    if not draft.masks(rows.anchor) and block.axes[last].size % lanes:
        return 0
    if not all(_lie_so(draft, member, rows.axes[member.label][-1]) for member in members):
        return 0
    count = prod(block.axes[n].size for n in rows.axes[rows.anchor])
    length = max(prod(axis.size for axis in member.axes[: member.spatial]) // count for member in members)
    most = max(draft.machine.l2_bytes // (2 * 4 * max(1, length)) // lanes * lanes, LINE, lanes)
    vectors = -(-block.axes[last].size // lanes)
    pieces = -(-vectors * lanes // most)
    columns = -(-vectors // pieces) * lanes
    kept = any(member.table is not None for member in members) or _touched(draft, rows) <= 2 * draft.machine.l2_bytes
    return 0 if pieces > 1 and kept else columns


def _lie_so(draft: Draft, block: Block, axis: int) -> bool:
    """Whether what a block reads lies side by side along an axis, wherever it moves along that."""
    return all(step(draft.schedule.program, access, axis) in (0, 1) for access in block.reads)


def _scattered(draft: Draft, rows: Rows, columns: int) -> bool:
    """Whether rows are better left apart: what is read of one lies scattered, or one block alone reads much of it, in
    pieces, so that nothing is gained from the others."""
    members = [draft.block(label) for label in rows.axes]
    wide = [block for block in members if _is_wide(block, rows.axes[block.label])]
    if columns:
        return _torn(draft, rows, columns) if len(wide) > 1 else not _is_even(draft, rows)
    return any(not _in_row(draft, block, rows.axes[block.label], len(wide) < 2) for block in wide)


def _torn(draft: Draft, rows: Rows, columns: int) -> bool:
    """Whether a column of several blocks has parts of cache lines alone, and L2 does not keep these for the next;
    of bytes and half words, LLVM has more in a vector."""
    element = element_bytes(draft.schedule.program.buffers[draft.block(rows.anchor).writes[0].buffer].element)
    beyond = _touched(draft, rows) > draft.machine.l2_bytes
    return columns * element < 4 * LINE and (beyond or not draft.masks(rows.anchor))


def _touched(draft: Draft, rows: Rows) -> int:
    """The bytes of all that the blocks of some rows read and write."""
    buffers, members = draft.schedule.program.buffers, [draft.block(label) for label in rows.axes]
    names = {access.buffer for block in members for access in (*block.reads, *block.writes)}
    return sum(prod(buffers[name].shape) * element_bytes(buffers[name].element) for name in names)


def _is_even(draft: Draft, rows: Rows) -> bool:
    """Whether vectors divide the columns of a reduction, and it converts nothing."""
    block, buffers = draft.block(rows.anchor), draft.schedule.program.buffers
    elements = {buffers[access.buffer].element for access in (*block.reads, *block.writes)}
    return block.axes[rows.axes[rows.anchor][-1]].size % draft.lanes(rows.anchor) == 0 and len(elements) == 1


def _is_small(draft: Draft, rows: Rows, columns: int) -> bool:
    """Whether rows are of few vectors, or columns of few elements, and all of them together stay in L3: what passes
    from one block to the next is found there, and LLVM takes several short rows at once."""
    members, lanes = [draft.block(label) for label in rows.axes], draft.lanes(rows.anchor)
    row_lengths = [
        prod(x.size for n, x in enumerate(block.axes) if n not in rows.axes[block.label]) for block in members
    ]
    if any(block.table is not None for block in members) and max(row_lengths) >= 2 * lanes:
        return False
    several = not columns or sum(length > 1 for length in row_lengths) > 1
    return (
        several
        and max(row_lengths) <= (4 if columns else 8 * lanes)
        and _touched(draft, rows) <= draft.machine.l3_bytes
    )


def _is_wide(block: Block, rows: Sequence[int]) -> bool:
    """Whether a block reads or writes more than an element of each row."""
    return any(axis.size > 1 for n, axis in enumerate(block.axes) if n not in rows)


def _in_row(draft: Draft, block: Block, rows: Sequence[int], all_of_row: bool) -> bool:
    """Whether what a block reads of a row lies side by side along one of its other axes; all of it, if it is to be
    `all_of_row`."""
    row_extents = {n: axis.size for n, axis in enumerate(block.axes) if n not in rows and axis.size > 1}
    for access in block.reads:
        steps = {n: step(draft.schedule.program, access, n) for n in row_extents}
        moving = {n: abs(by) for n, by in steps.items() if by}
        if None in steps.values() or not moving:
            continue
        span = 1 + sum((row_extents[n] - 1) * by for n, by in moving.items())
        if 1 not in moving.values() or (all_of_row and span > prod(row_extents[n] for n in moving)):
            return False
    return True


def _streams(draft: Draft, label: str) -> list[bool]:
    """Whether results go past the caches: what reads them next finds them in L3, where they fit into that."""
    buffer = draft.schedule.program.buffers[draft.block(label).writes[0].buffer]
    bytes = prod(buffer.shape) * element_bytes(buffer.element)
    if bytes <= draft.machine.l2_bytes or buffer.name in draft.schedule.program.allocs:
        return [False]
    return [True, False] if bytes > draft.machine.l3_bytes else [False, True]


def _by_rows(draft: Draft, rows: Rows, streamed: bool, columns: int, factored: bool) -> Sequence[str]:
    s, lanes, label = draft.schedule, draft.lanes(rows.anchor), rows.anchor
    vectors = _vectors(draft, columns or draft.block(label).axes[-1].size, lanes)
    within = list(rows.axes)
    row = library.by_rows(s, s.get_block(label), lanes, vectors, streamed, within, columns, factored)
    draft.parallel(row)
    return within


def _vectors(draft: Draft, extent: int, lanes: int) -> Size:
    """How many vectors are computed one behind the other: as many as add little to the last ones, 4 at most."""
    count = -(-extent // lanes)
    padded = {v: -(-count // v) * v for v in (1, 2, 3, 4)}
    least_padded = min(padded[v] for v in (2, 3, 4))
    wanted = max((v for v, size in padded.items() if v <= count and 10 * size <= 11 * least_padded), default=1)
    return draft.choose([v for v in (2, 3, 4, 6, 8, 12, 16) if v <= count] or [1], wanted, "vectors")


def elementwise(draft: Draft, label: str) -> Iterator[Alternative]:
    """A block without a reduction, on its own: its innermost loop by vectors; inlined into what reads it.

    Mathematical functions one of the other are not inlined but computed for a row: a processor looks ahead as far as
    some vectors of one function, not over two, one behind the other.
    """
    block = draft.block(label)
    if block.combiners or block.table is not None:
        return
    if not block.axes:
        yield Alternative("as it is", lambda draft: [label], optional=False)
        return
    readers = draft.readers(label)
    if len(readers) == 1 and library.is_long(block) and library.is_long(readers[0]) and _in_place(draft, label):
        yield Alternative("by vectors, for a row", partial(_before, label=label), optional=False)
    moved = is_cut(draft, label) or _joins_for_a_sum(draft, label)
    if readers and (len(readers) == 1 or not library.is_costly(block)) and not moved:
        yield Alternative("inlined", partial(inlined, label=label), optional=False)
    for streamed in _streams(draft, label):
        name = f"by vectors{', past the caches' if streamed else ''}"
        yield Alternative(name, partial(_elementwise, label=label, streamed=streamed), optional=False)


def _joins_for_a_sum(draft: Draft, label: str) -> bool:
    """Whether a block takes each element from one of several arrays, as a concatenation does, and a reduction reads it:
    inlined, it would choose in each step of a product."""
    reads = draft.block(label).reads
    joins = len(reads) > 1 and any(access.where for access in reads)
    return joins and any(reader.combiners for reader in draft.readers(label))


def _in_place(draft: Draft, label: str) -> bool:
    """Whether the one elementwise block that reads a temporary does so at its own indices."""
    return draft.is_temporary(label) and draft.consumer(label) is not None and len(draft.block(label).axes) > 1


def _before(draft: Draft, label: str) -> Sequence[str]:
    """Compute a block for a row of what reads it, just before that."""
    s, block = draft.schedule, draft.schedule.get_block(label)
    reader = s.get_block(draft.readers(label)[0].label)
    s.compute_at(block, s.get_loops(reader)[-2])
    library.elementwise(s, block, draft.lanes(label), 1)
    return [label]


def chains(draft: Draft, label: str) -> Iterator[Alternative]:
    """A block without a reduction or a mathematical function that one other such block reads: inlined into that."""
    block, readers = draft.block(label), draft.readers(label)
    if block.combiners or block.table is not None or library.is_costly(block) or len(readers) != 1:
        return
    written = {access.buffer for access in block.writes}
    uses = sum(access.buffer in written for access in readers[0].reads)
    if (uses > 1 and len(block.reads) > 1) or is_cut(draft, label):
        return
    if not readers[0].combiners and readers[0].table is None:
        yield Alternative("inlined", partial(inlined, label=label), optional=False)


def _elementwise(draft: Draft, label: str, streamed: bool) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    block = s.get_block(label)
    loops = library.units_outside(s, block)
    outer = loops[-2] if len(loops) > 1 else None
    if not draft.masks(label):
        lanes = min(lanes, s.extent(loops[-1]) & -s.extent(loops[-1]))
    vectors = 1 if library.is_long(draft.block(label)) else _vectors(draft, s.extent(loops[-1]), lanes)
    library.elementwise(s, block, lanes, vectors)
    if streamed and outer is not None:
        s.annotate(outer, "nontemporal", draft.block(label).writes[0].buffer)
    if outer is not None:
        draft.parallel(loops[0])
    return [label]


def partial_sums(draft: Draft, label: str) -> Iterator[Alternative]:
    """A reduction into vectors of partial results along the loop in which what it reads lies side by side."""
    block = draft.block(label)
    if not block.combiners or len(block.combiners) != 1:
        return
    program, axes = draft.schedule.program, range(block.spatial, len(block.axes))
    beside = [n for n in axes if block.reads and all(step(program, access, n) in (0, 1) for access in block.reads)]
    long = [n for n in beside if block.axes[n].size >= 2 * draft.lanes(label)]
    if long and prod(block.axes[n].size for n in axes) > SHORT * draft.lanes(label):
        yield Alternative("partial sums", partial(_partial_sums, label=label, axis=long[-1]))


def _partial_sums(draft: Draft, label: str, axis: int) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    block = s.get_block(label)
    inner = along(s, block, axis)[-1]
    outer = [loop for loop in s.get_loops(block) if s.label(loop) != s.label(inner)]
    if outer:
        s.reorder(*outer, inner)
    library.row_reduction(s, block, lanes, _vectors(draft, s.extent(inner), lanes))
    return [label]
