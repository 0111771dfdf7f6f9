"""Composites for what works on rows: softmax, norms, elementwise functions."""

from __future__ import annotations

from compiler.program.body import Apply
from compiler.program.tree import Block
from compiler.schedule.library.loops import at_most, in_vectors, nest, node_of
from compiler.schedule.schedule import Handle, Schedule, Size


def elementwise(s: Schedule, block: Handle, lanes: int = 16, vectors: Size = 4) -> None:
    """Run the innermost loop of a block by vectors, some of them one behind the other.

        j = 1024 { D(j) }                        // 16 lanes, 4 vectors
      ->
        j.0 = 16 { j.1 = 4 unrolled { j.2 = 16 vectorized { D } } }

    What is left of a row whose length they do not divide is masked. Requires an innermost loop without dependences.
    """
    inner = nest(s, block, "elementwise")[-1]
    extent = s.extent(inner)
    if extent <= lanes:
        s.vectorize(inner)
    else:
        in_vectors(s, s.split(inner, [None, at_most(vectors, -(-extent // lanes)), lanes])[1:])


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


def by_rows(s: Schedule, block: Handle, lanes: int = 16, vectors: Size = 4, streamed: bool = False) -> Handle:
    """Compute all that a block needs of one row just before that row, by vectors, with rows between in the cache.

        i { max }  i { exp }  i { sum }  i { j { D } }
      ->
        i { max of a row;  exp of a row;  sum of a row;  j { D } }

    Producers without a reduction and without mathematical functions are inlined where they have one reader. Those whose
    values are results themselves share the loop over rows; of a reduction a copy does. With `streamed`, the block's
    results go past the caches. Gives the loop over rows. Requires a block whose last loop runs along the row, and
    producers that can be computed for one row; of results, as many rows. Source: the row-wise fusion of XLA, and of
    Milakov and Gimelshein's softmax (2018).
    """
    row = nest(s, block, "by_rows", least=2)[-2]
    buffers = {access.buffer for access in node_of(s, block).writes}
    for label, node in list(s.program.blocks.items()):
        if node.combiners and makes_result(s, node):
            s.cache_write(s.get_block(label))
    for label in reversed([name for name in s.program.blocks if name != s.label(block)]):
        row = place(s, label, row, block)
    for label in list(s.program.blocks):
        node = s.program.blocks[label]
        own = s.program.enclosing(label)
        if own[-1].extent <= lanes or own[-1].label == s.label(row):
            continue
        if node.combiners:
            row_reduction(s, s.get_block(label), lanes, vectors)
        else:
            elementwise(s, s.get_block(label), lanes, vectors)
    if streamed:
        for buffer in buffers:
            s.annotate(row, "nontemporal", buffer)
    return row


def place(s: Schedule, label: str, row: Handle, block: Handle) -> Handle:
    """Inline a producer of a block, or compute it for one row; one that makes a result shares the loop over rows, which
    is given."""
    node, handle = s.program.blocks[label], s.get_block(label)
    readers = {b.label for access in node.writes for b in s.program.readers[access.buffer]}
    if makes_result(s, node):
        return shared_row(s, handle, block, row)
    if not node.combiners and not is_costly(node) and len(readers) == 1:
        s.inline(handle)
    else:
        s.compute_at(handle, row)
    return row


def makes_result(s: Schedule, node: Block) -> bool:
    """Whether a block writes a result of the function, which others may read as well."""
    return any(access.buffer not in s.program.allocs for access in node.writes)


def shared_row(s: Schedule, producer: Handle, block: Handle, row: Handle) -> Handle:
    """Let the loops of a producer, from the outside in, be those of a block as far as its rows; gives the last."""
    inner = s.label(row)
    for mine, other in zip(s.get_loops(producer), s.get_loops(block), strict=False):
        last = s.label(other) == inner
        row = s.merge(mine, other)
        if last:
            break
    return row


def is_costly(node: Block) -> bool:
    """Whether a block's body has a mathematical function, which is not computed twice."""
    pending = list(node.body)
    while pending:
        scalar = pending.pop()
        if isinstance(scalar, Apply):
            if scalar.kind.name.startswith("math."):
                return True
            pending += scalar.operands
    return False
