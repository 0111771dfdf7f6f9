"""Mutants of scheduled programs: none that computes something else is proved.

Each case is a random program under a random script, one to three places of which are changed in the tree; what
`verify-schedule` proves is then interpreted on random inputs, with outputs and temporaries poisoned.

`python -m tests.fuzz.proofs --seed 0 --cases 1000` runs many and reports each failure.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, ModuleOp, Signedness
from xdsl.utils.exceptions import VerifyException

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear, Quotient
from compiler.analysis.verify.prove import verify_schedule
from compiler.dialects.dominance import verify_module
from compiler.fuzz.programs import arrays_for
from compiler.interpret import te as evaluator
from compiler.program import body
from compiler.program.tree import Access, Alloc, Block, Loop, Program, key_of, walk
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.te import Function
from tests.faults import FAULTS
from tests.fuzz.alarm import asked, failures_of
from tests.fuzz.scripts import close, interpreted
from tests.fuzz.scripts import walk as random_walk

SECONDS = 30
STEPS = 8
Mutation = Callable[[Program, random.Random], Program | None]


def _changed(program: Program, rng: random.Random, change: Callable[[Block, random.Random], Block | None]) -> Any:
    """The program with one block changed, in the first way that applies to a block drawn."""
    for label in rng.sample(list(program.blocks), len(program.blocks)):
        block = change(program.blocks[label], rng)
        if block is not None:
            return program.replaced(label, lambda _, block=block: [block])
    return None


def _form(form: Linear, rng: random.Random) -> Linear:
    """Another form: another constant, factor, divisor, or a term less."""
    ways: list[Callable[[], Linear]] = [lambda: form + lin.constant(rng.choice((-1, 1, 2)))]
    if form.terms:
        at = rng.randrange(len(form.terms))
        atom, factor = form.terms[at]
        remaining = (*form.terms[:at], *form.terms[at + 1 :])
        ways += [
            lambda: Linear(remaining, form.constant),
            lambda: Linear(remaining, form.constant) + Linear(((atom, -factor),)),
            lambda: Linear(remaining, form.constant) + Linear(((atom, factor + rng.choice((-1, 1))),)),
        ]
        if isinstance(atom, Quotient):
            second = replace(atom, divisor=max(1, atom.divisor + rng.choice((-1, 1))), is_mod=rng.random() < 0.5)
            ways.append(lambda: Linear(remaining, form.constant) + Linear(((second, factor),)))
    return rng.choice(ways)()


def _one_of(values: tuple[Any, ...], rng: random.Random, change: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    if not values:
        return None
    at = rng.randrange(len(values))
    return (*values[:at], change(values[at]), *values[at + 1 :])


def binding(block: Block, rng: random.Random) -> Block | None:
    made = _one_of(block.bindings, rng, lambda f: _form(f, rng))
    return made and replace(block, bindings=made)


def guard(block: Block, rng: random.Random) -> Block | None:
    """A guard less, or another one."""
    if not block.guard or rng.random() < 0.5:
        return replace(block, guard=block.guard[1:]) if block.guard else None
    made = _one_of(block.guard, rng, lambda c: Condition(_form(c.form, rng), c.equal))
    return made and replace(block, guard=made)


def index(block: Block, rng: random.Random) -> Block | None:
    """Another index of a read or write."""
    field = rng.choice(("reads", "writes"))
    accesses = [a for a in getattr(block, field) if a.index]
    if not accesses:
        return None

    def change(access: Access) -> Access:
        made = _one_of(access.index, rng, lambda f: _form(f, rng))
        return access if made is None else replace(access, index=made)

    return replace(block, **{field: _one_of(getattr(block, field), rng, change)})


def where(block: Block, rng: random.Random) -> Block | None:
    """Another condition of a read, or another value where it fails."""
    at = [n for n, a in enumerate(block.reads) if a.where]
    if not at:
        return None
    number = rng.choice(at)
    access = block.reads[number]
    if rng.random() < 0.3 and access.otherwise is not None:
        value = access.otherwise
        second = FloatAttr(value.value.data + 1, value.type) if isinstance(value, FloatAttr) else None
        made = replace(access, otherwise=second or IntegerAttr(1 - value.value.data % 2, value.type))  # type: ignore[operator]
    else:
        made = replace(access, where=_one_of(access.where, rng, lambda c: Condition(_form(c.form, rng), c.equal)))
    return replace(block, reads=(*block.reads[:number], made, *block.reads[number + 1 :]))


def swapped_axes(block: Block, rng: random.Random) -> Block | None:
    """Two bindings changed for each other."""
    if len(block.bindings) < 2:
        return None
    first, second = sorted(rng.sample(range(len(block.bindings)), 2))
    made = list(block.bindings)
    made[first], made[second] = made[second], made[first]
    return replace(block, bindings=tuple(made))


def claim(block: Block, rng: random.Random) -> Block | None:
    """Another origin, or none."""
    if block.origin is None:
        return None
    made = _one_of(block.origin[1], rng, lambda f: _form(f, rng))
    return replace(block, origin=None if made is None or rng.random() < 0.3 else (block.origin[0], made))


def started(block: Block, rng: random.Random) -> Block | None:
    """A reduction that accumulates, or begins anew."""
    return replace(block, accumulate=not block.accumulate) if block.combiners else None


def literal(block: Block, rng: random.Random) -> Block | None:
    """Another constant in a body."""
    changed = False

    def other(node: body.Scalar) -> body.Scalar:
        nonlocal changed
        if not isinstance(node, body.Apply):
            return node
        held = dict(node.properties).get("value")
        if not node.operands and isinstance(held, FloatAttr | IntegerAttr) and not changed:
            changed = True
            value = FloatAttr(held.value.data + 1, held.type) if isinstance(held, FloatAttr) else None
            return body.constant(value or IntegerAttr(held.value.data ^ 1, held.type))  # type: ignore[operator]
        operands = [other(o) for o in node.operands]
        return body.apply(node.kind, operands, dict(node.properties), node.types, node.result)

    made = tuple(other(node) for node in block.body)
    return replace(block, body=made) if changed else None


def buffer(program: Program, rng: random.Random) -> Program | None:
    """A read, or write, of another buffer of the same shape and type."""

    def change(block: Block, rng: random.Random) -> Block | None:
        field = rng.choice(("reads", "writes"))
        accesses = getattr(block, field)
        for at, access in enumerate(accesses):
            held = program.buffers[access.buffer]
            others = [
                n
                for n, b in program.buffers.items()
                if n != held.name and (b.shape, b.element) == (held.shape, held.element)
            ]
            if others:
                made = replace(access, buffer=rng.choice(others))
                return replace(block, **{field: (*accesses[:at], made, *accesses[at + 1 :])})
        return None

    return _changed(program, rng, change)  # type: ignore[no-any-return]


def extent(program: Program, rng: random.Random) -> Program | None:
    """A loop with an iteration more, or less."""
    number = rng.choice(list(program.loops)) if program.loops else None
    if number is None:
        return None
    more = rng.choice((-1, 1))
    return program.replaced(number, lambda n: [replace(n, extent=max(1, n.extent + more))])  # type: ignore[union-attr,arg-type]


def kind(program: Program, rng: random.Random) -> Program | None:
    """A loop that runs concurrently."""
    if not program.loops:
        return None
    number, new = rng.choice(list(program.loops)), rng.choice(("parallel", "vectorized", "serial"))
    return program.replaced(number, lambda n: [replace(n, kind=new)])  # type: ignore[type-var,list-item]


def shape(program: Program, rng: random.Random) -> Program | None:
    """A temporary with another extent, or integers of the other sign."""
    if not program.allocs:
        return None
    held = program.allocs[rng.choice(list(program.allocs))].buffer
    element = held.element
    if isinstance(element, IntegerType) and rng.random() < 0.5:
        signed = Signedness.SIGNLESS if element.signedness.data is Signedness.UNSIGNED else Signedness.UNSIGNED
        made = replace(held, element=IntegerType(element.width.data, signed))
    else:
        sizes = _one_of(held.shape, rng, lambda n: max(1, n + rng.choice((-1, 1))))
        made = replace(held, shape=sizes or held.shape)
    return program.replaced((held.name,), lambda _: [Alloc(made)])


def lifetime(program: Program, rng: random.Random) -> Program | None:
    """A temporary that begins to live in a loop, anew in each iteration."""
    if not program.allocs or not program.loops:
        return None
    alloc = program.allocs[rng.choice(list(program.allocs))]
    without = program.replaced(key_of(alloc), lambda _: [])
    number = rng.choice(list(program.loops))
    return without.replaced(number, lambda n: [replace(n, body=(alloc, *n.body))])  # type: ignore[union-attr,arg-type]


def order(program: Program, rng: random.Random) -> Program | None:
    """Two neighbours the other way round, or one of them left out."""
    bodies = [n for n in program.loops.values() if len(n.body) > 1]
    nodes = rng.choice([program, *bodies]).body
    if len(nodes) < 2:
        return None
    at = rng.randrange(len(nodes) - 1)
    if rng.random() < 0.3:
        return program.replaced(key_of(nodes[at]), lambda _: [])
    first, second = nodes[at], nodes[at + 1]
    made = (*nodes[:at], second, first, *nodes[at + 2 :])
    if nodes is program.body:
        return replace(program, body=made)
    owner = next(n for n in bodies if n.body is nodes)
    return program.replaced(owner.number, lambda n: [replace(n, body=made)])  # type: ignore[type-var,list-item]


def nesting(program: Program, rng: random.Random) -> Program | None:
    """Two loops that change their places."""
    pairs = [(n, n.body[0]) for n in program.loops.values() if len(n.body) == 1 and isinstance(n.body[0], Loop)]
    if not pairs:
        return None
    outer, inner = rng.choice(pairs)
    assert isinstance(inner, Loop)
    return program.replaced(outer.number, lambda _: [replace(inner, body=(replace(outer, body=inner.body),))])


OF_BLOCKS = (binding, guard, index, where, swapped_axes, claim, started, literal)
OF_PROGRAMS: tuple[Mutation, ...] = (buffer, extent, kind, shape, lifetime, order, nesting, *FAULTS.values())


def mutant(program: Program, rng: random.Random) -> Program | None:
    """The program with one place changed; None where the change drawn does not apply."""
    if rng.random() < 0.6:
        return _changed(program, rng, rng.choice(OF_BLOCKS))  # type: ignore[no-any-return]
    return rng.choice(OF_PROGRAMS)(program, rng)


def check(seed: int) -> str:
    """Judge the mutants of one seed. Raises AssertionError where a wrong one is proved."""
    rng = random.Random(seed)
    function, walker = random_walk(seed, STEPS)
    return judged(function, walker.s, rng, seed)


def judged(function: Function, s: Schedule, rng: random.Random, seed: int) -> str:
    """The verdict on a mutant of a schedule of a function. Raises AssertionError where a wrong one is proved."""
    wrong: Program | None = s.program
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        wrong = mutant(wrong, rng) or wrong
    assert wrong is not None
    if wrong is s.program or not any(isinstance(n, Block) for n in walk(wrong.body)):
        return "none"
    try:
        module = ModuleOp([write(wrong)])
        verify_module(module)
    except (VerifyException, KeyError, ValueError):
        return "no program"
    verdict = verify_schedule(wrong, Schedule(s.original).program)
    if verdict.answer != "proved":
        return verdict.answer
    for number in range(2):
        arrays = arrays_for(function, seed + number)
        expected = list(evaluator.evaluate(function.module, arrays))
        assert close(interpreted(module, arrays, expected), expected), "a wrong program was proved"
    return "proved"


def main(seed: int, cases: int) -> int:
    """Run seeds from the first on; the number of failures."""
    answers: Counter[str] = Counter()

    def judge(each_seed: int) -> None:
        with np.errstate(all="ignore"):
            answers[check(each_seed)] += 1

    failures = failures_of("proofs", judge, range(seed, seed + cases), SECONDS)
    print(f"proofs: {cases} mutants, {failures} failures; {dict(answers)}")
    return failures


if __name__ == "__main__":
    sys.exit(main(*asked(__doc__)) > 0)
