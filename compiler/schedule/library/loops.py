"""Composites for any block: tiles, vectors, threads; and queries of a nest for other composites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.analysis.order import contiguous_order
from compiler.program.tree import Block, Loop, blocks_in
from compiler.schedule.schedule import Handle, Schedule, Size
from compiler.support.errors import ScheduleError


@dataclass(frozen=True)
class Tiles:
    """The loops of a tiled nest: those over the tiles, and those inside a tile, each in the order of the nest."""

    outer: list[Handle]
    inner: list[Handle]


def block_tile(s: Schedule, block: Handle, sizes: Sequence[int]) -> Tiles:
    """Split each loop of a block by its size, and run the tiles outside.

        i = 30 { j = 20 { C(i, j) } }            // sizes 8, 4
      ->
        i.0 = 4 { j.0 = 5 { i.1 = 8 { j.1 = 4 { if 8*i.0 + i.1 < 30: C } } } }

    `sizes` is one tile size a loop around the block, outermost first; without one, an innermost loop stays whole
    inside the tiles. Requires perfectly nested serial loops whose order is free (reductions are). Source: Halide tile,
    Exo stdlib tile_loops, Lam, Rothberg and Wolf 1991.
    """
    loops = nest(s, block, "block_tile", fewest=len(sizes))
    pairs = [s.split(loop, [None, min(size, s.extent(loop))]) for loop, size in zip(loops, sizes, strict=False)]
    tiles = Tiles([outer for outer, _ in pairs], [inner for _, inner in pairs] + loops[len(pairs) :])
    s.reorder(*tiles.outer, *tiles.inner)
    return tiles


def vectorize_inner(s: Schedule, block: Handle, width: int) -> Handle:
    """Split the innermost loop around a block by a vector's width and vectorize the inner part.

        i = 20 { D(i) }                          // width 8
      ->
        i.0 = 3 { i.1 = 8 vectorized { if 8*i.0 + i.1 < 20: D } }

    A loop that is no longer than the width is vectorized whole. Gives the vectorized loop. Requires that the
    innermost loop is no reduction. Source: Halide vectorize(x, width), Exo stdlib vectorize.
    """
    inner = cut(s, nest(s, block, "vectorize_inner")[-1], width)[-1]
    s.vectorize(inner)
    return inner


def parallelize_outer(s: Schedule, block: Handle, count: int = 1) -> Handle:
    """Fuse the outermost loops around a block and run them on several threads.

        i = 4 { j = 6 { k = 8 { C } } }          // count 2
      ->
        i_j = 24 parallel { k = 8 { C } }

    Gives the parallel loop. Requires that the loops are perfectly nested and carry no dependence. Source: TVM's
    parallelize-vectorize-unroll rule (Ansor, OSDI 2020).
    """
    outer = fused(s, nest(s, block, "parallelize_outer", fewest=count)[:count])
    s.parallel(outer)
    return outer


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


def in_vectors(s: Schedule, loops: Sequence[Handle]) -> None:
    """Unroll a nest around its innermost loop, and vectorize that one."""
    for loop in loops[:-1]:
        s.unroll(loop)
    s.vectorize(loops[-1])


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
