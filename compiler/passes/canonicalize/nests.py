"""The loop level: loops of one iteration, conditions by the ranges of loops, buffers that nothing reads."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from compiler.affine import linear as lin
from compiler.dialects.loop import BOUND
from compiler.program.init import init_depth
from compiler.program.tree import Block, Loop, Node, Program, rebind


def simplified(program: Program) -> Program:
    """Remove loops of one iteration, conditions that always hold, blocks without an init whose guard never holds, and
    buffers that nothing reads, until nothing changes; return the same object if nothing does.

        loop.alloc "T"                                       // nothing reads it
        loop.for "u" %u = 1 {
          loop.for "i" %i = 4 { loop.block "T" ...;  loop.block "A" [i = 4 at %u * 4 + %i] where (%i + 1 >= 0) ... }
        }
      ->
        loop.for "i" %i = 4 { loop.block "A" [i = 4 at %i] ... }

    Loops that are bound to a GPU's threads or belong to an intrinsic stay, and loops with attributes. So does a loop of
    one iteration that is the place of a reduction's init, unless the init stays where it is without it.
    """
    while True:
        new = _without_dead_buffers(_with_guards(_without_unit_loops(program)))
        if new is program:
            return program
        program = new


def _without_unit_loops(program: Program) -> Program:
    for number in list(program.loops):
        if number in program.loops and _is_removable(program, program.loops[number]):
            inner = rebind(program.loops[number].body, {number: lin.constant(0)}, program.ranges)
            program = program.replaced(number, partial(_instead, inner))
    return program


def _instead(nodes: tuple[Node, ...], replaced: Node) -> tuple[Node, ...]:
    return nodes


def _is_removable(program: Program, loop: Loop) -> bool:
    if loop.extent != 1 or loop.kind in BOUND or loop.kind == "tensorized" or loop.attributes:
        return False
    return all(_keeps_init(program, loop, block) for block in loop.nest.blocks.values() if block.has_init)


def _keeps_init(program: Program, loop: Loop, block: Block) -> bool:
    """Whether the init of a reduction, before the first loop that binds a reduce axis, stays where it is without a
    loop: where this is another loop, or the loop contains nothing but the block or such a loop."""
    around = program.enclosing(block.label)
    depth = init_depth(block, around)
    if depth == len(around) or around[depth].number != loop.number:
        return True
    if len(loop.body) != 1:
        return False
    (inner,) = loop.body
    return inner is block or (isinstance(inner, Loop) and inner.number in block.loops_of(True))


def _with_guards(program: Program) -> Program:
    """Drop conditions that always hold, and blocks without init whose guard never does."""
    ranges = program.ranges
    never = [
        block.label
        for block in program.blocks.values()
        if not block.has_init and any(condition.never(ranges) for condition in block.guard)
    ]
    program = _without_blocks(program, never)

    def change(block: Block) -> Block:
        guard = tuple(dict.fromkeys(c for c in block.guard if not c.always(ranges)))
        return block if guard == block.guard else replace(block, guard=guard)

    body = program.map_blocks(change).body
    return program if all(a is b for a, b in zip(body, program.body, strict=True)) else replace(program, body=body)


def _without_blocks(program: Program, labels: list[str]) -> Program:
    for label in labels:
        program = program.replaced(label, partial(_instead, ()))
    return program.pruned() if labels or not all(nest.is_full for nest in program.nests) else program


def _without_dead_buffers(program: Program) -> Program:
    """Drop buffers that no block reads but one that writes nothing else, these blocks, and unused constants."""
    dead = {name for name in program.allocs if not any(_is_needed(block, name) for block in program.readers[name])}
    unread = [b.label for b in program.blocks.values() if set(b.targets) <= dead]
    program = _without_blocks(program, unread)
    used = {name for b in program.blocks.values() for name in (*b.sources, *b.targets)}
    for name in list(program.allocs):
        if name not in used:
            program = program.replaced((name,), partial(_instead, ()))
    literals = tuple(literal for literal in program.literals if literal.buffer.name in used)
    return program if literals == program.literals else replace(program, literals=literals)


def _is_needed(reader: Block, name: str) -> bool:
    """Whether a block that reads a buffer writes other ones."""
    return set(reader.targets) != {name}
