"""Composites for row-wise blocks: softmax, norms, elementwise functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from xdsl.dialects import math
from xdsl.ir import Operation

from compiler.analysis.rows import Rows, plain, rows_of
from compiler.program.body import Apply, Read
from compiler.program.tree import Access, Block
from compiler.schedule.library.loops import along, around, at_most, in_vectors, inside, nest, node_of, refusal
from compiler.schedule.schedule import Handle, Schedule, Size

INSTRUCTIONS = (math.AbsFOp, math.AbsIOp, math.CopySignOp, math.FmaOp)
"""Mathematical functions that are an instruction or two."""

STEPS = 4
"""The most steps of a reduction that are unrolled whole."""


def elementwise(s: Schedule, block: Handle, lanes: int = 16, vectors: Size = 4) -> None:
    """Run the innermost loop of a block by vectors, some of them one behind the other.

        j = 1024 { D(j) }                        // 16 lanes, 4 vectors
      ->
        j.0 = 16 { j.1 = 4 unrolled { j.2 = 16 vectorized { D } } }

    The remainder of a row is masked. Requires an innermost loop without dependences.
    """
    inner = nest(s, block, "elementwise")[-1]
    extent = s.extent(inner)
    if extent <= lanes:
        s.vectorize(inner)
    else:
        in_vectors(s, s.split(inner, [None, at_most(vectors, -(-extent // lanes)), lanes])[1:])


def units_outside(s: Schedule, block: Handle) -> list[Handle]:
    """Run the loops of one iteration around a block outside the others, if the innermost is one; gives the loops.

      i = 20 { j = 30 { k = 1 { D(i, j, k) } } }
    ->
      k = 1 { i = 20 { j = 30 { D } } }
    """
    loops = nest(s, block, "units_outside")
    ordered = sorted(loops, key=lambda loop: s.extent(loop) > 1)
    if s.extent(loops[-1]) == 1 < s.extent(ordered[-1]):
        s.reorder(*ordered)
        return ordered
    return loops


def row_reduction(s: Schedule, block: Handle, lanes: int = 16, vectors: Size = 4) -> Handle:
    """Reduce along the innermost loop into some vectors of partial results, and combine those at the end.

        k = 1024 { S += X(k) }                   // 16 lanes, 4 vectors
      ->
        k.0 = 16 { k.1.0 = 4 unrolled { k.1.1 = 16 vectorized { S.rf[k.1] += X } } }
        k.1 = 64 unrolled { S += S.rf[k.1] }

    Several vectors hide the latency of the combination. Gives the block of the partial results. Requires a reduction
    with an implicit init whose innermost loop binds its reduce axis alone, and a longer one than `lanes`.
    """
    inner = nest(s, block, "row_reduction")[-1]
    extent = s.extent(inner)
    count = at_most(vectors, -(-extent // lanes))
    rounds, chosen = s.split(inner, [None, s.multiple(count, lanes)])
    names = [s.label(rounds), s.label(chosen)]
    partial = s.rfactor(block, chosen)
    by_name = {s.label(h): h for h in s.get_loops(partial)}
    unrolled, vector = s.split(by_name[names[1]], [count, lanes])
    if names[0] in by_name and s.extent(by_name[names[0]]) > 1:
        s.reorder(by_name[names[0]], unrolled, vector)
    in_vectors(s, [unrolled, vector])
    s.unroll(s.get_loops(block)[-1])
    return partial


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
    """Compute all that a block needs of one row just before that row, by vectors, with rows between in the cache.

        i { max }  i { exp }  i { sum }  i { j { D } }
      ->
        i { max of a row;  exp of a row;  sum of a row;  j { D } }

    What belongs to the rows is `rows_of` the block, among the blocks in `within`. Cheap producers are inlined. Those
    whose values are results themselves share the loop over rows; of a reduction a copy does. The other axes run
    inside a row, as one loop where they lie side by side. With `columns`, rows lie side by side: so many of them are
    computed together, by vectors across them. A mathematical function takes one vector at a time: more are no faster,
    and more of the last ones are in vain. `factored` reductions along a row have vectors of partial results, the
    others are left to LLVM. With `streamed`, the block's results go past the caches. Gives the loop over rows. Requires
    rows, and producers that can be computed for one. Source: the row-wise fusion of XLA, and of Milakov and
    Gimelshein's softmax (2018).
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
    """Inline producers that are cheaper to recompute than to read; returns the axes of the remaining blocks."""
    for label in list(rows.axes)[:-1]:
        if _is_cheap(s, s.program.blocks[label], rows.axes[label]):
            s.inline(s.get_block(label))
    return {label: numbers for label, numbers in rows.axes.items() if label in s.program.blocks}


def _is_cheap(s: Schedule, block: Block, rows: Sequence[int]) -> bool:
    """Whether a temporary is better computed where it is read: it has one reader that reads it once, or it is computed
    from one element and values that a row shares."""
    if makes_result(s, block) or block.combiners or block.table is not None or is_costly(block):
        return False
    written = {access.buffer for access in block.writes}
    readers = [reader for name in written for reader in s.program.readers[name]]
    if any(access.where for access in block.reads) and any(reader.combiners for reader in readers):
        return False
    uses = sum(access.buffer in written for reader in readers for access in reader.reads)
    wide = [a for a in block.reads if not set().union(*(form.variables() for form in a.index)) <= set(rows)]
    return bool(readers) and (uses == 1 or len(wide) <= 1)


