"""A program as text, a statement a line, to show people what will be tuned."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from compiler.program.tree import Block, Program
from compiler.schedule.show import sign


def program_listing(program: Program) -> str:
    """List the buffers of a program with their shapes, then its blocks, in order, a line each.

    A: input 1024x2048 f32
    T: temporary 1024x1024 f32
    T[m, l] += f(A[..], B[..]) for m = 1024, l = 1024, reduce k = 2048
    """
    return "\n".join((*_buffers(program), *(_statement(block) for block in program.blocks.values())))


def indented(text: str) -> str:
    """Indent the lines of a text by two spaces."""
    return textwrap.indent(text, "  ")


def _buffers(program: Program) -> Iterator[str]:
    written = {access.buffer for block in program.blocks.values() for access in block.writes}
    for name, buffer in program.buffers.items():
        kind = "temporary" if name in program.allocs else "output" if name in written else "input"
        kind = "constant" if name in program.stated else kind
        shape = "x".join(map(str, buffer.shape)) or "scalar"
        yield f"{name}: {kind} {shape} {buffer.element}"


def _statement(block: Block) -> str:
    spatial = ", ".join(axis.label for axis in block.axes if not axis.is_reduce)
    targets = ", ".join(f"{access.buffer}[{spatial}]" for access in block.writes)
    axes = ", ".join(f"{'reduce ' if axis.is_reduce else ''}{axis.label} = {axis.size}" for axis in block.axes)
    return f"{targets} {sign(block)} f({', '.join(block.sources)})" + (f" for {axes}" if axes else "")
