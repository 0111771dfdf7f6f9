"""Sums of small results on several threads: each thread adds up a part, and the parts are added up at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.analysis.order import step
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.schedule.schedule import Handle
from compiler.space.rules.thin import find_thin
from compiler.space.rules.tiles import contiguous, split_loops

FEW = 8
"""Register tiles for each thread below which the threads are better kept busy by parts of the reduction."""
ROWS = 8
"""Rows of such a register tile, at most."""
PARTS = 8
"""The most parts for each thread."""
LEAST = 256
"""The least iterations of the outermost loop of a reduction that is cut into parts."""


def sums_in_parts(draft: Draft, label: str) -> Iterator[Alternative]:
    """A long reduction into few results: cut into parts that run side by side, each with results of its own (rfactor).

    Source: the rule AddRfactor of Ansor (Zheng et al., OSDI 2020); split-K of the BLAS.
    """
    block = draft.block(label)
    first = next((axis.size for axis in block.axes if axis.is_reduce), 0)
    if draft.threads < 2 or not block.has_init or not block.spatial or block.table is not None or first < LEAST:
        return
    thin = find_thin(draft.schedule.program, block)
    if thin is not None and block.axes[thin.long].size >= draft.threads * draft.lanes(label):
        return  # threads take parts of its results: the matrix is read in rows
    result_count = prod(axis.size for axis in block.axes[: block.spatial])
    tile = ROWS * draft.lanes(label) if _has_vectors(draft, block) else 1
    if result_count < FEW * draft.threads * tile and first >= PARTS * draft.threads:
        yield Alternative("in parts", partial(_apply, label=label))


def _has_vectors(draft: Draft, block: Block) -> bool:
    """Whether an operand of the sums lies side by side along results, as a product's does; sums of rows have none."""
    program, axes = draft.schedule.program, range(len(block.axes))
    summed = [access for access in block.reads if any(step(program, access, d) != 0 for d in axes[block.spatial :])]
    return any(step(program, access, d) == 1 for access in summed for d in axes[: block.spatial])


def _apply(draft: Draft, label: str) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    handle = s.get_block(label)
    spatial, (first, *inner_reduction) = split_loops(draft, handle)
    column = contiguous(draft, draft.block(label), spatial)
    name = None if column is None else s.label(column)
    parts = draft.choose([n * draft.threads for n in (1, 2, 4, 8)], draft.threads, "parts")
    part, inner = s.split(first, [parts, None])
    s.reorder(part, *spatial, inner, *inner_reduction)
    partial_sums = s.rfactor(handle, part)
    _tile(draft, partial_sums, name)
    s.parallel(s.get_loops(partial_sums)[0])
    _add_up(draft, handle, lanes)
    return [label]


def _tile(draft: Draft, block: Handle, column: str | None) -> None:
    """A register tile of partial results within the loop over parts, outside the reduction: rows of vectors."""
    s, label = draft.schedule, draft.schedule.label(block)
    (part, *spatial), reduction = split_loops(draft, block)
    vector = next((h for h in spatial if s.label(h) == column), None)
    row = next((h for h in reversed(spatial) if h is not vector), None)
    tile: dict[Handle, tuple[Handle, Handle]] = {}
    for handle, size in ((row, ROWS), (vector, draft.lanes(label))):
        if handle is not None:
            outer, inner = s.split(handle, [None, min(size, s.extent(handle))])
            tile[handle] = outer, inner
    outside = [tile[handle][0] if handle in tile else handle for handle in spatial]
    s.reorder(part, *outside, *reduction, *(inner for _, inner in tile.values()))
    if row is not None:
        s.unroll(tile[row][1])
    if vector is not None:
        s.vectorize(tile[vector][1])


def _add_up(draft: Draft, block: Handle, lanes: int) -> None:
    """The sum of the parts, by vectors where the last loop over results is their direction."""
    s, label = draft.schedule, draft.schedule.label(block)
    spatial, reduction = split_loops(draft, block)
    column = contiguous(draft, draft.block(label), spatial)
    if column is None or column is not spatial[-1]:
        return
    outer, vector = s.split(column, [None, min(lanes, s.extent(column))])
    s.reorder(*spatial[:-1], outer, *reduction, vector)
    s.vectorize(vector)
