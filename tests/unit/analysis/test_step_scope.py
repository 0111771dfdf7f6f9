"""A step looks at the nests that it changes: the same answers as for the whole program, and no more work in a longer
one."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

import pytest

import compiler
from compiler import te
from compiler.analysis.legal import Step, legal
from compiler.analysis.statements import statements
from compiler.fuzz.programs import program
from compiler.fuzz.scripts import Walker
from compiler.program.changed import changed_nodes
from compiler.program.tree import Program, walk
from compiler.schedule import Schedule
from tests.sample import some
from tests.schedules import lowered

SIZE = 32


def chain(count: int) -> te.Function:
    x = first = te.placeholder((SIZE, SIZE), name="X")
    for _ in range(count):
        x = te.nn.relu(x)
    return te.function("chain", [first], [x])


def fan(count: int) -> te.Function:
    x = te.placeholder((SIZE, SIZE), name="X")
    return te.function(
        "fan", [x], [te.compute((SIZE, SIZE), lambda i, j, n=n: x[i, j] * float(n)) for n in range(count)]
    )


def schedule(f: te.Function) -> Schedule:
    return Schedule(compiler.lower(f))


def steps(s: Schedule, label: str) -> None:
    """Some steps in one nest."""
    i, j = s.get_loops(s.get_block(label))
    _, lanes = s.split(j, [None, 16])
    outer, inner = s.split(i, [None, 8])
    s.reorder(outer, inner)
    s.vectorize(lanes)
    s.parallel(outer)


def calls(do: Callable[[], object]) -> int:
    """How many functions are called."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        do()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("make", [chain, fan])
def test_a_step_takes_no_longer_in_a_longer_program(make: Callable[[int], te.Function]) -> None:
    few, many = (schedule(make(count)) for count in (15, 60))
    for s in (few, many):
        steps(s, next(iter(s.program.blocks)))
    middle = {s: list(s.program.blocks)[len(s.program.blocks) // 2] for s in (few, many)}
    short, long = (calls(lambda s=s: steps(s, middle[s])) for s in (few, many))  # type: ignore[misc]
    assert long < 1.5 * short, (short, long)


def test_building_takes_time_in_proportion() -> None:
    def build(count: int) -> None:
        """One function, not cut into groups."""
        compiler.build(compiler.lower(chain(count)))

    build(3)
    short, long = (calls(lambda count=count: build(count)) for count in (12, 48))  # type: ignore[misc]
    assert long < 4.4 * short, (short, long)


def whole(p: Program) -> Program:
    """The program with nodes that are no other program's: all of it is looked at."""
    return replace(p, body=tuple(replace(node) for node in p.body))


@pytest.mark.parametrize("seed", some(range(40)))
def test_the_answer_is_that_for_the_whole_program(seed: int) -> None:
    """Random steps that were legal, and the way back from them, which often is not."""
    rng = random.Random(seed)
    walker = Walker(Schedule(lowered(program(rng)), seed=seed), rng)
    programs = [walker.s.program]
    for _ in range(8):
        walker.step()
        programs.append(walker.s.program)
    for before in programs:
        for after in programs:
            if before is not after and before.blocks.keys() & after.blocks.keys():
                step = Step(after, moved=frozenset(before.blocks.keys() & after.blocks.keys()))
                assert str(legal(after, before, step)) == str(
                    legal(whole(after), before, replace(step, program=whole(after)))
                )


def test_only_what_differs_has_changed() -> None:
    s = schedule(chain(5))
    before = s.program
    labels = list(before.blocks)
    s.split(s.get_loops(s.get_block(labels[2]))[1], [None, 16])
    changed = changed_nodes(before, s.program)
    (old,), (new,) = changed.before, changed.after
    assert before.places.top(labels[2]) == old and s.program.places.top(labels[2]) == new
    turned = replace(before, body=before.body[::-1])
    assert changed_nodes(before, turned).after == tuple(range(len(before.body)))
    first = changed_nodes(before, before, [labels[0], "no such block"])
    assert first.before == first.after == (before.places.top(labels[0]),)


def test_what_a_program_knows_is_what_a_walk_finds() -> None:
    s = schedule(chain(3))
    steps(s, list(s.program.blocks)[1])
    p = s.program
    nodes = list(walk(p.body))
    assert list(p.loops.values()) == [n for n in nodes if hasattr(n, "extent")]
    assert list(p.blocks.values()) == [n for n in nodes if hasattr(n, "axes")]
    for label in p.blocks:
        place, here = p.places[label], p.body
        for position, loop in zip(place.positions, (*place.loops, None), strict=True):
            node, here = here[position], getattr(here[position], "body", ())
            assert node is (p.blocks[label] if loop is None else loop)
    assert [key for key, _ in statements(p).items()] == list(statements(p))
    assert all(s.positions[0][0] == p.places.top(label) for (label, _), s in statements(p).items())
