"""Temporaries that are made longer, so that lanes beyond a guard read and write inside them.

A reduction whose last tile is not whole computes on what its reads find there, and drops the results (see `accesses`).
Reads that leave their buffer have their index clamped, which costs more than the arithmetic in an inner loop. Where
the buffer is a temporary, such as an image with a border, a few elements more make that needless.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from compiler.affine import linear as lin
from compiler.program.tree import Access, Alloc, Block, Program

MOST = 1.5
"""By how much a temporary may grow."""


def widened(program: Program) -> Program:
    """The program with temporaries that hold the elements that all lanes of guarded, vectorized reductions access, if
    that is little more than before."""
    needed: dict[str, list[int]] = {}
    for block in program.blocks.values():
        lanes = [loop.number for loop in program.enclosing(block.label) if loop.kind == "vectorized"]
        if not block.combiners or not block.guard or not lanes:
            continue
        for access in block.reads:
            if access.buffer in program.allocs:
                _add(needed, program, block, access, lanes[0])
    for name, shape in needed.items():
        buffer = program.buffers[name]
        if prod(buffer.shape) < prod(shape) <= MOST * prod(buffer.shape):
            longer = Alloc(replace(buffer, shape=tuple(shape)))
            program = program.replaced((name,), lambda _, longer=longer: [longer])  # type: ignore[misc]
    return program


def _add(needed: dict[str, list[int]], program: Program, block: Block, access: Access, lane: int) -> None:
    """Count what a read reaches whatever the guard says."""
    forms = [block.at(form, program.ranges) for form in access.index]
    if any(lane in form.variables() for form in forms):
        return
    shape = needed.setdefault(access.buffer, list(program.buffers[access.buffer].shape))
    for dim, form in enumerate(forms):
        shape[dim] = max(shape[dim], lin.bounds(form, program.ranges)[1] + 1)
