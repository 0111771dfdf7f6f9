"""The blocks of a streamed attention, moved to one loop over blocks of keys inside one over blocks of queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerAttr

from compiler.affine.linear import bounds
from compiler.alternatives import StreamedNames
from compiler.analysis.barriers import RESIDENT
from compiler.program.tree import Program
from compiler.recipes.draft import Draft
from compiler.recipes.steps import fused, inside, node_of, refusal, target_of
from compiler.schedule import Handle, Schedule

NAMES = StreamedNames()


class StreamedBlocks(NamedTuple):
    """The blocks of a streamed attention but those of values, by their names in `StreamedNames`."""

    rows: Handle
    keys: Handle
    scores: Handle
    parts: Handle
    top: Handle
    running: Handle
    powers: Handle
    part: Handle
    wide: Handle
    result: Handle


BLOCKS = tuple(getattr(NAMES, field) for field in StreamedBlocks._fields)
"""The labels of these blocks, in their order."""


def is_streamed(draft: Draft, label: str) -> bool:
    """Return whether `label` is that of the result of a program in the form `streamed_attention`, none of whose blocks
    is scheduled yet."""
    return label == NAMES.result and {*BLOCKS, NAMES.values, NAMES.columns} <= {*draft.left}


class StreamedLoops(NamedTuple):
    """The loops of a streamed attention: over batches, over blocks of queries, and inside over blocks of keys."""

    batches: list[Handle]
    queries: Handle
    keys: Handle


def block_by_block(s: Schedule, blocks: StreamedBlocks, queries: int) -> StreamedLoops:
    """Compute a block of `queries` queries at a time, and in it a block of keys at a time, but for the values. Return
    the loops.

        scores; top.parts; top; running; powers; part; wide; result
      ->
        m.0 { rows = Q;  n.0 { keys = K;  scores;  top.parts;  top;  running;  powers;  part;  wide };  result }

    Raises ScheduleError for other programs.
    """
    for block in _logits(s, blocks.parts):
        s.inline(block)
    *many, m, e = _result_loops(s, blocks.result)
    m0, m = s.split(m, [None, queries])
    s.reorder(*many, m0, m, e)
    s.compute_at(blocks.wide, m0)
    m, sums, *columns = inside(s, blocks.wide, m0)
    s.reorder(sums, m, *columns)
    s.compute_at(blocks.part, sums)
    s.compute_at(blocks.powers, sums)
    s.compute_at(blocks.running, m0)
    m, t, j = inside(s, blocks.running, m0)
    s.reorder(t, m, j)
    n0 = s.merge(t, sums)
    for block in (blocks.top, blocks.parts, blocks.scores, blocks.keys):
        s.compute_at(block, n0)
    s.compute_at(blocks.rows, m0)
    return StreamedLoops(many, m0, n0)


def in_one_place(s: Schedule, blocks: StreamedBlocks, keys: Handle) -> None:
    """End the loop over blocks of keys with the last block that the queries need, and store the maximum and the sums so
    far in one element for all blocks of keys."""
    s.trim(keys)
    for name in node_of(s, blocks.running).targets:
        s.transform_layout(blocks.running, name, lambda *b: (*b[:-2], b[-1]))
    s.transform_layout(blocks.wide, target_of(s, blocks.wide), lambda *b: (*b[:-3], *b[-2:]))


def set_first(s: Schedule, blocks: StreamedBlocks, keys: Handle) -> None:
    """Set the maximum and the sums before the loop `keys` over blocks of keys. If the wide block has a guard, that loop
    is trimmed, also for the copies of operands."""
    for block in (blocks.wide, blocks.running):
        s.decompose_reduction(block, keys)
    if node_of(s, blocks.wide).guard:
        s.trim(keys)


def queries_alike(program: Program, queries: int) -> bool:
    """Return whether, in each block of `queries` consecutive queries, all read the results of one block of keys."""
    block, row = program.blocks[NAMES.result], len(program.buffers[NAMES.rows].shape) - 2
    read = block.reads[0]
    (axis,) = read.index[row].variables()
    size = block.axes[axis].size
    ranges = [(m, min(m + queries, size) - 1) for m in range(0, size, queries)]
    spans = [bounds(read.index[-3], {axis: queries_of_block}) for queries_of_block in ranges]
    return all(low == high for low, high in spans)


def on_blocks(s: Schedule, loops: Sequence[Handle]) -> None:
    """Bind loops over batches and over blocks of queries to the blocks of threads of a kernel, whose accumulators are
    to stay in registers however few blocks a multiprocessor then has."""
    blocks = fused(s, loops)
    s.bind(blocks, "block_x")
    s.annotate(blocks, RESIDENT, IntegerAttr(1, 64))


def _result_loops(s: Schedule, result: Handle) -> list[Handle]:
    """Return the loops of the result: over batches, queries and columns. Raises ScheduleError if that over queries or
    that over columns is missing; batches may have any number."""
    node, loops = node_of(s, result), s.get_loops(result)
    read, row = node.reads[0], len(s.program.buffers[NAMES.rows].shape) - 2
    by_number = {loop.number: handle for handle, loop in zip(loops, s.program.enclosing(NAMES.result), strict=True)}
    m, e = (
        {by_number[v] for v in node.at(read.index[dimension], s.program.ranges).variables()} for dimension in (row, -2)
    )
    if len(m) != 1 or len(e) != 1 or m == e:
        raise refusal(s, result, "block_by_block", "it has no loop over queries and no loop over columns")
    return [*(loop for loop in loops if loop not in m | e), *m, *e]


def _logits(s: Schedule, block: Handle) -> list[Handle]:
    """Return the elementwise blocks between the scores and a reader of logits, the last first; empty if it reads the
    scores. Requires that each has at most one producer besides the scores."""
    blocks: list[Handle] = []
    while True:
        before = [h for h in s.get_producers(block) if s.label(h) != NAMES.scores]
        if not before:
            return blocks
        (block,) = before
        blocks.append(block)
