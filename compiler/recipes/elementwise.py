"""Elementwise blocks: vectorized, inlined into their readers, or computed for a row of a reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from xdsl.dialects import math
from xdsl.ir import Operation

from compiler.program.body import Apply
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft, inlined
from compiler.recipes.steps import at_most, in_vectors, nest
from compiler.schedule import Handle, Schedule, Size
from compiler.types.elements import element_bytes

INSTRUCTIONS = (math.AbsFOp, math.AbsIOp, math.CopySignOp, math.FmaOp)
"""Operations of the math dialect that take one or two instructions."""


def vectors(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of an elementwise block: inlined into its readers, if it has one or is not costly, or vectorized
    along its innermost loop. A block without axes stays as it is. A block that is read under conditions, or that
    selects for a sum, is not inlined. Yields nothing for reductions and gathers.

    A mathematical function that is the argument of another is not inlined but computed for a row before: out-of-order
    execution overlaps vectors of one function, but not of two dependent functions.
    """
    block = draft.block(label)
    if block.combiners or block.table is not None:
        return
    if not block.axes:
        yield Alternative("as it is", lambda draft: [label], optional=False)
        return
    readers = draft.readers(label)
    in_place = draft.is_temporary(label) and draft.consumer(label) is not None and len(block.axes) > 1
    if in_place and is_long(block) and is_long(readers[0]):
        yield Alternative("by vectors, for a row", partial(_before, label=label), optional=False)
    moved = is_cut(draft, label) or _joins_for_a_sum(draft, label)
    if readers and (len(readers) == 1 or not is_costly(block)) and not moved:
        yield Alternative("inlined", partial(inlined, label=label), optional=False)
    for streamed in streamed_ways(draft, label):
        name = f"by vectors{', past the caches' if streamed else ''}"
        yield Alternative(name, partial(_by_vectors, label=label, streamed=streamed), optional=False)


def _joins_for_a_sum(draft: Draft, label: str) -> bool:
    """Return whether a reduction reads a block that selects between several reads by conditions, such as a
    concatenation: inlined, the selection would run in each step of the reduction."""
    reads = draft.block(label).reads
    joins = len(reads) > 1 and any(access.where for access in reads)
    return joins and any(reader.combiners for reader in draft.readers(label))


def _before(draft: Draft, label: str) -> Sequence[str]:
    """Compute a block, vectorized, for each row of its first reader, just before the row; return its label in a
    list."""
    s, block = draft.schedule, draft.schedule.get_block(label)
    reader = s.get_block(draft.readers(label)[0].label)
    s.compute_at(block, s.get_loops(reader)[-2])
    elementwise(s, block, draft.lanes(label), 1)
    return [label]


def chains(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the inlining of an elementwise block without mathematical functions into its only, elementwise reader,
    unless it has several operands that would then be read more than once or under conditions. Yields nothing for other
    blocks."""
    block, readers = draft.block(label), draft.readers(label)
    if block.combiners or block.table is not None or is_costly(block) or len(readers) != 1:
        return
    written = {access.buffer for access in block.writes}
    uses = sum(access.buffer in written for access in readers[0].reads)
    if (uses > 1 and len(block.reads) > 1) or is_cut(draft, label):
        return
    if not readers[0].combiners and readers[0].table is None:
        yield Alternative("inlined", partial(inlined, label=label), optional=False)


def _by_vectors(draft: Draft, label: str, streamed: bool) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    block = s.get_block(label)
    loops = units_outside(s, block)
    outer = loops[-2] if len(loops) > 1 else None
    if not draft.masks(label):
        lanes = min(lanes, s.extent(loops[-1]) & -s.extent(loops[-1]))
    count = 1 if is_long(draft.block(label)) else vectors_in_turn(draft, s.extent(loops[-1]), lanes)
    elementwise(s, block, lanes, count)
    if streamed and outer is not None:
        s.annotate(outer, "nontemporal", draft.block(label).writes[0].buffer)
    if outer is not None:
        draft.parallel(loops[0])
    return [label]


def streamed_ways(draft: Draft, label: str) -> list[bool]:
    """Return whether to use nontemporal stores for a block's result, the better option first: only [False] for a
    temporary or a result that fits L2; ordinary stores first if it fits L3, where readers find it."""
    buffer = draft.schedule.program.buffers[draft.block(label).writes[0].buffer]
    bytes = prod(buffer.shape) * element_bytes(buffer.element)
    if bytes <= draft.machine.l2_bytes or buffer.name in draft.schedule.program.allocs:
        return [False]
    return [True, False] if bytes > draft.machine.l3_bytes else [False, True]


def vectors_in_turn(draft: Draft, extent: int, lanes: int) -> Size:
    """Return a choice of the number of vectors, of `lanes` elements, unrolled in a loop of `extent` iterations; the
    default is at most 4, with at most a tenth more padded vectors than the least; 1 without a choice for a single
    vector."""
    count = -(-extent // lanes)
    padded = {v: -(-count // v) * v for v in (1, 2, 3, 4)}
    least_padded = min(padded[v] for v in (2, 3, 4))
    preferred = max((v for v, size in padded.items() if v <= count and 10 * size <= 11 * least_padded), default=1)
    return draft.choose([v for v in (2, 3, 4, 6, 8, 12, 16) if v <= count] or [1], preferred, "vectors")


def is_cut(draft: Draft, label: str) -> bool:
    """Return whether a block of several operands is read under conditions, such as by a pad: inlined, each operand
    would be read under these conditions."""
    block, written = draft.block(label), {access.buffer for access in draft.block(label).writes}
    reads = [a for reader in draft.readers(label) if not reader.combiners for a in reader.reads]
    return len(block.reads) > 1 and any(access.where for access in reads if access.buffer in written)


def elementwise(s: Schedule, block: Handle, lanes: int = 16, vectors: Size = 4) -> None:
    """Vectorize the innermost loop of a block by `lanes`, with `vectors` vectors unrolled.

        j = 1024 { D(j) }                        // 16 lanes, 4 vectors
      ->
        j.0 = 16 { j.1 = 4 unrolled { j.2 = 16 vectorized { D } } }

    The remainder of a row is masked. Requires an innermost loop without dependences. Raises ScheduleError for a block
    without loops.
    """
    inner = nest(s, block, "elementwise")[-1]
    extent = s.extent(inner)
    if extent <= lanes:
        s.vectorize(inner)
    else:
        in_vectors(s, s.split(inner, [None, at_most(vectors, -(-extent // lanes)), lanes])[1:])


def units_outside(s: Schedule, block: Handle) -> list[Handle]:
    """Move loops of one iteration outermost if the innermost loop has one iteration; return all loops in their order.
    Raises ScheduleError for a block without loops.

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


def is_costly(node: Block) -> bool:
    """Return whether a block has any operation of the math dialect, which counts as too costly to recompute."""
    return any(kind.name.startswith("math.") for kind in _kinds(node))


def is_long(node: Block) -> bool:
    """Return whether a block has an operation of the math dialect that takes many dependent instructions: one that
    INSTRUCTIONS lacks."""
    return any(kind.name.startswith("math.") and kind not in INSTRUCTIONS for kind in _kinds(node))


def _kinds(node: Block) -> Iterator[type[Operation]]:
    """Iterate over the op classes in a block's body, one for each use."""
    pending = list(node.body)
    while pending:
        scalar = pending.pop()
        if isinstance(scalar, Apply):
            yield scalar.kind
            pending += scalar.operands
