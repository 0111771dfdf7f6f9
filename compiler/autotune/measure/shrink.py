"""`shrunk`: an unscheduled program with shorter reductions, whose results are partial sums of the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from compiler.dialects.access import AxisAttr
from compiler.program.tree import Block, Loop, Node, Program

FEWEST = 2
"""The full iterations of the outermost loop over a shortened reduce axis."""


def shorter_extents(program: Program, original: Program) -> dict[str, dict[int, int]]:
    """Shorter extents for the reduce axes of a scheduled program, by block label and axis position; axes that would not
    be shorter are left out, and so are blocks with other axes than in `original`, but for padding. The length of the
    partial last tile stays the same.

    k = 100 split into 7 tiles of 16: the extent FEWEST * 16 + 100 % 16 = 36 is 3 tiles, the last of 4 iterations.
    """
    lengths: dict[str, dict[int, int]] = {}
    for label, block in program.blocks.items():
        if label not in original.blocks or _fixed(original.blocks[label]) != _fixed(block):
            continue
        for position, (axis, form) in enumerate(zip(block.axes, block.bindings, strict=True)):
            if not axis.is_reduce:
                continue
            extents = [loop.extent for loop in program.enclosing(label) if loop.number in form.variables()]
            inner = prod(extents[1:])
            short = FEWEST * inner + axis.size % inner
            if short < axis.size:
                lengths.setdefault(label, {})[position] = short
    return lengths


def _fixed(block: Block) -> list[tuple[str, int]]:
    """The labels of a block's axes, and the extents of its reduce axes, which padding does not change; 0 for others."""
    return [(axis.label, axis.size if axis.is_reduce else 0) for axis in block.axes]


def shrunk(program: Program, sizes: Mapping[str, Mapping[int, int]]) -> Program:
    """The program with the extents of reduce axes set to `sizes`, by block label and axis position. Axes are shortened
    only if they are bound to one loop, as in an unscheduled program; others stay unchanged."""
    lengths: dict[int, int] = {}
    changed: dict[str, Block] = {}
    for label, axis_lengths in sizes.items():
        block = program.blocks.get(label)
        if block is None:
            continue
        axes = list(block.axes)
        for position, size in axis_lengths.items():
            loops = block.bindings[position].variables() if position < len(axes) else set()
            if len(loops) != 1 or not axes[position].is_reduce:
                continue
            lengths[next(iter(loops))] = size
            axes[position] = AxisAttr(axes[position].label, size, True)
        changed[label] = replace(block, axes=tuple(axes))
    return replace(program, body=tuple(_node(node, lengths, changed) for node in program.body))


def _node(node: Node, lengths: Mapping[int, int], changed: Mapping[str, Block]) -> Node:
    if isinstance(node, Loop):
        body: Sequence[Node] = [_node(inner, lengths, changed) for inner in node.body]
        return replace(node, extent=lengths.get(node.number, node.extent), body=tuple(body))
    return changed.get(node.label, node) if isinstance(node, Block) else node
