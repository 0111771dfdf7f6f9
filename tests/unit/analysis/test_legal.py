"""`legal` agrees with enumeration: on small programs every instance is run through, and every pair on one cell judged.

The changes are made on the tree directly, legal or not: loops permuted, siblings swapped or merged, kinds set.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pytest

from compiler import te
from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.legal import Step, legal
from compiler.program.tree import Access, Alloc, Block, Loop, Node, Program, blocks_in, map_blocks, rebound
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from tests.sample import some
from tests.schedules import lowered

CONCURRENT = ("parallel", "vectorized", "thread_x", "block_x")


# --- enumeration ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instance:
    """One execution: of which block, or its init; the loops around it (number, whether its own copy) and values."""

    label: str
    is_init: bool
    loops: tuple[tuple[int, str], ...]
    values: tuple[int, ...]
    touches: tuple[tuple[object, str], ...]

    def at(self) -> dict[int, int]:
        return {number: value for (number, _), value in zip(self.loops, self.values, strict=True)}


def instances(program: Program) -> list[Instance]:
    """All instances in the order of execution."""
    return list(_run(program, program.body, ()))


Env = tuple[tuple[Loop, int], ...]


def _run(program: Program, nodes: Sequence[Node], env: Env) -> Iterator[Instance]:
    for node in nodes:
        for block in blocks_in(node):
            if block.combiners and not block.accumulate and _place(node, block) is node:
                yield from _init(program, node, block, env)
        if isinstance(node, Loop):
            for value in range(node.extent):
                yield from _run(program, node.body, (*env, (node, value)))
        elif isinstance(node, Block):
            yield from _block(program, node, env)


def _path(node: Node, label: str) -> list[Node] | None:
    if isinstance(node, Block):
        return [node] if node.label == label else None
    if isinstance(node, Loop):
        for inner in node.body:
            actual = _path(inner, label)
            if actual is not None:
                return [node, *actual]
    return None


def _binding_loops(block: Block, reduce: bool) -> set[int]:
    return {
        v
        for axis, form in zip(block.axes, block.bindings, strict=True)
        if axis.is_reduce == reduce
        for v in form.variables()
    }


def _place(node: Node, block: Block) -> Node | None:
    """The node before which the init stands, if it is `node` or inside it; loops further out are no reduce loops."""
    path = _path(node, block.label)
    assert path is not None
    reduced = _binding_loops(block, True)
    return next((n for n in path if isinstance(n, Loop) and n.number in reduced), path[-1])


def _holds(conditions: Sequence[Condition], at: dict[int, int]) -> bool:
    values = [(lin.evaluate(c.form, at), c.equal) for c in conditions]
    return all(v == 0 if equal else v >= 0 for v, equal in values)


def _init(program: Program, node: Node, block: Block, env: Env) -> Iterator[Instance]:
    if any(loop.number in _binding_loops(block, True) for loop, _ in env):
        return  # the init stands further out
    path = _path(node, block.label)
    assert path is not None
    only = _binding_loops(block, True) - _binding_loops(block, False)
    guard = [c for c in block.guard if not c.form.variables() & only]
    used = _binding_loops(block, False).union(*(c.form.variables() for c in guard))
    own = [n for n in path if isinstance(n, Loop) and n.number in used]
    for values in product(*(range(n.extent) for n in own)):
        at = {loop.number: value for loop, value in env} | dict(zip((n.number for n in own), values, strict=True))
        if _holds(guard, at):
            axes = {
                n: 0 if a.is_reduce else lin.evaluate(f, at)
                for n, (a, f) in enumerate(zip(block.axes, block.bindings, strict=True))
            }
            touches = tuple((_cell(program, a, axes, at), "write") for a in block.writes)
            loops = (*((loop.number, "") for loop, _ in env), *((n.number, block.label) for n in own))
            yield Instance(block.label, True, loops, (*(v for _, v in env), *values), touches)


def _block(program: Program, block: Block, env: Env) -> Iterator[Instance]:
    at = {loop.number: value for loop, value in env}
    if not _holds(block.guard, at):
        return
    axes = {n: lin.evaluate(f, at) for n, f in enumerate(block.bindings)}
    touches = [(_cell(program, a, axes, at), "read") for a in block.reads if _holds(a.where, axes)]
    hows = block.combiners or ["write"] * len(block.writes)
    touches += [(_cell(program, a, axes, at), how) for a, how in zip(block.writes, hows, strict=True)]
    loops = tuple((loop.number, "") for loop, _ in env)
    yield Instance(block.label, False, loops, tuple(v for _, v in env), tuple(touches))


def _cell(program: Program, access: Access, axes: dict[int, int], at: dict[int, int]) -> object:
    life = ()
    if access.buffer in program.allocs:
        life = tuple(at[loop.number] for loop in program.enclosing((access.buffer,)))
    return access.buffer, life, tuple(lin.evaluate(f, axes) for f in access.index)


def conflicts(found: Sequence[Instance], commuting: bool) -> Iterator[tuple[int, int]]:
    """Pairs of positions, in order, on one cell with a write; without `commuting`, two equal updates count too."""
    cells: dict[object, list[tuple[int, str]]] = defaultdict(list)
    for position, instance in enumerate(found):
        for cell, how in instance.touches:
            cells[cell].append((position, how))
    for uses in cells.values():
        for n, (i, first_use) in enumerate(uses):
            for j, second_use in uses[n + 1 :]:
                both_read = first_use == second_use == "read"
                same_update = first_use == second_use and first_use not in ("read", "write")
                if i != j and not both_read and not (commuting and same_update):
                    yield i, j


def order_is_kept(before: Program, after: Program, former: Callable[[Instance], dict[int, int]]) -> bool:
    """Whether no conflicting pair of `after` stood in the other order before; `former` gives an instance's former
    values of the loops that are in both programs."""
    old, new = instances(before), instances(after)
    places: dict[tuple[str, bool], list[tuple[int, dict[int, int]]]] = defaultdict(list)
    for position, instance in enumerate(old):
        places[instance.label, instance.is_init].append((position, instance.at()))

    def was(instance: Instance) -> list[int]:
        at = former(instance)
        known = places[instance.label, instance.is_init]
        return [p for p, v in known if all(v[n] == at[n] for n in v.keys() & at.keys())]

    stood = [was(instance) for instance in new]
    return all(a < b or a == b for i, j in conflicts(new, commuting=True) for a in stood[i] for b in stood[j])


def is_race_free(program: Program) -> bool:
    """Whether no two iterations of a concurrent loop conflict."""
    actual = instances(program)
    kinds = {loop.number: loop.kind for loop in program.loops.values()}
    for i, j in conflicts(actual, commuting=False):
        first, second = actual[i], actual[j]
        for depth, (p, q) in enumerate(zip(first.loops, second.loops, strict=False)):
            if p != q:
                break
            if p[1] and (first.label, first.is_init) != (second.label, second.is_init):
                break
            if first.values[depth] != second.values[depth]:
                life = [loop for loop in _shared_cells(program, first, second) if p[0] not in loop]
                if kinds[p[0]] in CONCURRENT and life:
                    return False
                break
    return True


def _shared_cells(program: Program, first_use: Instance, second_use: Instance) -> list[set[int]]:
    """For each buffer on which two instances conflict, the loops in each iteration of which it is another."""
    collected = []
    for cell, how in first_use.touches:
        for right, another in second_use.touches:
            if cell == right and not how == another == "read":
                name = cell[0]  # type: ignore[index]
                collected.append({n.number for n in program.enclosing((name,))} if name in program.allocs else set())
    return collected


# --- random programs and changes ----------------------------------------------------------------------------------


def small(rng: random.Random) -> Program:
    """A few computes over extents of at most 3, sometimes with a step of a schedule applied."""
    n, m, k = (rng.randint(2, 3) for _ in range(3))
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    rk, rm = te.reduce_axis(k, "k"), te.reduce_axis(m, "m")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, rk] * b[rk, j], axis=rk), name="C")
    shift = rng.choice([0, 0, 1])
    d = te.compute((n - shift, m), lambda i, j: c[i, j] + c[i + shift, j], name="D")
    kind = rng.randrange(3)
    if kind == 0:
        last = te.compute((n - shift,), lambda i: te.max(d[i, rm], axis=rm), name="F")
    elif kind == 1:
        last = te.compute((m, n - shift), lambda i, j: d[j, i] * 2, name="F")
    else:
        last = d
    s = Schedule(lowered(te.function("small", [a, b], [last])))
    for _ in range(rng.randint(0, 3)):
        try:
            _random_step(s, rng)
        except ScheduleError:
            continue
    return s.program


def _random_step(s: Schedule, rng: random.Random) -> None:
    block = s.get_block(rng.choice(list(s.program.blocks)))
    loops = s.get_loops(block)
    second = s.get_block(rng.choice(list(s.program.blocks)))
    loop = rng.choice(loops)
    target = s.program.blocks[s.label(block)].writes[0].buffer
    rng.choice(
        [
            lambda: s.split(loop, [None, 2]),
            lambda: s.fuse(*loops[:2]),
            lambda: s.compute_at(second, loop),
            lambda: s.reverse_compute_at(second, loop),
            lambda: s.decompose_reduction(block, loop),
            lambda: s.cache_write(block),
            lambda: s.stage(loop, target),
            lambda: s.partition(loop, 1),
            lambda: s.transform_layout(
                block, s.program.blocks[s.label(block)].writes[0].buffer, lambda *d: (d[0] % 2, *d[1:])
            ),
        ]
    )()


def chains(program: Program) -> list[list[Loop]]:
    """The perfect nests of at least two loops."""
    collected = []
    for loop in program.loops.values():
        chain = [loop]
        while len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], Loop):
            chain.append(chain[-1].body[0])
        collected += [chain] if len(chain) > 1 else []
    return collected


def permuted(program: Program, rng: random.Random) -> tuple[Program, Step | None] | None:
    options = chains(program)
    if not options:
        return None
    chain = rng.choice(options)
    body = chain[-1].body
    for loop in rng.sample(chain, len(chain)):
        body = (replace(loop, body=body),)
    return program.replaced(chain[0].number, lambda _: body), None


def _bodies(program: Program) -> list[tuple[int | None, tuple[Node, ...]]]:
    return [(None, program.body), *((n.number, n.body) for n in program.loops.values())]


def _with_body(program: Program, owner: int | None, body: Sequence[Node]) -> Program:
    if owner is None:
        return replace(program, body=tuple(body))
    return program.replaced(owner, lambda n: [replace(n, body=tuple(body))])  # type: ignore[arg-type]


def _pairs(program: Program, kind: type) -> list[tuple[int | None, int]]:
    return [
        (owner, n)
        for owner, body in _bodies(program)
        for n in range(len(body) - 1)
        if isinstance(body[n], kind) and isinstance(body[n + 1], kind) and not isinstance(body[n], Alloc)
    ]


def swapped(program: Program, rng: random.Random) -> tuple[Program, Step | None] | None:
    front = tuple(sorted(program.body, key=lambda n: not isinstance(n, Alloc)))
    program = replace(program, body=front)
    options = _pairs(program, Loop)
    if not options:
        return None
    owner, n = rng.choice(options)
    body = list(program.body if owner is None else program.loops[owner].body)
    body[n], body[n + 1] = body[n + 1], body[n]
    return _with_body(program, owner, body), Step(program)  # the second is only to say what it was before


def merged(program: Program, rng: random.Random) -> tuple[Program, Step | None] | None:
    front = tuple(sorted(program.body, key=lambda n: not isinstance(n, Alloc)))
    program = replace(program, body=front)
    options = [
        (o, n)
        for o, n in _pairs(program, Loop)
        for b in [program.body if o is None else program.loops[o].body]
        if b[n].extent == b[n + 1].extent  # type: ignore[union-attr]
    ]
    if not options:
        return None
    owner, n = rng.choice(options)
    body = list(program.body if owner is None else program.loops[owner].body)
    first, second = body[n], body[n + 1]
    assert isinstance(first, Loop) and isinstance(second, Loop)
    links = {second.number: lin.variable(first.number)}
    inner = map_blocks(second.body, lambda b: rebound(b, links, program.ranges))
    body[n : n + 2] = [replace(first, body=(*first.body, *inner))]
    after = _with_body(program, owner, body)
    return after, Step(after, shifts={b.label: links for b in blocks_in(second)}, moved=frozenset(), sources={})


def kinds(program: Program, rng: random.Random) -> Program:
    number = rng.choice(list(program.loops))
    kind = rng.choice(CONCURRENT)
    return program.replaced(number, lambda n: [replace(n, kind=kind)])  # type: ignore[arg-type]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", some(range(60), 6))
def test_concurrency_agrees_with_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        program = kinds(small(rng), rng)
        assert (legal(program) is None) == is_race_free(program), program


@pytest.mark.sampled
@pytest.mark.parametrize("seed", some(range(60), 6))
def test_order_agrees_with_enumeration(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(10):
        before = small(rng)
        made = rng.choice([permuted, swapped, merged])(before, rng)
        if made is None:
            continue
        after, step = made
        before = replace(before, body=tuple(sorted(before.body, key=lambda n: not isinstance(n, Alloc))))
        shifts = step.shifts if step is not None else {}

        def former(instance: Instance, shifts: object = shifts) -> dict[int, int]:
            at = instance.at()
            links = shifts.get(instance.label, {})  # type: ignore[attr-defined]
            return at | {n: lin.evaluate(f, at) for n, f in links.items() if f.variables() <= at.keys()}

        given = Step(after, shifts=shifts)
        verdict = legal(after, before, given)
        if verdict is not None and verdict.loop is not None:
            continue
        assert (verdict is None) == order_is_kept(before, after, former), str(verdict)


def test_both_verdicts_occur() -> None:
    rng = random.Random(5)
    collected = {legal(kinds(small(rng), rng)) is None for _ in range(40)}
    assert collected == {True, False}
    verdicts = set()
    for _ in range(80):
        before = small(rng)
        made = swapped(before, rng)
        if made is not None:
            front = replace(before, body=tuple(sorted(before.body, key=lambda n: not isinstance(n, Alloc))))
            verdicts.add(legal(made[0], front) is None)
    assert verdicts == {True, False}


def test_an_init_that_a_guard_no_longer_holds_back() -> None:
    """The sum of a row pair by pair, rows one iteration late: the guard is on a loop that binds row and sum alike."""
    a, r = te.placeholder((3, 4), name="A"), te.reduce_axis(4, "r")
    s = Schedule(lowered(te.function("f", [a], [te.compute((3,), lambda i: te.sum(a[i, r], axis=r), name="C")])))
    fused = s.fuse(*s.get_loops(s.get_block("C")))
    late = s.software_pipeline(fused, [2])
    before = s.program
    without = before.map_blocks(lambda block: replace(block, guard=()))
    assert "that its guard excludes now" in str(legal(without, before, Step(without, keeps_order=True)))
    s.split(late, [None, 2])
    assert str(s.verify()) == "proved"


def test_a_sum_that_is_read_before_it_begins_is_said() -> None:
    A, k = te.placeholder((8, 4), name="A"), te.reduce_axis(4, "k")
    C = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = Schedule(te.function("f", [A], [te.compute((8,), lambda i: C[7 - i], name="Y")]))
    with pytest.raises(ScheduleError, match=r"^merge: Y\[3\] reads C\[4\] before C\[4\] has been set to its identity$"):
        s.merge(s.get_loops("C")[0], s.get_loops("Y")[0])
