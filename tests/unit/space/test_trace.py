"""Traced numbers: what one run records holds for every candidate that answers its guards alike."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.space.structures import Runs, Structure
from compiler.space.trace import Number, Traced, TraceGraph, traced_comparison, traced_max, traced_min

OPTIONS = (1, 2, 3, 4, 6, 8, 16, 48)


def _code(a, b, draws: random.Random):
    """A random integer program with decisions, the same for the same draws."""
    values = [a, b, draws.randrange(1, 9)]
    for _ in range(12):
        x, y = draws.choice(values), draws.choice(values)
        kind = draws.randrange(9)
        if kind < 3:
            values.append((x + y, x - y, x * y)[kind])
        elif kind == 3:
            values.append(-(-x // y) if y > 0 else x)
        elif kind == 4:
            values.append(x % y if y > 0 else y)
        elif kind == 5:
            values.append(min(x, y))
        elif kind == 6:
            values.append(traced_min(x, y) + traced_max(x, y) * traced_comparison("lt", x, y))
        elif kind == 7:
            values.append(x if x == y else y)
        else:
            values.append(x * 2 // 2 + (y * x) % x if x > 0 else y)
    return values[-1]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, len(OPTIONS) - 1), st.integers(0, len(OPTIONS) - 1))
def test_a_trace_holds_for_all_that_answer_alike(seed: int, i: int, j: int) -> None:
    graph = TraceGraph()
    a, b = (graph.input(n, OPTIONS[k], min(OPTIONS), max(OPTIONS)) for n, k in enumerate((i, j)))
    actual = _code(a, b, random.Random(seed))
    columns = np.array([(x, y) for x in OPTIONS for y in OPTIONS])
    known: dict = {}
    (values,) = graph.evaluate([graph.number_of(actual)], columns, known)
    agree = np.ones(len(columns), bool)
    for node, answer in graph.guards:
        (array,) = graph.evaluate([node], columns, known)
        agree &= (array != 0) == answer
    assert agree[i * len(OPTIONS) + j], "the witness answers its own guards"
    wanted = [_code(int(x), int(y), random.Random(seed)) for x, y in columns]
    assert np.array_equal(np.broadcast_to(values, agree.shape)[agree], np.array(wanted)[agree])


def test_a_decision_that_bounds_decide_leaves_no_guard() -> None:
    graph = TraceGraph()
    x = graph.input(0, 4, 2, 8)
    assert x > 1 and x != 9 and not x > 8 and x * 4 >= 8 and x // 9 == 0 and bool(x)
    assert graph.guards == []
    assert x > 3
    assert len(graph.guards) == 1
    assert x > 3
    assert len(graph.guards) == 1, "once is enough"


def test_a_product_is_divided_without_a_trace() -> None:
    graph = TraceGraph()
    x, y = graph.input(0, 4, 2, 8), graph.input(1, 6, 2, 8)
    assert (x * y) // y is not None and ((x * y) // y).node == x.node
    assert (x * y) % y == 0 and (x * 16) % 16 == 0 and ((x * 16) // 4).value == 16
    assert x - x == 0 and x % x == 0
    assert graph.guards == []


def test_what_needs_an_int_means_the_witness_only() -> None:
    graph = TraceGraph()
    x = graph.input(0, 4, 2, 8)
    assert list(range(x)) == [0, 1, 2, 3]
    ((node, answer),) = graph.guards
    (array,) = graph.evaluate([node], np.array([[2], [4], [8]]))
    assert answer and array.tolist() == [0, 1, 0]


def test_a_choice_of_one_is_a_number() -> None:
    assert TraceGraph().input(0, 5, 5, 5) == 5
    assert not isinstance(TraceGraph().input(0, 5, 5, 5), Traced)


@pytest.mark.parametrize("name", ["lt", "le", "eq"])
def test_conditions_as_numbers(name: str) -> None:
    graph = TraceGraph()
    x = graph.input(0, 4, 2, 8)
    condition = traced_comparison(name, x, 4)
    (array,) = graph.evaluate([graph.number_of(condition)], np.array([[2], [4], [8]]))
    assert array.tolist() == {"lt": [1, 0, 0], "le": [1, 1, 0], "eq": [0, 1, 0]}[name]
    assert graph.guards == []


def test_runs_sort_candidates_by_their_answers() -> None:
    """A tree of decisions tells what asking every run for its guards does."""
    columns = np.stack([np.repeat(np.arange(1, 9), 8), np.tile(np.arange(1, 9), 8)], axis=1)

    def program(x: Number, y: Number) -> Number:
        if x > 4:
            return x * y if y < 3 else x + y
        return y - x if x == y + 1 else y

    graph, runs, structures = TraceGraph(), Runs(), []
    left = np.arange(len(columns))
    while len(left):
        graph.begin()
        x, y = (graph.input(n, int(columns[left[0], n]), 1, 8) for n in range(2))
        structures.append(Structure((), (graph.number_of(program(x, y)),)))
        structures[-1] = Structure(tuple(graph.guards), structures[-1].nodes)
        runs.add(structures[-1])
        unseen = [rows for actual, rows in runs.sorted(graph, columns, {}, left) if actual is None]
        left = np.sort(np.concatenate(unseen)) if unseen else left[:0]
    assert len(structures) == 4
    seen: list[int] = []
    for structure, rows in runs.sorted(graph, columns, {}, np.arange(len(columns))):
        assert structure is not None and structure.nodes is not None
        (values,) = graph.evaluate(structure.nodes, columns)
        assert [program(int(a), int(b)) for a, b in columns[rows]] == list(values[rows])
        seen += list(rows)
    assert sorted(seen) == list(range(len(columns)))


def test_runs_that_ask_otherwise_lie_apart() -> None:
    """As where a cache remembers an earlier run: they are found all the same."""
    graph, runs = TraceGraph(), Runs()
    x, y = (graph.input(n, 1, 1, 4) for n in range(2))
    small, even, equal = (
        graph.number_of(traced_comparison("lt", x, 3)),
        graph.number_of(traced_comparison("eq", y % 2, 0)),
        graph.number_of(traced_comparison("eq", x, y)),
    )
    of = [
        Structure(guards, (n,))
        for n, guards in enumerate(
            (
                ((small, True), (even, True)),
                ((small, True), (even, False)),
                ((equal, True), (small, False)),  # begins otherwise
                ((small, False), (equal, False), (even, True)),
                ((small, False), (equal, False)),  # ends where another goes on
            )
        )
    ]
    for structure in of:
        runs.add(structure)
    columns = np.stack([np.repeat(np.arange(1, 5), 4), np.tile(np.arange(1, 5), 4)], axis=1)
    collected = {int(row): s for s, rows in runs.sorted(graph, columns, {}, np.arange(16)) for row in rows}
    assert sorted(collected) == list(range(16))
    for row, (a, b) in enumerate(columns):
        answers = {small: a < 3, even: b % 2 == 0, equal: a == b}
        fitting = [s for s in of if all(answers[guard] == answer for guard, answer in s.guards)]
        assert collected[row] in fitting
