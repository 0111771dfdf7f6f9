"""Faults planted in program trees: each takes a program and a random number generator and gives a program that is
meant to be wrong, or None where it does not apply."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from xdsl.dialects import arith

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.program import body
from compiler.program.combiner import Joint, neutral
from compiler.program.tree import Alloc, Block, Loop, Program, key_of, touched

Fault = Callable[[Program, random.Random], Program | None]


def _block(program: Program, rng: random.Random, fits: Callable[[Block], bool]) -> Block | None:
    collected = [b for b in program.blocks.values() if fits(b)]
    return rng.choice(collected) if collected else None


def _with(program: Program, block: Block, **changes: object) -> Program:
    return program.replaced(block.label, lambda _: [replace(block, **changes)])  # type: ignore[arg-type]


def doubled(program: Program, rng: random.Random) -> Program | None:
    """Each contribution of a reduction happens twice."""
    block = _block(program, rng, lambda b: bool(b.combiners) and b.combiners[0] in ("add", "mul"))
    if block is None:
        return None
    number = program.fresh_number()
    again = Loop(number, "again", 2, (replace(block, accumulate=True),))
    if not block.has_init:
        return program.replaced(block.label, lambda _: [again])
    reduced = block.loops_of(True)
    around = [n for n in program.enclosing(block.label) if n.number in reduced]
    if not around:
        return None
    inner = replace(again, body=(block,))  # inside the reduction: the init stays outside
    return program.replaced(block.label, lambda _: [inner])


def missing(program: Program, rng: random.Random) -> Program | None:
    """The last iteration of a reduce axis does not happen."""
    block = _block(program, rng, lambda b: any(a.is_reduce and a.size > 1 for a in b.axes))
    if block is None:
        return None
    number = next(n for n, a in enumerate(block.axes) if a.is_reduce and a.size > 1)
    limit = Condition(lin.constant(block.axes[number].size - 2) - block.bindings[number])
    return _with(program, block, guard=(*block.guard, limit))


def uninitialised(program: Program, rng: random.Random) -> Program | None:
    """The init of a reduction does not happen."""
    block = _block(program, rng, lambda b: b.has_init)
    return None if block is None else _with(program, block, accumulate=True)


def changed_body(program: Program, rng: random.Random) -> Program | None:
    """A block yields its value plus itself."""
    block = _block(program, rng, lambda b: isinstance(b.body[0], body.Apply | body.Read) and bool(b.read_types))
    if block is None:
        return None
    kind = arith.AddiOp if "i" in str(block.read_types[0])[:1] else arith.AddfOp
    flags = {"fastmath": arith.FastMathFlagsAttr("none")} if kind is arith.AddfOp else {}
    value = block.body[0]
    return _with(
        program, block, body=(body.apply(kind, (value, value), flags, (block.read_types[0],)), *block.body[1:])
    )


def off_by_one(program: Program, rng: random.Random) -> Program | None:
    """A read is one element off, wrapped so that it stays inside."""
    collected = [
        (b, n, d)
        for b in program.blocks.values()
        for n, a in enumerate(b.reads)
        for d in range(len(a.index))
        if program.buffers[a.buffer].shape[d] > 1 and not a.where
    ]
    if not collected:
        return None
    block, number, dim = rng.choice(collected)
    access = block.reads[number]
    size = program.buffers[access.buffer].shape[dim]
    moved = lin.mod(access.index[dim] + lin.constant(1), size, block.axis_ranges)
    index = (*access.index[:dim], moved, *access.index[dim + 1 :])
    reads = (*block.reads[:number], replace(access, index=index), *block.reads[number + 1 :])
    return _with(program, block, reads=reads)


def swapped(program: Program, rng: random.Random) -> Program | None:
    """Two neighbours change places although the second reads what the first writes."""
    bodies = [(None, program.body), *((n.number, n.body) for n in program.loops.values())]
    collected = []
    for owner, nodes in bodies:
        for i, (before, after) in enumerate(pairwise(nodes)):
            if isinstance(before, Alloc) or isinstance(after, Alloc):
                continue
            if touched([before])[1] & touched([after])[0]:
                collected.append((owner, i))
    if not collected:
        return None
    owner, i = rng.choice(collected)
    nodes = program.body if owner is None else program.loops[owner].body
    new = (*nodes[:i], nodes[i + 1], nodes[i], *nodes[i + 2 :])
    if owner is None:
        return replace(program, body=new)
    return program.replaced(owner, lambda n: [replace(n, body=new)])  # type: ignore[arg-type]


def shrunk(program: Program, rng: random.Random) -> Program | None:
    """A temporary is one element short in a dimension."""
    collected = [(a, d) for a in program.allocs.values() for d, n in enumerate(a.buffer.shape) if n > 1]
    if not collected:
        return None
    alloc, dim = rng.choice(collected)
    shape = tuple(n - (d == dim) for d, n in enumerate(alloc.buffer.shape))
    return program.replaced(key_of(alloc), lambda _: [Alloc(replace(alloc.buffer, shape=shape))])


def parallel_reduction(program: Program, rng: random.Random) -> Program | None:
    """The iterations of a reduction run concurrently."""
    collected = {
        n.number
        for b in program.blocks.values()
        if b.combiners
        for n in program.enclosing(b.label)
        if n.number in b.loops_of(True) - b.loops_of(False)
        and n.kind == "serial"
        and n.extent > 1
        and all(n.number not in w.variables() for a in b.writes for f in a.index for w in [b.at(f, program.ranges)])
    }
    if not collected:
        return None
    number = rng.choice(sorted(collected))
    return program.replaced(number, lambda n: [replace(n, kind="parallel")])  # type: ignore[arg-type]


def reset_part(program: Program, rng: random.Random) -> Program | None:
    """One target of a reduction of several is set to its identity again, inside the reduction."""
    collected = [
        (b, n)
        for b in program.blocks.values()
        if len(b.writes) > 1 and b.combiners
        for n in program.enclosing(b.label)
        if n.number in b.loops_of(True) and n.extent > 1
    ]
    if not collected:
        return None
    block, _ = rng.choice(collected)
    part = rng.randrange(len(block.writes))
    element = program.buffers[block.writes[part].buffer].element
    value = body.constant(neutral(block.combiners[part], element))
    reset = Block(
        f"{block.label}.reset", block.axes, block.bindings, block.guard, (), (), (block.writes[part],), (value,)
    )
    last = {a: n.size - 1 for a, n in enumerate(block.axes) if n.is_reduce}
    at_last = tuple(Condition(block.bindings[a] - lin.constant(value), True) for a, value in last.items())
    reset = replace(reset, guard=(*block.guard, *at_last))
    return program.replaced(block.label, lambda node: [reset, node])


def other_combiner(program: Program, rng: random.Random) -> Program | None:
    """A joint combiner keeps what it holds."""
    block = _block(program, rng, lambda b: bool(b.combiners) and isinstance(b.combiners[0], Joint))
    if block is None:
        return None
    joint = block.combiners[0]
    assert isinstance(joint, Joint)
    kept = tuple(body.read(n, value.type) for n, value in enumerate(joint.identities))
    return _with(program, block, combiners=tuple(replace(joint, body=kept, part=n) for n in range(len(kept))))


FAULTS: dict[str, Fault] = {
    f.__name__: f
    for f in (
        doubled,
        missing,
        uninitialised,
        changed_body,
        off_by_one,
        swapped,
        shrunk,
        parallel_reduction,
        reset_part,
        other_combiner,
    )
}
