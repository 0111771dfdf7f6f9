"""Attention by rows of queries (library.attention): two products that share a loop, with the softmax between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.sizes import step_cycles, steps
from compiler.schedule import library
from compiler.space.rules.product import is_product

BLOCKS = 5
"""The least blocks of an attention: scores, their maximum, powers, their sum, and the result."""


def shared_rows(draft: Draft, label: str) -> Iterator[Alternative]:
    """The last product, the softmax that it weighs with, and the product of the scores, for some rows at a time."""
    if len(draft.left) < BLOCKS or draft.left[-1] != label or not is_product(draft.block(label)):
        return
    length, depth = draft.block(label).axes[-1].size, draft.block(label).axes[-2].size
    usual = library.attention_tiles(length, depth, draft.lanes(label))
    widths = sorted({2, 3, 4, usual.nr // usual.lanes}, key=lambda n: _price(draft, n, -(-depth // usual.lanes)))
    for vectors in widths:
        for grouped in dict.fromkeys((usual.group != 1, usual.group == 1)):
            name = f"rows of queries, {vectors} vectors{', in groups' if grouped else ''}"
            yield Alternative(name, partial(_apply, label=label, vectors=vectors, grouped=grouped))


def _price(draft: Draft, vectors: int, depth: int) -> tuple[float, float]:
    """Cycles of a sum over so many vectors of depth in register tiles of some vectors, what fills up the last tile
    counted, and its loads."""
    rows = _rows(draft, vectors)
    sums, loads = rows * vectors, rows + vectors
    filled = -(-depth // vectors) * vectors / depth
    return filled * step_cycles(sums, loads) / sums, filled * loads / sums


def _rows(draft: Draft, vectors: int) -> int:
    """The most rows of queries in a register tile of some vectors."""
    return (draft.machine.registers - 1) // vectors - 1


def _apply(draft: Draft, label: str, vectors: int, grouped: bool) -> Sequence[str]:
    s, block = draft.schedule, draft.block(label)
    queries, length, depth = block.axes[-3].size, block.axes[-1].size, block.axes[-2].size
    usual = library.attention_tiles(length, depth, draft.lanes(label))
    most = min(_rows(draft, vectors), queries)
    rows = draft.choose(range(2, most + 1) or [1], most, "rows")
    group = draft.choose(steps(max(2, queries // most), (2, 4, 8)), 4, "group") if grouped else 1
    tiles = replace(usual, mr=rows, nr=vectors * usual.lanes, group=group)
    scheduled = library.attention(s, s.get_block(label), tiles)
    draft.parallel([*scheduled.heads, scheduled.group][0])
    return draft.left
