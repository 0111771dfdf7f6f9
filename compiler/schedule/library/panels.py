"""What composites of several products share: panels of an operand, the loops of a block inside another."""

from __future__ import annotations

from compiler.errors import ScheduleError
from compiler.schedule.library.matmul import copy_in_vectors
from compiler.schedule.schedule import Handle, Schedule, Size


def pack_panels(s: Schedule, block: Handle, buffer: str, axis: int, size: Size, at: Handle, lanes: int) -> Handle:
    """Pack an operand in panels of `size` indices of one axis of a block, just inside a loop, by vectors.

        for b { C reads K[b, n, d] }             // axis n, size 64, at b
      ->
        for b { alloc K.pack[1, n.0, d, 64];  K.pack[0, n.0, d, n.1] = K[b, 64*n.0 + n.1, d];  C reads K.pack }

    What lies beyond the operand is zero. Gives the block that copies. Requires that the axis indexes one dimension of
    the operand. Source: the packing of BLIS, Van Zee and van de Geijn 2015.
    """
    node = s.program.blocks[s.label(block)]
    access = next((a for a in node.reads if a.buffer == buffer), None)
    dims = [d for d, form in enumerate(access.index) if axis in form.variables()] if access else []
    if access is None or len(dims) != 1:
        name = node.axes[axis].label
        raise ScheduleError(
            f"axis '{name}' does not index '{buffer}' in one dimension", "pack_panels", f"block '{node.label}'"
        )
    tiles = [size if d in dims else 1 for d in range(len(access.index))]
    copy = s.pack(block, buffer, tiles)
    s.compute_at(copy, at)
    copy_in_vectors(s, copy, lanes)
    return copy


def inside(s: Schedule, block: Handle, at: Handle) -> list[Handle]:
    """The loops around a block that are inside another loop around it, outermost first."""
    loops = s.get_loops(block)
    return loops[[s.label(loop) for loop in loops].index(s.label(at)) + 1 :]


def along(s: Schedule, block: Handle, at: Handle, axis: int) -> list[Handle]:
    """The loops around a block, inside another loop, that bind one of its axes, outermost first."""
    node = s.program.blocks[s.label(block)]
    numbers = node.bindings[axis].variables()
    names = {loop.label for loop in s.program.enclosing(node.label) if loop.number in numbers}
    return [loop for loop in inside(s, block, at) if s.label(loop) in names]


def by_vectors(s: Schedule, loop: Handle, lanes: int, count: int = 1) -> list[Handle]:
    """Split a loop in panels of `count` vectors of at most that many lanes: the loops over panels, vectors, lanes.

    The loop over the vectors of a panel is left out where there is one.
    """
    vector = min(lanes, s.extent(loop))
    return s.split(loop, [None, *([count] if count > 1 else []), vector])
