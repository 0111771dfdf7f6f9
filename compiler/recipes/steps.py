"""The composite `contiguous`, for any block; and queries and steps that recipes share."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.analysis.order import contiguous_order
from compiler.program.tree import Access, Block, Loop, blocks_in
from compiler.schedule import Handle, Schedule, Size
from compiler.support.errors import ScheduleError


def contiguous(s: Schedule, block: Handle) -> None:
    """Move the loop along which most operands of a block are contiguous innermost, as `build` does without a schedule.

        m { l { k { C[m, l] += A[m, k] * B[k, l] } } }
      ->
        m { k { l { C[m, l] += A[m, k] * B[k, l] } } }

    Leaves a block that is not alone in its nest or reads its target, and a block whose best loop is a reduction.
    Source: the pass reorder-contiguous.
    """
    handles = {loop.number: handle for handle, loop in around(s, block)}
    order = contiguous_order(s.program, node_of(s, block), s.program.enclosing(s.label(block)))
    if order:
        s.reorder(*(handles[loop.number] for loop in order))


def panels(extent: int, tile: int, register: int) -> list[int]:
    """A cache tile as a number of register tiles, no more than the extent needs, and the register tile."""
    return [min(tile // register, -(-extent // register)), register]


def nest(s: Schedule, block: Handle, composite: str, fewest: int = 1) -> list[Handle]:
    """The loops around a block, outermost first. Raises ScheduleError where there are fewer than `fewest`."""
    loops = s.get_loops(block)
    if len(loops) < fewest:
        raise refusal(s, block, composite, f"it has {len(loops)} loops, not {fewest}")
    return loops


def matmul_nest(s: Schedule, block: Handle, composite: str) -> list[Handle]:
    """The loops m, n, k of a matmul. Raises ScheduleError where there are not three, or not two operands."""
    loops, read = nest(s, block, composite), operands(s, block)
    if len(loops) != 3 or len(read) != 2:
        reason = f"a matmul has 3 loops and 2 operands, this has {len(loops)} and {len(read)}"
        raise refusal(s, block, composite, reason)
    return loops


def operands(s: Schedule, block: Handle) -> tuple[str, ...]:
    """The names of the buffers that a block reads, in the order of its operands."""
    return node_of(s, block).sources


def operand_over(s: Schedule, block: Handle, axis: int) -> str:
    """The name of the first buffer that a block reads at an index that depends on an axis, whatever the order of its
    operands; the last operand where none does."""
    node = node_of(s, block)
    over = [access.buffer for access in node.reads if any(axis in form.variables() for form in access.index)]
    return over[0] if over else node.sources[-1]


def other_operand(s: Schedule, block: Handle, buffer: str) -> str:
    """The name of the other operand of a block that reads a buffer; the same where it reads no other."""
    return next((name for name in operands(s, block) if name != buffer), buffer)


def target_of(s: Schedule, block: Handle) -> str:
    """The name of the first buffer that a block writes."""
    return node_of(s, block).writes[0].buffer


def node_of(s: Schedule, block: Handle) -> Block:
    """A block of the program as it is now."""
    return s.program.blocks[s.label(block)]


def refusal(s: Schedule, block: Handle, composite: str, reason: str) -> ScheduleError:
    """The error of a composite that does not take a block."""
    return ScheduleError(reason, composite, f"block '{s.label(block)}'")


def around(s: Schedule, block: Handle) -> list[tuple[Handle, Loop]]:
    """The loops around a block, outermost first, each with its handle."""
    return list(zip(s.get_loops(block), s.program.enclosing(s.label(block)), strict=True))


def split_loops(s: Schedule, block: Handle) -> tuple[list[Handle], list[Handle]]:
    """The loops around a block that bind axes of results, and those that bind the reduction alone."""
    numbers = node_of(s, block).loops_of(reduce=False)
    loops = around(s, block)
    return [h for h, loop in loops if loop.number in numbers], [h for h, loop in loops if loop.number not in numbers]


def side_by_side(s: Schedule, block: Handle, access: Access) -> set[str]:
    """The labels of the loops around a block along which one of its accesses steps by one element."""
    if not access.index:
        return set()
    form = node_of(s, block).at(access.index[-1], s.program.ranges)
    return {loop.label for loop in s.program.enclosing(s.label(block)) if form.coefficient(loop.number) == 1}


def axes_of(access: Access) -> set[int]:
    """The axes of a block that move one of its accesses."""
    return set().union(*(form.variables() for form in access.index))


def own_loops(s: Schedule, block: Handle) -> list[Handle]:
    """The loops around a block that are around no other."""
    label = s.label(block)
    return [handle for handle, loop in around(s, block) if [b.label for b in blocks_in(loop)] == [label]]


def inside(s: Schedule, block: Handle, at: Handle) -> list[Handle]:
    """The loops around a block that are inside another loop around it, outermost first."""
    loops = s.get_loops(block)
    return loops[[s.label(loop) for loop in loops].index(s.label(at)) + 1 :]


def along(s: Schedule, block: Handle, axis: int, at: Handle | None = None) -> list[Handle]:
    """The loops around a block, inside another loop, that bind one of its axes, outermost first."""
    numbers = node_of(s, block).bindings[axis].variables()
    names = {loop.label for loop in s.program.enclosing(s.label(block)) if loop.number in numbers}
    return [loop for loop in (s.get_loops(block) if at is None else inside(s, block, at)) if s.label(loop) in names]


def by_axis(s: Schedule, block: Handle, at: Handle | None = None) -> list[list[Handle]]:
    """For each axis of a block the loops that bind it, inside another loop, outermost first."""
    handles = {s.label(loop): loop for loop in (s.get_loops(block) if at is None else inside(s, block, at))}
    loops = [loop for loop in s.program.enclosing(s.label(block)) if loop.label in handles]
    bindings = [form.variables() for form in node_of(s, block).bindings]
    return [[handles[loop.label] for loop in loops if loop.number in numbers] for numbers in bindings]


def in_vectors(s: Schedule, loops: Sequence[Handle]) -> None:
    """Unroll a nest around its innermost loop, and vectorize that one."""
    for loop in loops[:-1]:
        s.unroll(loop)
    s.vectorize(loops[-1])


def unroll_rows(s: Schedule, block: Handle, lanes: int, rows: int | None = None) -> None:
    """Vectorize the innermost loop of an elementwise block on a register tile, and unroll the loops over `rows`, as
    many of the others, all by default."""
    *others, lane = own_loops(s, block)
    in_vectors(s, [*others[len(others) - min(len(others), rows) if rows is not None else 0 :], *cut(s, lane, lanes)])


def cut(s: Schedule, loop: Handle, lanes: int) -> list[Handle]:
    """A loop by vectors: the loop over them, where there are several, and the one over lanes."""
    return s.split(loop, [None, lanes]) if s.extent(loop) > lanes else [loop]


def by_vectors(s: Schedule, loop: Handle, lanes: int, count: int = 1) -> list[Handle]:
    """Split a loop in panels of `count` vectors of at most that many lanes: the loops over panels, vectors, lanes.

    The loop over the vectors of a panel is left out where there is one.
    """
    vector = min(lanes, s.extent(loop))
    return s.split(loop, [None, *([count] if count > 1 else []), vector])


def fused(s: Schedule, loops: Sequence[Handle]) -> Handle:
    """Some nested loops as one."""
    return s.fuse(*loops) if len(loops) > 1 else loops[0]


def at_most(size: Size, limit: int) -> Size:
    """A size that is no larger than a limit; a parameter is taken as it is."""
    return min(size, limit) if isinstance(size, int) else size
