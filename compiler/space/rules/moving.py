"""Blocks that move elements: transposes, and windows that are reduced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.affine.linear import Linear
from compiler.analysis.order import step
from compiler.program.body import Read
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.schedule import library
from compiler.schedule.library.moving import turned_axes
from compiler.types.elements import element_bytes

WHOLE = 8
"""The fewest lanes of a vector of bytes or half words for which we vectorize; LLVM does not."""
WINDOW = 32
"""The most elements of a window that are read one behind the other, without a loop."""


def transposed(draft: Draft, label: str) -> Iterator[Alternative]:
    """A block that reads along one axis and writes along another: by blocks that are transposed in registers."""
    block, lanes = draft.block(label), draft.lanes(label)
    turned = turned_axes(block, lanes)
    if turned is not None and not any(_frays(draft, block, axis, lanes) for axis in turned):
        yield Alternative("transposed", partial(_transposed, label=label))


def _frays(draft: Draft, block: Block, axis: int, lanes: int) -> bool:
    """Whether much of an axis is left after whole vectors, which comes from beyond L2 once more."""
    buffer = draft.schedule.program.buffers[block.writes[0].buffer]
    beyond = prod(buffer.shape) * element_bytes(buffer.element) > draft.machine.l2_bytes
    return beyond and block.axes[axis].size % lanes > 0 and block.axes[axis].size < 4 * lanes


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
    inlined = draft.is_temporary(label) and readers and all(not reader.combiners for reader in readers)
    if inlined and not is_cut(draft, label):
        return
    last = max((n for n, axis in enumerate(block.axes) if axis.size > 1), default=len(block.axes) - 1)
    size = block.axes[last].size
    short = size < 2 * draft.lanes(label) if draft.masks(label) else size < 2 * WHOLE or size % WHOLE > 0
    steps = {step(draft.schedule.program, access, last) for access in block.reads}
    moves = len(block.reads) == 1 and isinstance(block.body[0], Read)
    under = any(last in c.form.variables() for access in block.reads for c in access.where)
    shuffled = not steps <= {0, 1, None} or (moves and (under or None in steps))
    if short or (shuffled and (steps <= {-1, 0, 1} or not library.is_costly(block))):
        yield Alternative("as written", partial(_as_written, label=label))


def _as_written(draft: Draft, label: str) -> Sequence[str]:
    s = draft.schedule
    library.contiguous(s, s.get_block(label))
    if draft.threads > 1:
        s.parallel(s.get_loops(s.get_block(label))[0])
    return [label]


def is_cut(draft: Draft, label: str) -> bool:
    """Whether a block reads several elements for each of its results, and another moves these under conditions, as a
    pad does: under those conditions each of them would be read."""
    block, written = draft.block(label), {access.buffer for access in draft.block(label).writes}
    reads = [a for reader in draft.readers(label) if not reader.combiners for a in reader.reads]
    return len(block.reads) > 1 and any(access.where for access in reads if access.buffer in written)
