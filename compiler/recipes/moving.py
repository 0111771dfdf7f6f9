"""Blocks that move elements: transposes in registers, and pooling windows separate from borders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from math import prod

from compiler.analysis.order import step
from compiler.program.body import Read
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.elementwise import is_costly, is_cut
from compiler.recipes.steps import by_axis, contiguous, in_vectors, nest, node_of, refusal, split_loops
from compiler.schedule import Handle, Schedule
from compiler.types.elements import element_bytes

WHOLE = 8
"""Without masks, a loop over bytes or half words is vectorized only if its extent is a multiple of this, not itself."""
WINDOW = 32
"""The most elements of an unrolled window."""


def transposes(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the schedule by `transposed` of a block that reads and writes contiguously along different axes, unless its
    result exceeds L2 and one of these axes is shorter than 4 vectors and has a remainder."""
    block, lanes = draft.block(label), draft.lanes(label)
    axes = turned_axes(block, lanes)
    if axes is not None and not any(_frays(draft, block, axis, lanes) for axis in axes):
        yield Alternative("transposed", partial(_in_parallel, label=label, schedule=partial(transposed, lanes=lanes)))


def _frays(draft: Draft, block: Block, axis: int, lanes: int) -> bool:
    """Return whether an axis is shorter than 4 vectors of `lanes` and has a remainder, in a block whose result exceeds
    L2."""
    buffer = draft.schedule.program.buffers[block.writes[0].buffer]
    beyond = prod(buffer.shape) * element_bytes(buffer.element) > draft.machine.l2_bytes
    return beyond and block.axes[axis].size % lanes > 0 and block.axes[axis].size < 4 * lanes


