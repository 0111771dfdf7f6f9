"""Whether what is read in an iteration has been written in it, exactly, through isl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.affine import linear as lin
from compiler.analysis.sets import Undecided, context, limited
from compiler.analysis.statements import Statement, statements
from compiler.program.tree import Program


def covered(program: Program, buffer: str, outer: set[int], reader: str | None = None) -> bool:
    """Whether, for fixed outer loops, each element of the buffer that is read (by one block, or all) is among those
    written."""
    every = statements(program).values()
    readers = [s for s in every if any(u.buffer == buffer and u.how == "read" for u in s.uses)]
    readers = [s for s in readers if reader is None or s.block.label == reader]
    writers = [s for s in every if any(u.buffer == buffer and u.how != "read" for u in s.uses)]
    if not readers:
        return True
    fixed = sorted(outer)
    try:
        return bool(limited(lambda: _subset(program, buffer, readers, writers, fixed)))
    except Undecided:
        return False


def _subset(
    program: Program, buffer: str, readers: Sequence[Statement], writers: Sequence[Statement], fixed: Sequence[int]
) -> bool:
    read = _touched(program, buffer, readers, fixed, True)
    return bool(read.is_subset(_touched(program, buffer, writers, fixed, False)))


def _touched(program: Program, buffer: str, found: Sequence[Statement], fixed: Sequence[int], read: bool) -> Any:
    import islpy as isl

    parts = []
    shape = program.buffers[buffer].shape
    names = {n: f"l{n}" for n in program.loops}
    heads = [names[n] for n in fixed] + [f"e{d}" for d in range(len(shape))]
    for statement in found:
        inner = [names[n] for n in statement.loops if n not in fixed]
        loops = dict.fromkeys((*statement.loops, *fixed))
        domain = [f"0 <= {names[n]} < {program.loops[n].extent}" for n in loops]
        domain += [c.isl(names) for c in statement.guard]
        for use in statement.uses:
            if use.buffer == buffer and (use.how == "read") == read:
                index = [
                    f"e{d} = {lin.to_isl(f, names)}" if f is not None else f"0 <= e{d} < {shape[d]}"
                    for d, f in enumerate(use.index)
                ]
                body = " and ".join([*domain, *(c.isl(names) for c in use.where), *index]) or "true"
                exists = f"exists {', '.join(inner)} : " if inner else ""
                parts.append(f"[{', '.join(heads)}] : {exists}({body})")
    return isl.Set(f"{{ {'; '.join(parts)} }}" if parts else f"{{ [{', '.join(heads)}] : false }}", context())


def runs_for_all(before: Program, after: Program, label: str) -> bool:
    """Whether a block that has moved still runs for all values of its axes that it ran for."""
    shared = {loop.number for loop in before.enclosing(label)} & {loop.number for loop in after.enclosing(label)}
    common = sorted(shared)
    try:
        return bool(limited(lambda: _axes(before, label, common).is_subset(_axes(after, label, common))))
    except Undecided:
        return False


def runs_once(program: Program, label: str) -> bool:
    """Whether no two instances of a block have the same values of its axes."""
    try:
        return bool(limited(lambda: _to_axes(program, label).is_injective()))
    except Undecided:
        return False


def _to_axes(program: Program, label: str) -> Any:
    """From the instances of a block to the values of its axes."""
    import islpy as isl

    block, loops = program.blocks[label], program.enclosing(label)
    names = {loop.number: f"l{loop.number}" for loop in loops}
    domain = [f"0 <= {names[loop.number]} < {loop.extent}" for loop in loops] + [c.isl(names) for c in block.guard]
    index = ", ".join(lin.to_isl(form, names) for form in block.bindings)
    return isl.Map(f"{{ [{', '.join(names.values())}] -> [{index}] : {' and '.join(domain) or 'true'} }}", context())


def _axes(program: Program, label: str, common: Sequence[int]) -> Any:
    """The values of a block's axes in each iteration of some loops, one tuple an instance."""
    import islpy as isl

    block = program.blocks[label]
    names = {loop.number: f"l{loop.number}" for loop in program.enclosing(label)}
    domain = [f"0 <= {names[loop.number]} < {loop.extent}" for loop in program.enclosing(label)]
    domain += [c.isl(names) for c in block.guard]
    domain += [f"a{n} = {lin.to_isl(form, names)}" for n, form in enumerate(block.bindings)]
    heads = ", ".join([*(names[n] for n in common), *(f"a{n}" for n in range(len(block.bindings)))])
    inner = [name for n, name in names.items() if n not in common]
    exists = f"exists {', '.join(inner)} : " if inner else ""
    return isl.Set(f"{{ [{heads}] : {exists}({' and '.join(domain) or 'true'}) }}", context())
