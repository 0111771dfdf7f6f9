"""Enlarge temporaries so that lanes beyond a guard read and write inside them.

A reduction with a partial last tile computes on all lanes, and drops the results of lanes beyond the guard (see
`lanes`). Reads out of bounds have clamped indices, which cost more than the arithmetic of an inner loop. A temporary,
such as a padded image, with a few more elements needs no clamping.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from compiler.affine import linear as lin
from compiler.program.tree import Access, Alloc, Block, Program

MAX_GROWTH = 1.5
"""The largest factor by which the elements of a temporary grow."""


def enlarge_temporaries(program: Program) -> Program:
    """Return the program with each temporary enlarged to the elements that all lanes of guarded, vectorized reductions
    read, unless it would grow by more than the factor MAX_GROWTH. Reads that vary with the lane are not counted, and
    reads below index 0 enlarge nothing."""
    needed_shapes: dict[str, list[int]] = {}
    for block in program.blocks.values():
        lanes = [loop.number for loop in program.enclosing(block.label) if loop.kind == "vectorized"]
        if not block.combiners or not block.guard or not lanes:
            continue
        for access in block.reads:
            if access.buffer in program.allocs:
                _add_read(needed_shapes, program, block, access, lanes[0])
    for name, shape in needed_shapes.items():
        buffer = program.buffers[name]
        if prod(buffer.shape) < prod(shape) <= MAX_GROWTH * prod(buffer.shape):
            enlarged = Alloc(replace(buffer, shape=tuple(shape)))
            program = program.replaced((name,), lambda _, enlarged=enlarged: [enlarged])  # type: ignore[misc]
    return program


def _add_read(needed_shapes: dict[str, list[int]], program: Program, block: Block, access: Access, lane: int) -> None:
    """Extend the needed shape of a buffer by the elements that a read accesses if its guard is ignored; not for a read
    that varies with the vectorized loop `lane`."""
    forms = [block.at(form, program.ranges) for form in access.index]
    if any(lane in form.variables() for form in forms):
        return
    shape = needed_shapes.setdefault(access.buffer, list(program.buffers[access.buffer].shape))
    for dim, form in enumerate(forms):
        shape[dim] = max(shape[dim], lin.bounds(form, program.ranges)[1] + 1)
