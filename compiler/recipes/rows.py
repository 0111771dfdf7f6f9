"""Softmax, norms, statistics and other blocks along rows: the producers of a row are computed just before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.analysis.order import step
from compiler.analysis.rows import Rows, rows_of
from compiler.program.body import Read
from compiler.program.tree import Access, Block
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.elementwise import elementwise, is_costly, is_long, streamed_ways, vectors_in_turn
from compiler.recipes.reduction import has_region, row_reduction
from compiler.recipes.steps import around, at_most, by_axis, in_vectors, inside, node_of, refusal
from compiler.schedule import Handle, Schedule, Size
from compiler.types.elements import element_bytes

LINE = 16
"""The elements of a cache line, in f32."""
STEPS = 4
"""The most iterations of a reduction loop that is unrolled completely."""


def normalised_rows(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules that compute a block and its producers row by row, if one of them is a reduction. Yields nothing
    without a reduction, if reads along a row are scattered, and for short rows of data that fit L3: separate blocks are
    then better.

    If neighbouring rows are adjacent in memory, like the columns of a matrix, each lane computes a different row.
    """
    rows = region(draft, label)
    if rows is None or not any(draft.block(member).combiners for member in rows.axes):
        return
    columns = _columns(draft, rows)
    if _scattered(draft, rows, columns) or _is_small(draft, rows, columns):
        return
    for streamed in streamed_ways(draft, label):
        name = f"by {'columns' if columns else 'rows'}{', past the caches' if streamed else ''}"
        run = partial(_apply, rows=rows, streamed=streamed, columns=columns)
        yield Alternative(name, partial(run, factored=False))
        if not columns:
            yield Alternative(f"{name}, partial sums", partial(run, factored=True))


def region(draft: Draft, label: str) -> Rows | None:
    """Return the unscheduled blocks that share their rows with the block `label`; None if `label` is not the last of
    them, or has no rows."""
    program, unscheduled = draft.schedule.program, list(draft.left)
    while label in unscheduled:
        rows = rows_of(program, unscheduled[-1], unscheduled)
        if unscheduled[-1] == label:
            return rows
        unscheduled = [name for name in unscheduled[:-1] if rows is None or name not in rows.axes]
    return None


