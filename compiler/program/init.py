"""The init of a reduction: its depth, its guard, and a separate block and loop nest for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.program import body
from compiler.program.combiner import neutral
from compiler.program.tree import Block, Loop, Node, Program, nested, rebound


def init_depth(block: Block, loops: Sequence[Loop]) -> int:
    """Number of the loops around a block that enclose its init: those before the first that binds a reduce axis, all if
    none does. `loops` are outermost first."""
    reduced = block.loops_of(True)
    return next((d for d, loop in enumerate(loops) if loop.number in reduced), len(loops))


def init_guard(block: Block) -> tuple[Condition, ...]:
    """The conditions of a block's guard that also guard its init: those without loops that bind reduce axes only."""
    reduce_only = block.loops_of(True) - block.loops_of(False)
    return tuple(c for c in block.guard if not c.form.variables() & reduce_only)


def init_block(program: Program, block: Block, label: str) -> Block:
    """Build the init of a reduction as block `label`: it sets the targets to the identity over the spatial axes, under
    `init_guard`."""
    spatial = block.spatial
    zeros = {n: lin.constant(0) for n in range(spatial, len(block.axes))}
    writes = tuple(
        replace(a, index=tuple(lin.substitute(f, zeros, block.axis_ranges) for f in a.index)) for a in block.writes
    )
    elements = [program.buffers[access.buffer].element for access in block.writes]
    values = tuple(body.constant(neutral(c, t)) for c, t in zip(block.combiners, elements, strict=True))
    bindings = block.bindings[:spatial]
    axes, guard = block.axes[:spatial], init_guard(block)
    return Block(label, axes, bindings, guard, (), (), writes, values, location=block.location)


@dataclass(frozen=True)
class InitNest:
    """A block in copies of loops; `values` maps each original loop to the variable of its copy."""

    node: Node
    values: Mapping[int, Linear]


def init_nest(program: Program, init: Block, loops: Sequence[Loop], number: int, lanes: bool = False) -> InitNest:
    """Nest an init, or another part of a reduction, in copies of the loops that it uses, numbered from `number` on.

    Copies of tensorized loops are serial: the intrinsic computes the sum, not the init. With `lanes` the innermost
    copy, if of a tensorized loop, is vectorized.
    """
    inner = [loop for loop in loops if loop.number in init.loops]
    values = {loop.number: lin.variable(number + offset) for offset, loop in enumerate(inner)}
    ranges = dict(program.ranges)
    copies = []
    for offset, loop in enumerate(inner):
        ranges[number + offset] = (0, loop.extent - 1)
        kind = loop.kind
        if kind == "tensorized":
            kind = "vectorized" if lanes and loop is inner[-1] else "serial"
        copies.append(Loop(number + offset, loop.label, loop.extent, (), kind))
    return InitNest(nested(copies, rebound(init, values, ranges)), values)
