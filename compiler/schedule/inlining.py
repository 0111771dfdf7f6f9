"""Blocks that take each other in: the inverse of a write, and reads that are left over."""

from __future__ import annotations

from dataclasses import replace

from compiler.program import body
from compiler.program.tree import Block
from compiler.schedule.plan import block_place, refuse


def inverse(block: Block, target: int = 0) -> dict[int, int]:
    """For each spatial axis, the dimension of a target that it indexes alone; others have one value."""
    dimensions: dict[int, int] = {}
    for dim, form in enumerate(block.writes[target].index):
        if form.is_constant:
            continue
        atom = form.as_variable
        if atom is None or atom in dimensions:
            refuse(block_place(block.label), "it does not write one element for each of its axes")
        dimensions[atom] = dim
    for number, axis in enumerate(block.axes):
        if number not in dimensions and axis.size > 1:
            refuse(block_place(block.label), f"its axis '{axis.label}' indexes no element")
    return dimensions


def without_unused(block: Block) -> Block:
    """The block without reads that its body does not use."""
    used = sorted({leaf.position for leaf in body.leaves(block.body) if isinstance(leaf, body.Read)})
    if len(used) == len(block.reads):
        return block
    reads = {old: body.read(new, block.read_types[old]) for new, old in enumerate(used)}
    return replace(
        block,
        reads=tuple(block.reads[n] for n in used),
        read_types=tuple(block.read_types[n] for n in used),
        body=tuple(body.rewrite(node, reads) for node in block.body),
    )