def _copied(s: Schedule, axes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Reduce into a temporary where a reduction makes a result; the axes of the blocks, the copies among them."""
    done: dict[str, tuple[int, ...]] = {}
    for label, numbers in axes.items():
        done[label] = numbers
        node = s.program.blocks[label]
        if node.combiners and makes_result(s, node):
            dims = {plain(form): dim for dim, form in enumerate(node.writes[0].index)}
            copy = s.cache_write(s.get_block(label))
            done[s.label(copy)] = tuple(dims[number] for number in numbers)
    return done


def _rows_first(s: Schedule, label: str, rows: Sequence[int], columns: int) -> int:
    """Run the loops of a block over rows outside, those over some columns together innermost; how many are outside."""
    handle, node = s.get_block(label), s.program.blocks[label]
    by_number = {loop.number: loop_handle for loop_handle, loop in around(s, handle)}
    by_axis = {n: by_number[number] for n, form in enumerate(node.bindings) for number in form.variables()}
    if not set(rows) <= set(by_axis):
        raise refusal(s, handle, "by_rows", "no loop runs over its rows")
    outer = [by_axis[n] for n in rows]
    inner = [loop for n, loop in by_axis.items() if n not in rows]
    if columns:
        *outer, last = outer
        several, together = s.split(last, [None, at_most(columns, s.extent(last))])
        outer, inner = [*outer, several], [*inner, together]
    if len(outer) + len(inner) > 1:
        s.reorder(*outer, *inner)
    return len(outer)


def _along(s: Schedule, block: Handle, row: Handle, lanes: int, vectors: Size, factored: bool) -> None:
    """Vectorize a block along the row, for one row."""
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
    """Whether a block moves elements under conditions, or from places that a table says: LLVM does so with fewer
    instructions than masks and gathers."""
    moves = len(node.reads) == 1 and isinstance(node.body[0], Read)
    return node.table is not None or (moves and bool(node.reads[0].where))


def _contiguous_last(s: Schedule, block: Handle, loops: list[Handle]) -> list[Handle]:
    """Order the loops of a reduction as the dimensions of its operand with the most of them."""
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
    """Fuse the innermost loops of a block if they access neighbouring dimensions in order."""
    while len(loops) > 1 and _adjacent(s, block, loops[-2], loops[-1]):
        loops = [*loops[:-2], s.fuse(*loops[-2:])]
    return loops


def _adjacent(s: Schedule, block: Handle, outer: Handle, inner: Handle) -> bool:
    """Whether two loops bind an axis each, which index dimensions side by side wherever they index any."""
    node = node_of(s, block)
    if node.table is not None or node.guard:
        return False
    numbers = {loop.label: loop.number for loop in s.program.enclosing(node.label)}
    axes = [
        [n for n, form in enumerate(node.bindings) if plain(form) == numbers[s.label(loop)]] for loop in (outer, inner)
    ]
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
    indexed_axes = plain(access.index[at]), plain(access.index[at + 1])
    return indexed_axes == (first, second) and shape[at + 1] == node.axes[second].size


def _across(s: Schedule, block: Handle, row: Handle, lanes: int, vectors: Size, column: int) -> None:
    """Vectorize a block across some columns; of a reduction, unroll some steps."""
    loops, last = inside(s, block, row), along(s, block, column, row)[-1]
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
    """Compute a producer of a block for one row; one that makes a result shares the loop over rows, which is given."""
    handle = s.get_block(label)
    if makes_result(s, s.program.blocks[label]):
        return shared_row(s, handle, block, row)
    s.compute_at(handle, row)
    return row


def makes_result(s: Schedule, node: Block) -> bool:
    """Whether a block writes a result of the function, which others may read as well."""
    return any(access.buffer not in s.program.allocs for access in node.writes)


def shared_row(s: Schedule, producer: Handle, block: Handle, row: Handle) -> Handle:
    """Merge the loops of a producer with a block's, from the outside in, down to the rows; returns the last merged
    loop."""
    inner = s.label(row)
    for mine, theirs in zip(s.get_loops(producer), s.get_loops(block), strict=False):
        last = s.label(theirs) == inner
        row = s.merge(mine, theirs)
        if last:
            break
    return row


def is_costly(node: Block) -> bool:
    """Whether a block's body has a mathematical function, which is not computed twice."""
    return any(kind.name.startswith("math.") for kind in _kinds(node))


def is_long(node: Block) -> bool:
    """Whether a block's body has a mathematical function of many instructions, one after the other."""
    return any(kind.name.startswith("math.") and kind not in INSTRUCTIONS for kind in _kinds(node))


def _kinds(node: Block) -> Iterator[type[Operation]]:
    """The operations of a block's body."""
    pending = list(node.body)
    while pending:
        scalar = pending.pop()
        if isinstance(scalar, Apply):
            yield scalar.kind
            pending += scalar.operands
