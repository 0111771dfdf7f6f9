"""The composite `contiguous`, for any block; and queries and steps shared by recipes."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.analysis.order import contiguous_order
from compiler.program.tree import Access, Block, Loop, blocks_in
from compiler.schedule import Handle, Schedule, Size
from compiler.support.errors import ScheduleError


def contiguous(s: Schedule, block: Handle) -> None:
    """Move innermost the loop along which most operands of a block are contiguous, as `build` does without a schedule.

        m { l { k { C[m, l] += A[m, k] * B[k, l] } } }
      ->
        m { k { l { C[m, l] += A[m, k] * B[k, l] } } }

    Blocks that share their nest or read their target, and those whose best loop is a reduction, stay as they are.
    Source: the pass reorder-contiguous.
    """
    handles = {loop.number: handle for handle, loop in around(s, block)}
    order = contiguous_order(s.program, node_of(s, block), s.program.enclosing(s.label(block)))
    if order:
        s.reorder(*(handles[loop.number] for loop in order))


def panels(extent: int, tile: int, register: int) -> list[int]:
    """Return the sizes of two inner levels of a loop of `extent` iterations: the register tiles in a cache tile of
    `tile` elements, at most those of the extent, 0 for a `tile` below `register`; and `register`, the elements of a
    register tile."""
    return [min(tile // register, -(-extent // register)), register]


def nest(s: Schedule, block: Handle, composite: str, fewest: int = 1) -> list[Handle]:
    """Return the loops around a block, outermost first. Raises ScheduleError, in the name of `composite`, for fewer
    than `fewest`."""
    loops = s.get_loops(block)
    if len(loops) < fewest:
        raise refusal(s, block, composite, f"it has {len(loops)} loops, not {fewest}")
    return loops


def matmul_nest(s: Schedule, block: Handle, composite: str) -> list[Handle]:
    """Return the loops m, n, k around a matmul. Raises ScheduleError, in the name of `composite`, unless there are
    three loops and two operands."""
    loops, read = nest(s, block, composite), operands(s, block)
    if len(loops) != 3 or len(read) != 2:
        reason = f"a matmul has 3 loops and 2 operands, this has {len(loops)} and {len(read)}"
        raise refusal(s, block, composite, reason)
    return loops


def operands(s: Schedule, block: Handle) -> tuple[str, ...]:
    """Return the names of the buffers that a block reads, each once, in the order of its operands.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 4), name="B")
    >>> s = Schedule(te.function("f", [A, B], te.nn.matmul(A, B, name="C")))
    >>> strata.recipes.operands(s, s.get_block("C"))
    ('A', 'B')
    """
    return node_of(s, block).sources


def operand_over(s: Schedule, block: Handle, axis: int) -> str:
    """Return the first buffer that a block reads at an index with the axis number `axis`; the last one that it reads if
    there is none. Requires a read."""
    node = node_of(s, block)
    over = [access.buffer for access in node.reads if any(axis in form.variables() for form in access.index)]
    return over[0] if over else node.sources[-1]


def other_operand(s: Schedule, block: Handle, buffer: str) -> str:
    """Return the first buffer that a block reads other than `buffer`; `buffer` itself if there is no other."""
    return next((name for name in operands(s, block) if name != buffer), buffer)


def target_of(s: Schedule, block: Handle) -> str:
    """Return the name of the first buffer that a block writes."""
    return node_of(s, block).writes[0].buffer


def node_of(s: Schedule, block: Handle) -> Block:
    """Return the node of a block in the program as the steps so far leave it. Raises ScheduleError for a consumed
    handle."""
    return s.program.blocks[s.label(block)]


def refusal(s: Schedule, block: Handle, composite: str, reason: str) -> ScheduleError:
    """Return, without raising it, the error with which a composite refuses a block for a reason."""
    return ScheduleError(reason, composite, f"block '{s.label(block)}'")


def around(s: Schedule, block: Handle) -> list[tuple[Handle, Loop]]:
    """Return the loops around a block, outermost first, each with its handle."""
    return list(zip(s.get_loops(block), s.program.enclosing(s.label(block)), strict=True))


def sums_pairs(block: Block) -> bool:
    """Return whether a block is a sum over two reads without a gather, as products and convolutions are; the reads may
    be of one buffer."""
    return block.combiners == ("add",) and len(block.reads) == 2 and block.table is None


def split_loops(s: Schedule, block: Handle) -> tuple[list[Handle], list[Handle]]:
    """Return the loops around a block that bind spatial axes, and all others, which are over reduce axes, in order."""
    numbers = node_of(s, block).loops_of(reduce=False)
    loops = around(s, block)
    return [h for h, loop in loops if loop.number in numbers], [h for h, loop in loops if loop.number not in numbers]


def side_by_side(s: Schedule, block: Handle, access: Access) -> set[str]:
    """Return the labels of the loops with coefficient 1 in the last index of an access; the empty set for a scalar."""
    if not access.index:
        return set()
    form = node_of(s, block).at(access.index[-1], s.program.ranges)
    return {loop.label for loop in s.program.enclosing(s.label(block)) if form.coefficient(loop.number) == 1}


def axes_of(access: Access) -> set[int]:
    """Return the numbers of the block's axes that the index of an access depends on."""
    return set().union(*(form.variables() for form in access.index))


