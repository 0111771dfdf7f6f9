"""Any reduction: multi-level tiles in the order that caches ask for, S R S R S, with a register tile innermost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from compiler.analysis.rows import streams
from compiler.recipes.draft import Alternative, Draft, in_order
from compiler.recipes.sizes import evens
from compiler.recipes.steps import node_of, side_by_side, split_loops
from compiler.schedule import Handle, Schedule, Size


def tiled_reduction(draft: Draft, label: str) -> Iterator[Alternative]:
    """A reduction over some axes for each of some others: register tiles of results, with the reduction cut or not.

    The loop along which results lie side by side becomes vectors; the two loops around it are tiled and unrolled. A
    consumer is computed on finished tiles. Source: multi-level tiling of Ansor (OSDI 2020), S spatial and R reduce.
    """
    block = draft.block(label)
    if not block.combiners or block.table is not None or all(axis.size == 1 for axis in block.axes[: block.spatial]):
        return
    if streams(block):  # what reads each element once gains nothing from tiles
        yield Alternative("as written", partial(in_order, label=label))
    for cut in (False, True):
        if not cut or any(axis.size > 1 and axis.is_reduce for axis in block.axes):
            yield Alternative(f"tiles {'SRSRS' if cut else 'SRS'}", partial(_tiled, label=label, cut=cut))


def _tiled(draft: Draft, label: str, cut: bool) -> Sequence[str]:
    s, lanes = draft.schedule, draft.lanes(label)
    handle = s.get_block(label)
    spatial, reduce = split_loops(s, handle)
    if not spatial or not reduce:
        return [label]
    column = result_column(s, handle, spatial)
    vector = [s.split(column, [None, min(lanes, s.extent(column))])] if column is not None else []
    other_spatial = [h for h in spatial if h is not column]
    tiles = [s.split(h, [None, _rows(draft, s.extent(h))]) for h in other_spatial[-2:]]
    outer = [*other_spatial[:-2], *(pair[0] for pair in tiles), *(pair[0] for pair in vector)]
    inner = [*(pair[1] for pair in tiles), *(pair[1] for pair in vector)]
    middle: list[Handle] = []
    if cut:
        extent = s.extent(reduce[0])
        chunk = draft.choose(evens(extent, 1, min(extent, 4), 512), 64, "chunk")
        first, inner_reduction = s.split(reduce[0], [None, chunk])
        middle, reduce = [first], [inner_reduction, *reduce[1:]]
    head, tail = (outer[:1], outer[1:]) if cut else (outer, [])
    s.reorder(*head, *middle, *tail, *reduce, *inner)
    for loop in inner[:-1] if vector else inner:
        s.unroll(loop)
    if vector:
        s.vectorize(inner[-1])
    s.decompose_reduction(handle, reduce[0])
    if head:
        draft.parallel(head[0])
    return [label]


def result_column(s: Schedule, block: Handle, spatial: Sequence[Handle]) -> Handle | None:
    """The loop along which the results of a block lie side by side."""
    labels = side_by_side(s, block, node_of(s, block).writes[0])
    return next((h for h in spatial if s.label(h) in labels), None)


def _rows(draft: Draft, extent: int) -> Size:
    return draft.choose([r for r in (1, 2, 3, 4, 5, 6, 7, 8) if r <= extent], 4, "tile")