def _columns(draft: Draft, rows: Rows) -> int:
    """Return the number of rows to compute together, in lanes, if neighbouring rows are adjacent in memory: a multiple
    of a vector, at least a cache line, whose data fit half of L2. 0 if they are not adjacent, or it does not pay: for a
    long padding, and for several pieces of data that stay in L2 anyway."""
    block, lanes = draft.block(rows.anchor), draft.lanes(rows.anchor)
    members = [draft.block(label) for label in rows.axes]
    long = [n for n in rows.axes[rows.anchor] if step(draft.schedule.program, block.writes[0], n) == 1]
    last = next((n for n in long if n == rows.axes[rows.anchor][-1] and block.axes[n].size >= lanes), None)
    if last is None or 3 * (-block.axes[last].size % lanes) > block.axes[last].size:
        return 0
    if not draft.masks(rows.anchor) and block.axes[last].size % lanes:
        return 0
    reads = ((access, rows.axes[member.label][-1]) for member in members for access in member.reads)
    if any(step(draft.schedule.program, access, axis) not in (0, 1) for access, axis in reads):
        return 0
    count = prod(block.axes[n].size for n in rows.axes[rows.anchor])
    length = max(prod(axis.size for axis in member.axes[: member.spatial]) // count for member in members)
    most = max(draft.machine.l2_bytes // (2 * 4 * max(1, length)) // lanes * lanes, LINE, lanes)
    vectors = -(-block.axes[last].size // lanes)
    pieces = -(-vectors * lanes // most)
    columns = -(-vectors // pieces) * lanes
    stays_cached = (
        any(member.table is not None for member in members) or _touched(draft, rows) <= 2 * draft.machine.l2_bytes
    )
    return 0 if pieces > 1 and stays_cached else columns


def _scattered(draft: Draft, rows: Rows, columns: int) -> bool:
    """Return whether the blocks of `rows` are better scheduled separately: reads along a row are scattered, or only one
    block runs along rows and reads them in pieces. With `columns` rows in lanes: several blocks would read lines
    narrower than the cache needs, or a single one has a remainder or several dtypes."""
    members = [draft.block(label) for label in rows.axes]
    inner = {block.label: set(range(len(block.axes))).difference(rows.axes[block.label]) for block in members}
    wide_blocks = [block for block in members if any(block.axes[n].size > 1 for n in inner[block.label])]
    if columns:
        return _torn(draft, rows, columns) if len(wide_blocks) > 1 else not _is_even(draft, rows)
    return any(not _in_row(draft, block, rows.axes[block.label], len(wide_blocks) < 2) for block in wide_blocks)


def _torn(draft: Draft, rows: Rows, columns: int) -> bool:
    """Return whether `columns` rows are narrower than a cache line, and either all data exceed L2, so that lines are
    evicted before the next columns use them, or the element type has no masked vectors."""
    element = element_bytes(draft.schedule.program.buffers[draft.block(rows.anchor).writes[0].buffer].element)
    beyond = _touched(draft, rows) > draft.machine.l2_bytes
    return columns * element < 4 * LINE and (beyond or not draft.masks(rows.anchor))


def _touched(draft: Draft, rows: Rows) -> int:
    """Return the size in bytes of all buffers that the blocks of `rows` read or write."""
    buffers, members = draft.schedule.program.buffers, [draft.block(label) for label in rows.axes]
    names = {access.buffer for block in members for access in (*block.reads, *block.writes)}
    return sum(prod(buffers[name].shape) * element_bytes(buffers[name].element) for name in names)


def _is_even(draft: Draft, rows: Rows) -> bool:
    """Return whether the last row axis of the last block is a multiple of a vector, and its buffers have one dtype."""
    block, buffers = draft.block(rows.anchor), draft.schedule.program.buffers
    elements = {buffers[access.buffer].element for access in (*block.reads, *block.writes)}
    return block.axes[rows.axes[rows.anchor][-1]].size % draft.lanes(rows.anchor) == 0 and len(elements) == 1


def _is_small(draft: Draft, rows: Rows, columns: int) -> bool:
    """Return whether rows have at most 8 vectors, or columns at most 4 elements, and all data fit L3: separate blocks
    then read each other's results from L3, and LLVM vectorizes across short rows. False for gathers and reductions by a
    region in rows of two vectors, and for one block in columns. `columns` is 0 for rows that are not in lanes."""
    members, lanes = [draft.block(label) for label in rows.axes], draft.lanes(rows.anchor)
    row_lengths = [
        prod(x.size for n, x in enumerate(block.axes) if n not in rows.axes[block.label]) for block in members
    ]
    no_vectors = any(block.table is not None or has_region(block) for block in members)
    if no_vectors and max(row_lengths) >= 2 * lanes:
        return False
    several = not columns or sum(length > 1 for length in row_lengths) > 1
    return (
        several
        and max(row_lengths) <= (4 if columns else 8 * lanes)
        and _touched(draft, rows) <= draft.machine.l3_bytes
    )


def _in_row(draft: Draft, block: Block, rows: Sequence[int], all_of_row: bool) -> bool:
    """Return whether each read of a block has stride 1 along an axis inside a row (`rows` are the axes over rows), and
    covers its span without gaps if `all_of_row`. Reads that are constant in a row, or have no fixed stride, pass."""
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


def _apply(draft: Draft, rows: Rows, streamed: bool, columns: int, factored: bool) -> Sequence[str]:
    s, lanes, label = draft.schedule, draft.lanes(rows.anchor), rows.anchor
    vectors = vectors_in_turn(draft, columns or draft.block(label).axes[-1].size, lanes)
    within = list(rows.axes)
    row = by_rows(s, s.get_block(label), lanes, vectors, streamed, within, columns, factored)
    draft.parallel(row)
    return within


def by_rows(
    s: Schedule,
    block: Handle,
    lanes: int = 16,
    vectors: Size = 4,
    streamed: bool = False,
    within: Sequence[str] | None = None,
    columns: int = 0,
    factored: bool = True,
) -> Handle:
    """Schedule a block row by row with its producers, vectorized; intermediate rows stay in the cache.

        i { max }  i { exp }  i { sum }  i { j { D } }
      ->
        i { max of a row;  exp of a row;  sum of a row;  j { D } }

    Producers are searched among the blocks in `within`, by default all; cheap ones are inlined. Outputs share the loop
    over rows; outputs of reductions are written by copies. Other axes are inside a row, fused if contiguous. With
    `columns` above 0, this number of rows is computed together, in lanes. Else `vectors` vectors of `lanes` elements
    are unrolled, of a mathematical function one: more are no faster, and add padding. `factored` reductions along a row
    have vectors of partial results; others are left to LLVM. With `streamed`, results are stored by nontemporal stores.
    Returns the innermost loop over rows. Requires rows, and producers that can be computed for one. Raises
    ScheduleError for a block without them. Source: the row-wise fusion of XLA, and of Milakov and Gimelshein's softmax
    (2018).
    """
    rows = rows_of(s.program, s.label(block), s.program.blocks if within is None else within)
    if rows is None:
        raise refusal(s, block, "by_rows", "it has no axis that nothing reduces")
    outputs = {access.buffer for access in node_of(s, block).writes}
    axes = _copied(s, _inlined(s, rows))
    loops = {label: _rows_first(s, label, numbers, columns) for label, numbers in axes.items()}
    *producers, anchor = axes
    row = s.get_loops(s.get_block(anchor))[loops[anchor] - 1]
    for label in reversed(producers):
        row = place(s, label, row, s.get_block(anchor))
    for label, numbers in axes.items():
        finish = partial(_across, column=numbers[-1]) if columns else partial(_along, factored=factored)
        finish(s, s.get_block(label), row, lanes=lanes, vectors=vectors)
    if streamed:
        for buffer in outputs:
            s.annotate(row, "nontemporal", buffer)
    return row


def _inlined(s: Schedule, rows: Rows) -> dict[str, tuple[int, ...]]:
    """Inline producers that are cheaper to recompute than to read; map each other block of `rows` to its row axes,
    producers first."""
    for label in list(rows.axes)[:-1]:
        if _is_cheap(s, s.program.blocks[label], rows.axes[label]):
            s.inline(s.get_block(label))
    return {label: numbers for label, numbers in rows.axes.items() if label in s.program.blocks}


def _is_cheap(s: Schedule, block: Block, rows: Sequence[int]) -> bool:
    """Return whether a block is cheaper to recompute than to read: an elementwise temporary without mathematical
    functions that is read once, or has at most one operand that varies along the row. Not one that reads under
    conditions for a reduction."""
    if makes_result(s, block) or block.combiners or block.table is not None or is_costly(block):
        return False
    written = {access.buffer for access in block.writes}
    readers = [reader for name in written for reader in s.program.readers[name]]
    if any(access.where for access in block.reads) and any(reader.combiners for reader in readers):
        return False
    uses = sum(access.buffer in written for reader in readers for access in reader.reads)
    varying_reads = [a for a in block.reads if not set().union(*(form.variables() for form in a.index)) <= set(rows)]
    return bool(readers) and (uses == 1 or len(varying_reads) <= 1)


def _copied(s: Schedule, axes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Redirect reductions that write outputs to temporaries, which copies store; map blocks and copies to row axes."""
    copied_axes: dict[str, tuple[int, ...]] = {}
    for label, numbers in axes.items():
        copied_axes[label] = numbers
        node = s.program.blocks[label]
        if node.combiners and makes_result(s, node):
            dims = {form.as_variable: dim for dim, form in enumerate(node.writes[0].index)}
            copy = s.cache_write(s.get_block(label))
            copied_axes[s.label(copy)] = tuple(dims[number] for number in numbers)
    return copied_axes


def _rows_first(s: Schedule, label: str, rows: Sequence[int], columns: int) -> int:
    """Order the loops of a block: over rows, then the others, then, unless `columns` is 0, over `columns` rows computed
    together. Return the number of loops over rows. Raises ScheduleError if a row axis has no loop."""
    handle, node = s.get_block(label), s.program.blocks[label]
    by_number = {loop.number: loop_handle for loop_handle, loop in around(s, handle)}
    by_axis = {n: by_number[number] for n, form in enumerate(node.bindings) for number in form.variables()}
    if not set(rows) <= set(by_axis):
        raise refusal(s, handle, "by_rows", "no loop runs over its rows")
    outer = [by_axis[n] for n in rows]
    inner = [loop for n, loop in by_axis.items() if n not in rows]
    if columns:
        *outer, last = outer
        outer_rows, inner_rows = s.split(last, [None, at_most(columns, s.extent(last))])
        outer, inner = [*outer, outer_rows], [*inner, inner_rows]
    if len(outer) + len(inner) > 1:
        s.reorder(*outer, *inner)
    return len(outer)


def _along(s: Schedule, block: Handle, row: Handle, lanes: int, vectors: Size, factored: bool) -> None:
    """Vectorize a block along its rows, by `vectors` vectors of `lanes`: an elementwise block, or a reduction if
    `factored`, of several results or by a region. Rows of one vector, gathers, moves under conditions, and other
    reductions stay as they are."""
    loops = inside(s, block, row)
    if not loops:
        return
    loops = _as_one(s, block, _contiguous_last(s, block, loops))
    node = node_of(s, block)
    if s.extent(loops[-1]) <= lanes or _is_shuffled(node):
        return
    if not node.combiners:
        elementwise(s, block, lanes, 1 if is_long(node) else vectors)
    elif factored or len(node.combiners) > 1 or not isinstance(node.combiners[0], str):
        row_reduction(s, block, lanes, vectors)


def _is_shuffled(node: Block) -> bool:
    """Return whether a block gathers, or only copies under conditions: LLVM's shuffles beat masks and gathers."""
    moves = len(node.reads) == 1 and isinstance(node.body[0], Read)
    return node.table is not None or (moves and bool(node.reads[0].where))


def _contiguous_last(s: Schedule, block: Handle, loops: list[Handle]) -> list[Handle]:
    """Reorder the loops of a reduction by the dimensions of the operand that depends on the most axes, its last
    dimension innermost; return them in the new order. Those of other blocks keep their order."""
    node = node_of(s, block)
    if not node.combiners or len(loops) < 2:
        return loops
    numbers = {loop.number: handle for handle, loop in around(s, block)}
    read = max(node.reads, key=lambda access: len({n for form in access.index for n in form.variables()}))
    labels = [s.label(loop) for loop in loops]
    ordered: dict[str, Handle] = {}
    for form in read.index:
        for axis in sorted(form.variables()):
            for number in node.bindings[axis].variables():
                if s.label(numbers[number]) in labels:
                    ordered[s.label(numbers[number])] = numbers[number]
    unordered = [loop for loop in loops if s.label(loop) not in ordered]
    if [*map(s.label, unordered), *ordered] == labels:
        return loops
    s.reorder(*unordered, *ordered.values())
    return [*unordered, *ordered.values()]


def _as_one(s: Schedule, block: Handle, loops: list[Handle]) -> list[Handle]:
    """Fuse the innermost loops of a block while they index adjacent dimensions in order; return the loops."""
    while len(loops) > 1 and _adjacent(s, block, loops[-2], loops[-1]):
        loops = [*loops[:-2], s.fuse(*loops[-2:])]
    return loops


def _adjacent(s: Schedule, block: Handle, outer: Handle, inner: Handle) -> bool:
    """Return whether two loops bind one axis each, both spatial or both reduce, which index adjacent dimensions in
    order in all accesses that depend on them, the inner one whole; False for gathers and under a guard."""
    node = node_of(s, block)
    if node.table is not None or node.guard:
        return False
    numbers = {loop.label: loop.number for loop in s.program.enclosing(node.label)}
    bound = [form.as_variable for form in node.bindings]
    axes = [[n for n, variable in enumerate(bound) if variable == numbers[s.label(loop)]] for loop in (outer, inner)]
    if (
        any(len(variables) != 1 for variables in axes)
        or node.axes[axes[0][0]].is_reduce != node.axes[axes[1][0]].is_reduce
    ):
        return False
    (first,), (second,) = axes
    for access in (*node.reads, *node.writes):
        forms = [*access.index, *(c.form for c in access.where)]
        uses = [n for n, form in enumerate(forms) if form.variables() & {first, second}]
        if uses and not _is_pair(access, uses, first, second, s.program.buffers[access.buffer].shape, node):
            return False
    return True


def _is_pair(access: Access, uses: Sequence[int], first: int, second: int, shape: Sequence[int], node: Block) -> bool:
    at = uses[0]
    if list(uses) != [at, at + 1] or at + 1 >= len(access.index):
        return False
    indexed_axes = access.index[at].as_variable, access.index[at + 1].as_variable
    return indexed_axes == (first, second) and shape[at + 1] == node.axes[second].size


def _across(s: Schedule, block: Handle, row: Handle, lanes: int, vectors: Size, column: int) -> None:
    """Vectorize a block across rows by `lanes`, along the axis `column`; unroll `vectors` iterations of a reduction
    (all of at most STEPS), or vectors of an elementwise block without mathematical functions."""
    loops, last = inside(s, block, row), by_axis(s, block, row)[column][-1]
    outer = [loop for loop in loops if s.label(loop) != s.label(last)]
    if len(loops) > 1:
        s.reorder(*outer, last)
    several, lane = s.split(last, [None, min(lanes, s.extent(last))])
    if node_of(s, block).combiners and outer:
        length = s.extent(outer[-1])
        steps, few = s.split(outer[-1], [None, length if length <= STEPS else at_most(vectors, length)])
        s.reorder(*outer[:-1], steps, several, few, lane)
        in_vectors(s, [few, lane])
    elif is_long(node_of(s, block)):
        s.vectorize(lane)
    else:
        few = s.split(several, [None, at_most(vectors, s.extent(several))])[1]
        in_vectors(s, [few, lane])


def place(s: Schedule, label: str, row: Handle, block: Handle) -> Handle:
    """Compute the producer `label` of a block for one row. A producer that writes an output is merged into the loop
    over rows instead. Return the loop over rows."""
    handle = s.get_block(label)
    if makes_result(s, s.program.blocks[label]):
        return shared_row(s, handle, block, row)
    s.compute_at(handle, row)
    return row


def makes_result(s: Schedule, node: Block) -> bool:
    """Return whether a block writes an argument of the function, not only temporaries."""
    return any(access.buffer not in s.program.allocs for access in node.writes)


def shared_row(s: Schedule, producer: Handle, block: Handle, row: Handle) -> Handle:
    """Merge the loops of a producer with those of a block, from the outermost to `row`, a loop of the block; return the
    last merged loop. Raises ScheduleError if two loops cannot be merged."""
    inner = s.label(row)
    for mine, theirs in zip(s.get_loops(producer), s.get_loops(block), strict=False):
        last = s.label(theirs) == inner
        row = s.merge(mine, theirs)
        if last:
            break
    return row