def pooling(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the schedule by `windows` of a reduction over sliding windows of at most WINDOW elements of one operand;
    nothing for other blocks, for larger windows, for one with a guard, without an init or spatial axes, and with
    several results."""
    block = draft.block(label)
    if not block.combiners or not block.has_init or len(block.combiners) > 1 or not block.spatial or block.guard:
        return
    if len(block.reads) != 1 or prod(axis.size for axis in block.axes[block.spatial :]) > WINDOW:
        return
    if any(len({axis < block.spatial for axis in form.variables()}) == 2 for form in block.reads[0].index):
        yield Alternative("windows", partial(_windows, label=label))


def _windows(draft: Draft, label: str) -> Sequence[str]:
    s = draft.schedule
    windows(s, s.get_block(label))
    if draft.threads > 1:
        loops = s.get_loops(s.get_block(label))
        s.parallel(next((loop for loop in loops if s.extent(loop) > 1), loops[0]))
    return [label]


def as_written(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield a schedule that only reorders loops for a block whose innermost loop is shorter than two vectors (without
    masks, than 2 * WHOLE, or no multiple of WHOLE) or reads backwards, with a stride or, in a copy, under conditions:
    LLVM's shuffles are cheaper than masks and gathers. Yields nothing for a reduction, a gather, a temporary that
    `vectors` inlines, and a block with a mathematical function that reads with a stride above 1 or a varying one."""
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
    if short or (shuffled and (steps <= {-1, 0, 1} or not is_costly(block))):
        yield Alternative("as written", partial(_in_parallel, label=label, schedule=contiguous))


def _in_parallel(draft: Draft, label: str, schedule: Callable[[Schedule, Handle], None]) -> Sequence[str]:
    """Schedule a block by the composite `schedule`; with several threads, make its outermost loop parallel. Return its
    label in a list."""
    schedule(draft.schedule, draft.schedule.get_block(label))
    if draft.threads > 1:
        draft.parallel(draft.schedule.get_loops(draft.schedule.get_block(label))[0])
    return [label]


def transposed(s: Schedule, block: Handle, lanes: int = 16) -> None:
    """Transpose in registers: vectors are loaded along the source and stored along the target.

        i { j { T[i, j] = A[j, i] } }            // 8 lanes
      ->
        i.0 { j.0 { i.1 = 2 { j.1 = 2 { j.2 = 8 unrolled { i.2 = 8 vectorized { T[i, j] = A[j, i] } } } } } }

    Blocks of two by two vectors cover whole cache lines of both sides; remainders are separate nests. Requires a block
    without a reduction whose loops bind an axis each: one has stride 1 in the target, another in every operand indexed
    by it, both at least a vector of `lanes` elements long; raises ScheduleError for another block. Source: transposes
    of 8 x 8 in registers in oneDNN's reorders.
    """
    axes = turned_axes(node_of(s, block), lanes)
    if axes is None:
        raise refusal(s, block, "transposed", "it does not read along one axis and write along another")
    nest(s, block, "transposed", fewest=2)
    loops = by_axis(s, block)
    target, source = (loops[axis][-1] for axis in axes)
    _without_rests(s, block, {s.label(target), s.label(source)}, lanes)
    loops = by_axis(s, block)
    target, source = (loops[axis][-1] for axis in axes)
    names = [s.label(target), s.label(source)]
    outer = [h for h in s.get_loops(block) if s.label(h) not in names]
    (far, *near), (wide, *vector) = (
        s.split(h, [None, *([2] if s.extent(h) % (2 * lanes) == 0 else []), lanes]) for h in (target, source)
    )
    s.reorder(*outer, wide, far, *vector[:-1], *near[:-1], near[-1], vector[-1])
    in_vectors(s, [near[-1], vector[-1]])


def _without_rests(s: Schedule, block: Handle, names: set[str], lanes: int) -> None:
    """Split off the remainders after whole vectors of `lanes` of the loops labelled `names`, as separate nests; a loop
    without a remainder stays."""
    loops = s.get_loops(block)
    for depth in reversed(range(len(loops))):
        loop = loops[depth]
        in_vectors = s.extent(loop) // lanes * lanes
        if s.label(loop) in names and in_vectors < s.extent(loop):
            s.partition(loop, in_vectors)
            for outer in reversed(s.get_loops(block)[:depth]):
                s.distribute(outer, block)


def turned_axes(node: Block, lanes: int) -> tuple[int, int] | None:
    """Return the numbers of the axes, of at least `lanes` elements, along which a block writes and reads contiguously,
    in this order. None if they are equal or missing, for a reduction or a gather, and for reads under conditions."""
    if node.combiners or node.table is not None or not node.writes[0].index:
        return None
    steps = [n for n, axis in enumerate(node.axes) if axis.size >= lanes]
    target = [n for n in steps if node.writes[0].index[-1].coefficient(n) == 1]
    varying_reads = [access for access in node.reads if len({n for form in access.index for n in form.variables()}) > 1]
    source = [
        n for n in steps if varying_reads and all(access.index[-1].coefficient(n) == 1 for access in varying_reads)
    ]
    if not target or not source or target[0] == source[0] or any(access.where for access in varying_reads):
        return None
    if any(
        source[0] in form.variables()
        for access in node.reads
        if access not in varying_reads
        for form in access.index[:-1]
    ):
        return None
    return target[0], source[0]


def windows(s: Schedule, block: Handle) -> None:
    """Unroll the reduction of each window, and put windows that cross a border into separate nests.

        i = 56 { r = 3 { T[i] max= A[2i + r - 1] if 0 <= 2i + r - 1 else -inf } }
      ->
        i = 1 { r unrolled { ... } }   i = 55 { r unrolled { T[i + 1] max= A[2i + r + 1] } }

    Each loop over results is partitioned at the bounds of the conditions of reads, so that most windows are read
    without them; their elements are unrolled, and LLVM vectorizes across windows. Raises ScheduleError for a block that
    is no reduction. Requires that its loops bind an axis each. Source: Halide's loop partitioning.
    """
    node = node_of(s, block)
    if not node.combiners:
        raise refusal(s, block, "windows", "it is no reduction")
    outer, inner = split_loops(s, block)
    if outer and inner:
        s.reorder(*outer, *inner)
    for loop in inner:
        s.unroll(loop)
    loops = s.program.enclosing(s.label(block))
    axes = {loop.label: n for n, form in enumerate(node.bindings) for loop in loops if loop.number in form.variables()}
    for loop in reversed(outer):
        first, last = interior(node, axes[s.label(loop)])
        if last < s.extent(loop) > 1 and last > 0:
            loop = s.partition(loop, last)[0]
        if 0 < first < s.extent(loop):
            s.partition(loop, first)


def interior(node: Block, axis: int) -> tuple[int, int]:
    """Return the longest range of an axis, half open, in which all conditions of reads that depend on the axis are
    true: (1, 56) for 0 <= 2*i + r - 1 < 112 with r < 3 and i < 56. The first of equally long ones; the full range if
    they are true nowhere."""
    conditions = [c for access in node.reads for c in access.where if axis in c.form.variables()]
    holds = [all(c.always({**node.axis_ranges, axis: (n, n)}) for c in conditions) for n in range(node.axes[axis].size)]
    runs = [list(run) for all_hold, run in groupby(range(len(holds)), key=holds.__getitem__) if all_hold]
    longest = max(runs, key=len, default=range(len(holds)))
    return longest[0], longest[-1] + 1
