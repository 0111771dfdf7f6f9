"""The primitive join_axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.dialects.access import AxisAttr, axis_attribute
from compiler.program.names import fresh
from compiler.program.tree import Access, Block, Program, renumbered
from compiler.schedule.parameters import BLOCK
from compiler.schedule.plan import Plan, block_place, no_gather, refuse
from compiler.schedule.primitive import primitive


@primitive("$block", "sched.join_axes %c", "join-axes{block=C}", block=BLOCK)
def join_axes(program: Program, block: str) -> Plan:
    """Replace adjacent axes of a block, which one fused loop runs over in row-major order, by one axis.

        loop.for "i_j" = 24 { S(i_j floordiv 6, i_j mod 6) }     // a block of axes i = 4 and j = 6
      ->
        loop.for "i_j" = 24 { S(i_j) }                           // a block of the axis i_j = 24

    Blocks whose axes vary independently of each other can be moved to the loops of others; a fused loop ties the axes
    that it runs over. A block writes into, and reads from, the same elements as before. Requires a loop that binds
    several axes of one kind, and is as long as they are together; the block is no gather. Elsewhere: MLIR
    linalg collapse dimensions, TVM's fuse followed by blockize.
    """
    node = program.blocks[block]
    no_gather(block_place(block), node)
    runs = _runs(program, node)
    if not runs:
        refuse(block_place(block), "no loop runs over several of its axes together")
    new = _joined(node, runs)
    after = program.replaced(block, lambda _: [new])
    return Plan(after, keeps_order=True)


@dataclass(frozen=True)
class _Run:
    """Adjacent axes `first` to `end - 1`, and the variable of the loop that binds them."""

    first: int
    end: int
    bound: Linear


def _runs(program: Program, block: Block) -> list[_Run]:
    """The runs of axes to join, in order, each as long as possible."""
    runs: list[_Run] = []
    for first in range(len(block.axes)):
        if runs and first < runs[-1].end:
            continue
        for end in range(len(block.axes), first + 1, -1):
            bound = _bound_together(program, block, first, end)
            if bound is not None:
                runs.append(_Run(first, end, bound))
                break
    return runs


def _bound_together(program: Program, block: Block, first: int, end: int) -> Linear | None:
    """The variable of the loop that runs over the axes `first` to `end - 1`, of one kind, in row-major order; None if
    there is none, or the first or last axis has extent 1."""
    axes = block.axes[first:end]
    if len({axis.is_reduce for axis in axes}) > 1 or any(axis.size == 1 for axis in (axes[0], axes[-1])):
        return None
    form = lin.joined(lin.offset(block.bindings[first:end], [axis.size for axis in axes]))
    variables = form.variables()
    if len(variables) != 1 or form != lin.variable(number := variables.pop()):
        return None
    return form if program.loops[number].extent == prod(axis.size for axis in axes) else None


def _joined(block: Block, runs: Sequence[_Run]) -> Block:
    """Replace each run of axes by one axis, and rewrite the forms of the block."""
    axes, bindings, values = list[AxisAttr](), list[Linear](), dict[int, Linear]()
    starts, used_labels = {run.first: run for run in runs}, {axis.label for axis in block.axes}
    position = 0
    while position < len(block.axes):
        run = starts.get(position, _Run(position, position + 1, block.bindings[position]))
        old, number = block.axes[run.first : run.end], len(axes)
        label = fresh("_".join(axis.label for axis in old), used_labels) if len(old) > 1 else old[0].label
        axes.append(axis_attribute(label, prod(axis.size for axis in old), old[0].is_reduce))
        bindings.append(run.bound)
        ranges = {number: (0, axes[-1].size - 1)}
        inner = 1
        for offset, axis in reversed(list(enumerate(old))):
            joined = lin.mod(lin.variable(number), inner * axis.size, ranges)
            values[position + offset] = lin.floordiv(joined, inner, ranges)
            inner *= axis.size
        position = run.end
    return _over(replace(block, axes=tuple(axes), bindings=tuple(bindings)), values)


def _over(block: Block, values: dict[int, Linear]) -> Block:
    """Substitute `values`, forms over a block's new axes, for its former axes in all its accesses and its body."""
    ranges = block.axis_ranges
    block = renumbered(block, values, ranges)

    def access(old: Access) -> Access:
        where = tuple(condition for condition in old.where if not condition.always(ranges))
        return replace(old, index=tuple(map(lin.joined, old.index)), where=where)

    return replace(
        block,
        reads=tuple(map(access, block.reads)),
        writes=tuple(map(access, block.writes)),
        origin=block.origin and (block.origin[0], tuple(map(lin.joined, block.origin[1]))),
    )
