"""Results in the memory of inputs: possible if each element is read before it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compiler.analysis.shared_element import SharedElement, orders
from compiler.analysis.statements import Statement, Use, statements
from compiler.program.tree import CONCURRENT, Block, Program, loops_in


def may_overwrite(program: Program, source: str, target: str) -> bool:
    """Whether the output `target` may be in the memory of the input `source`, in every order that the loops allow.

    Each read of an element of `source` must come before each write of the element of `target` at the same index, or
    be of the instance that writes it. Iterations of a concurrent loop are in no order. False also if shapes or dtypes
    differ, a block writes `source`, a nest is tensorized, or isl does not decide.
    """
    buffers = program.buffers
    if (buffers[source].shape, buffers[source].element) != (buffers[target].shape, buffers[target].element):
        return False
    if program.writers[source] or any(loop.intrinsic for loop in loops_in(*program.body)):
        return False
    all_statements = list(statements(program).values())
    reads = [(s, use) for s in all_statements for use in s.uses if use.buffer == source]
    writes = [(s, use) for s in all_statements for use in s.uses if use.buffer == target and use.how != "read"]
    return not any(_overtaken(program, *read, *write) for read in reads for write in writes)


def _overtaken(program: Program, s: Statement, read: Use, t: Statement, write: Use) -> bool:
    """Whether an element may be written before, or concurrently with, its read by another instance."""
    # C[y0] = A[7 - x0], C in the memory of A:  7 + -1*x0 = y0 and y0 < x0  ->  (x0, y0) = (4, 3): True.
    return any(space.solve(way) is not None for space, way in _ways(program, s, read, t, write))


def _ways(
    program: Program, s: Statement, read: Use, t: Statement, write: Use
) -> Iterator[tuple[SharedElement, list[str]]]:
    """Yield systems of constraints under which the write precedes the read, or is concurrent with it."""
    space = SharedElement(program, s, t, read, write)
    for earlier in orders(t, s, space.right, space.left):
        yield space, earlier
    for depth, number in enumerate(s.loops[: s.common(t)]):
        if program.loops[number].kind not in CONCURRENT:
            continue
        system = SharedElement(program, s, t, read, write, s.loops[:depth])
        x, y = system.left[number], system.right[number]
        if x != y:
            yield system, [f"{x} < {y}"]
            yield system, [f"{y} < {x}"]


def in_place(program: Program, source: str, target: str) -> Program:
    """Replace reads of the input `source` by reads of the output `target`, which has its memory. Only valid if
    `may_overwrite` holds, which is not checked."""

    def redirected(block: Block) -> Block:
        reads = tuple(replace(a, buffer=target) if a.buffer == source else a for a in block.reads)
        table = block.table
        if table is not None and table.buffer == source:
            table = replace(table, buffer=target)
        return replace(block, reads=reads, table=table)

    return program.map_blocks(redirected)


def overwriting(
    program: Program, names: Sequence[str], candidates: Sequence[tuple[int, int]]
) -> tuple[Program, tuple[tuple[int, int], ...]]:
    """Let a program write outputs into inputs, for those candidate pairs of positions for which its loops allow it.
    Return the new program and the accepted pairs, in order. names: of its inputs and outputs, whose positions these
    are. Candidates (0, 0), (1, 0): if input 0 can be overwritten, output 0 is taken, so only (0, 0) is accepted."""
    accepted, first = list[tuple[int, int]](), len(names) - program.outputs
    for source, target in candidates:
        is_free = all(source != i and target != j for i, j in accepted)
        if is_free and may_overwrite(program, names[source], names[first + target]):
            program = in_place(program, names[source], names[first + target])
            accepted.append((source, target))
    return program, tuple(accepted)
