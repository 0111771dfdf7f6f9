"""Check that sizes and index expressions of a program fit signed 64-bit integers: see `compiler.affine.limits`."""

from __future__ import annotations

from collections.abc import Iterator

from compiler.affine import linear as lin
from compiler.affine.limits import END, bad_extent, bad_form, bad_size
from compiler.program.changed import changed_nodes
from compiler.program.tree import Block, Program
from compiler.types.elements import element_bytes


def bad_sizes(program: Program, before: Program) -> str:
    """A sentence if a size or an index value of a program may not fit a signed 64-bit integer, else empty.

    Nodes that are also in `before`, which was checked, are skipped.
    """
    return next(filter(None, _faults(program, before)), "")


def _faults(program: Program, before: Program) -> Iterator[str]:
    nests = [program.nests[top] for top in changed_nodes(before, program).after]
    for number, loop in ((number, loop) for nest in nests for number, loop in nest.loops.items()):
        if before.loops.get(number) is not loop:
            yield bad_extent(f"loop '{loop.label}'", loop.extent)
    allocated = (alloc.buffer for nest in nests for alloc in nest.allocs.values())
    for buffer in (*program.arguments, *allocated):
        if before.buffers.get(buffer.name) is not buffer:
            yield bad_size(f"buffer '{buffer.name}'", buffer.shape, element_bytes(buffer.element))
    for label, block in ((label, block) for nest in nests for label, block in nest.blocks.items()):
        if before.blocks.get(label) is not block:
            for description, form, ranges in _forms(block, program):
                if lin.largest(form, ranges) >= END:
                    yield bad_form(f"{description} in block '{label}'", form, ranges)


def _forms(block: Block, program: Program) -> Iterator[tuple[str, lin.Linear, lin.Ranges]]:
    """Each form of a block with a description and the ranges of its variables: loops in bindings and guard, axes
    elsewhere."""
    for form in block.bindings:
        yield "the binding of an axis", form, program.ranges
    for condition in block.guard:
        yield "the guard", condition.form, program.ranges
    for access in (*block.reads, *block.writes):
        for form in access.index:
            yield "an index", form, block.axis_ranges
        for condition in access.where:
            yield "a condition", condition.form, block.axis_ranges
    for index in block.table.index if block.table is not None else ():
        if isinstance(index, lin.Linear):
            yield "an index of the table", index, block.axis_ranges
