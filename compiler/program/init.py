"""The init of a reduction: where it stands, under which guard, and as a block and a nest of its own."""

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
    """How many of the loops around a block are outside its init."""
    reduced = block.loops_of(True)
    return next((d for d, loop in enumerate(loops) if loop.number in reduced), len(loops))


def init_guard(block: Block) -> tuple[Condition, ...]:
    """The conditions of a block's guard that hold its init back: those without loops of the reduction alone."""
    reduce_only = block.loops_of(True) - block.loops_of(False)
    return tuple(c for c in block.guard if not c.form.variables() & reduce_only)


def init_block(program: Program, block: Block, label: str) -> Block:
    """The statement that sets the block's targets to the identity."""
    spatial = block.spatial
    gone = {n: lin.constant(0) for n in range(spatial, len(block.axes))}
    writes = tuple(
        replace(a, index=tuple(lin.substitute(f, gone, block.axis_ranges) for f in a.index)) for a in block.writes
    )
    elements = [program.buffers[access.buffer].element for access in block.writes]
    values = tuple(body.constant(neutral(c, t)) for c, t in zip(block.combiners, elements, strict=True))
    bindings = block.bindings[:spatial]
    axes, guard = block.axes[:spatial], init_guard(block)
    return Block(label, axes, bindings, guard, (), (), writes, values, location=block.location)


@dataclass(frozen=True)
class InitNest:
    """An init under loops of its own, and the map from the variables of the original loops to those of the copies."""

    node: Node
    values: Mapping[int, Linear]


def init_nest(program: Program, init: Block, loops: Sequence[Loop], number: int, lanes: bool = False) -> InitNest:
    """The init under copies of those loops that it needs, which are numbered from `number` on.

    The copies of a tensorized nest are serial, as its intrinsic is of the sum; with `lanes` the innermost is
    vectorized.
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