def own_loops(s: Schedule, block: Handle) -> list[Handle]:
    """Return the loops around a block that contain no other block, outermost first."""
    label = s.label(block)
    return [handle for handle, loop in around(s, block) if [b.label for b in blocks_in(loop)] == [label]]


def inside(s: Schedule, block: Handle, at: Handle) -> list[Handle]:
    """Return the loops around a block that are inside the loop `at`, outermost first; `at` is itself around the block:
    any other loop raises ValueError."""
    loops = s.get_loops(block)
    return loops[[s.label(loop) for loop in loops].index(s.label(at)) + 1 :]


def by_axis(s: Schedule, block: Handle, at: Handle | None = None) -> list[list[Handle]]:
    """Return for each axis of a block the loops that bind it, outermost first; only those inside the loop `at`, unless
    that is None. An axis of extent 1 may have no loop."""
    handles = {s.label(loop): loop for loop in (s.get_loops(block) if at is None else inside(s, block, at))}
    loops = [loop for loop in s.program.enclosing(s.label(block)) if loop.label in handles]
    bindings = [form.variables() for form in node_of(s, block).bindings]
    return [[handles[loop.label] for loop in loops if loop.number in numbers] for numbers in bindings]


def in_vectors(s: Schedule, loops: Sequence[Handle]) -> None:
    """Vectorize the last of nested loops, of which there is at least one, and unroll the others."""
    for loop in loops[:-1]:
        s.unroll(loop)
    s.vectorize(loops[-1])


def vectorize_rows(s: Schedule, block: Handle, lanes: int, unrolled: bool = True) -> None:
    """Vectorize an elementwise block by `lanes` along its innermost own loop, if any; if `unrolled`, unroll others."""
    if loops := own_loops(s, block):  # one element has none
        in_vectors(s, [*(loops[:-1] if unrolled else []), *cut(s, loops[-1], lanes)])


def cut(s: Schedule, loop: Handle, lanes: int) -> list[Handle]:
    """Split a loop by `lanes` and return both loops, the outer one first; a loop of at most `lanes` iterations stays,
    and is returned alone."""
    return s.split(loop, [None, lanes]) if s.extent(loop) > lanes else [loop]


def by_vectors(s: Schedule, loop: Handle, lanes: int, count: int = 1) -> list[Handle]:
    """Split a loop into panels of `count` vectors of at most `lanes` lanes. Return the loops over panels, over vectors
    unless `count` is one, and over lanes, in this order."""
    vector = min(lanes, s.extent(loop))
    return s.split(loop, [None, *([count] if count > 1 else []), vector])


def fused(s: Schedule, loops: Sequence[Handle]) -> Handle:
    """Fuse nested loops, outermost first, and return the fused loop; a single loop stays as it is. Requires a loop."""
    return s.fuse(*loops) if len(loops) > 1 else loops[0]


def at_most(size: Size, limit: int) -> Size:
    """Return the smaller of a constant size and `limit`; the size itself if it is a parameter."""
    return min(size, limit) if isinstance(size, int) else size
