"""Shared by inline and reverse_inline: the inverse of a write index, and removal of unused reads."""

from __future__ import annotations

from dataclasses import replace

from compiler.program import body
from compiler.program.tree import Block
from compiler.schedule.plan import block_place, refuse


def inverse(block: Block, target: int = 0) -> dict[int, int]:
    """Map each axis to the dimension of the target at position `target` that it indexes alone. Refuses an index that is
    neither a constant nor an axis, once, and an axis longer than 1 without a dimension."""
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
    """Remove the reads that the body of a block does not use; the same object if it uses all."""
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
