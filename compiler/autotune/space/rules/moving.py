"""Blocks that move elements: transposes, and windows that are reduced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.affine.linear import Linear
from compiler.analysis.order import step
from compiler.autotune.space.rules.draft import Alternative, Draft
from compiler.program.body import Read
from compiler.program.tree import Block
from compiler.schedule import library
from compiler.schedule.library.moving import turned_axes

WINDOW = 32
"""The most elements of a window that are read one behind the other, without a loop."""


def transposed(draft: Draft, label: str) -> Iterator[Alternative]:
    """A block that reads along one axis and writes along another: by blocks that are transposed in registers."""
    block = draft.block(label)
    if turned_axes(block, draft.lanes(label)) is not None:
        yield Alternative("transposed", partial(_transposed, label=label))


def _transposed(draft: Draft, label: str) -> Sequence[str]:
    s = draft.schedule
    library.transposed(s, s.get_block(label), draft.lanes(label))
    if draft.threads > 1:
        s.parallel(s.get_loops(s.get_block(label))[0])
    return [label]


def windows(draft: Draft, label: str) -> Iterator[Alternative]:
    """Small windows that slide over one operand, as pooling has them: apart from those at the borders."""
    block = draft.block(label)
    if not block.combiners or not block.has_init or len(block.combiners) > 1 or not block.spatial or block.guard:
        return
    if len(block.reads) != 1 or prod(axis.size for axis in block.axes[block.spatial :]) > WINDOW:
        return
    if any(_slides(block, form) for form in block.reads[0].index):
        yield Alternative("windows", partial(_windows, label=label))


def _slides(block: Block, form: Linear) -> bool:
    """Whether an index is of an axis of the results and one of the reduction together."""
    spatial = {axis < block.spatial for axis in form.variables()}
    return len(spatial) == 2


def _windows(draft: Draft, label: str) -> Sequence[str]:
    s = draft.schedule
    library.windows(s, s.get_block(label))
    if draft.threads > 1:
        loops = s.get_loops(s.get_block(label))
        s.parallel(next((loop for loop in loops if s.extent(loop) > 1), loops[0]))
    return [label]


def as_written(draft: Draft, label: str) -> Iterator[Alternative]:
    """A block that reads backwards, by steps or, where it moves elements, under conditions along its innermost loop,
    and one that has not two vectors along that: LLVM shuffles what masks and gathers would take apart."""
    block, readers = draft.block(label), draft.readers(label)
    if block.combiners or block.table is not None or not block.axes:
        return
    if draft.is_temporary(label) and readers and all(not reader.combiners for reader in readers):
        return
    last = max((n for n, axis in enumerate(block.axes) if axis.size > 1), default=len(block.axes) - 1)
    short = block.axes[last].size < 2 * draft.lanes(label)
    steps = {step(draft.schedule.program, access, last) for access in block.reads}
    moves = len(block.reads) == 1 and isinstance(block.body[0], Read)
    under = any(last in c.form.variables() for access in block.reads for c in access.where)
    shuffled = not steps <= {0, 1, None} or (moves and (under or None in steps))
    if short or (shuffled and not library.is_costly(block)):
        yield Alternative("as written", partial(_as_written, label=label))


def _as_written(draft: Draft, label: str) -> Sequence[str]:
    s = draft.schedule
    library.contiguous(s, s.get_block(label))
    if draft.threads > 1:
        s.parallel(s.get_loops(s.get_block(label))[0])
    return [label]
