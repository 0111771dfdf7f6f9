"""The laws online and logarithm: combiners by their meaning, infinities, rounding."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from benchmarks.equal_programs.attention import in_one_pass
from compiler import te
from compiler.alternatives import PROGRAM_LAWS, exponentials, logarithm, online
from compiler.alternatives.law import Conditions, Law
from compiler.alternatives.program import rewrite_graph
from compiler.graph.canonical import canonical
from compiler.graph.tree import Graph
from compiler.graph.write import write
from compiler.interpret.te import evaluate
from compiler.types.machines import MACHINES
from tests.programs import canonical_graph
from tests.sample import some

Array = np.ndarray[Any, Any]
Combine = Callable[[Any, Any], Any]
nn: Any = te.nn
CONTRACT = Conditions(MACHINES["avx2"], "contract")


def values(graph: Graph, *arrays: Array) -> list[Array]:
    with np.errstate(all="ignore"):
        return evaluate(ModuleOp([write(graph)]), arrays)


def text(graph: Graph) -> str:
    return str(write(replace(canonical(graph).graph, name="f")))


def scaled(a: Any, b: Any) -> Any:
    top = te.maximum(a[0], b[0])
    return top, a[1] * te.exp(a[0] - top) + b[1] * te.exp(b[0] - top)


def scaled_first(a: Any, b: Any) -> Any:
    """The sum before the maximum, and the maximum by a comparison."""
    top = te.select(b[1] >= a[1], b[1], a[1])
    return te.exp(-top + b[1]) * b[0] + te.exp(-(top - a[1])) * a[0], top


def by_greater(a: Any, b: Any) -> Any:
    first = a[0] > b[0]
    sums = te.select(first, a[1] + b[1] * te.exp(b[0] - a[0]), a[1] * te.exp(a[0] - b[0]) + b[1])
    return te.select(first, a[0], b[0]), sums


def equal_apart(a: Any, b: Any) -> Any:
    top = te.maximum(b[0], a[0])
    return top, sum(te.select(te.equal(x[0], top), x[1], te.exp(x[0] - top) * x[1]) for x in (b, a))


SPELLINGS = {scaled: 0, scaled_first: 1, by_greater: 0, equal_apart: 0}
"""Combiners, and the position of the maximum."""


def first_maximum(a: Any, b: Any) -> Any:
    """As of argmax: the greater value, and the position that it has."""
    later = a[0] >= b[0]
    return te.select(later, a[0], b[0]), te.select(later, a[1], b[1])


def of_smallest(a: Any, b: Any) -> Any:
    return te.minimum(a[0], b[0]), a[1] * te.exp(a[0] - b[0]) + b[1]


def other_scale(a: Any, b: Any) -> Any:
    top = te.maximum(a[0], b[0])
    return top, a[1] * te.exp((a[0] - top) * 2.0) + b[1] * te.exp(b[0] - top)


def turned(a: Any, b: Any) -> Any:
    top = te.maximum(a[0], b[0])
    return top, a[1] * te.exp(top - a[0]) + b[1] * te.exp(top - b[0])


def without_nan(a: Any, b: Any) -> Any:
    """NaN is neither greater nor less: sums are added."""
    less, greater = a[0] < b[0], a[0] > b[0]
    sums = te.select(greater, a[1] + b[1] * te.exp(b[0] - a[0]), a[1] + b[1])
    return te.maximum(a[0], b[0]), te.select(less, a[1] * te.exp(a[0] - b[0]) + b[1], sums)


OTHERS = (first_maximum, of_smallest, other_scale, turned, without_nan)


def function(combine: Combine, maximum: int = 0) -> te.Function:
    """The maxima and sums of rows."""
    x, k = te.placeholder((4, 9), name="X"), te.reduce_axis(9, "k")
    made = te.combiner(combine, (-math.inf, 0.0) if maximum == 0 else (0.0, -math.inf))

    def element(i: Any) -> Any:
        return te.reduce(made, tuple(x[i, k] if n == maximum else te.const(1.0, "f32") for n in range(2)), axis=k)

    return te.function("f", [x], list(te.compute((4,), element, name="online")))


@pytest.mark.parametrize("combine", SPELLINGS, ids=lambda combine: combine.__name__)
def test_a_combiner_of_a_maximum_and_a_sum_is_two_passes(combine: Combine) -> None:
    """In f64 and f32 of its rounding; infinite elements are what they are as written, in one order."""
    maximum = SPELLINGS[combine]
    graph = canonical_graph(function(combine, maximum))
    (form,) = online.ONLINE.forms(graph, CONTRACT)
    assert form.rounding is not None and form.written_rounding is not None and form.gain > 1
    assert form.rounding.probable < form.written_rounding.probable
    x = np.random.default_rng(0).standard_normal((4, 9)).astype(np.float32) * 20
    made, wide = values(form.graph, x), x.astype(np.float64)
    sums = np.exp(wide - wide.max(1, keepdims=True)).sum(1)
    assert np.array_equal(made[maximum], x.max(1))
    assert (np.abs(made[1 - maximum] - sums) <= form.rounding.worst * sums + 1e-6).all()
    x[0, 4], x[1, 2], x[2], x[3, 3] = -np.inf, np.nan, -np.inf, np.inf
    written, made = values(graph, x), values(form.graph, x)
    is_stated = combine in (equal_apart, by_greater)
    assert np.array_equal(np.isnan(made[maximum]), np.isnan(x.max(1)))
    assert np.isnan(made[1 - maximum]).tolist() == [False, True, not is_stated, not is_stated]
    if is_stated:
        assert made[1 - maximum][2:].tolist() == [9.0, 1.0]
    if combine is not by_greater:  # -inf - -inf, where nothing is the greater one
        assert np.array_equal(np.isnan(written[1 - maximum]), np.isnan(made[1 - maximum]))


def test_under_strict_it_stays() -> None:
    graph = canonical_graph(function(scaled))
    assert not list(online.ONLINE.forms(graph, replace(CONTRACT, policy="strict")))


@pytest.mark.parametrize("combine", OTHERS, ids=lambda combine: combine.__name__)
def test_other_combiners_stay(combine: Combine) -> None:
    """Maxima with positions, minima, other powers, and sums that forget a NaN."""
    x, k = te.placeholder((4, 9), name="X"), te.reduce_axis(9, "k")
    made = te.combiner(combine, (math.inf if combine is of_smallest else -math.inf, 0.0))
    rows = te.compute((4,), lambda i: te.reduce(made, (x[i, k], te.const(1.0, "f32")), axis=k), name="online")
    graph = canonical_graph(te.function("f", [x], list(rows)))
    assert not list(online.ONLINE.forms(graph, CONTRACT))


def weighted(rng: random.Random) -> te.Function:
    """An online softmax of an expression along one axis or two, with sums of weights that move along other axes."""
    rows, columns, k, n = (rng.randint(1, 4) for _ in range(4))
    x, w = te.placeholder((rows, k, n), "f64", name="X"), te.placeholder((k, columns), "f64", name="W")
    shift, p, q = rng.choice((0.0, 0.5)), te.reduce_axis(k, "p"), te.reduce_axis(n, "q")
    is_stated = rng.random() < 0.5

    def combine(a: Any, b: Any) -> Any:
        top = te.maximum(a[0], b[0])

        def scale(m: Any, s: Any) -> Any:
            return te.select(te.equal(m, top), s, s * te.exp(m - top)) if is_stated else te.exp(m - top) * s

        return top, *(scale(a[0], s) + scale(b[0], t) for s, t in zip(a[1:], b[1:], strict=True))

    made = te.combiner(combine, (-math.inf, 0.0, 0.0))

    def element(i: Any, j: Any) -> Any:
        return te.reduce(made, (x[i, p, q] + shift, te.const(2.0, "f64"), w[p, j]), axis=[p, q])

    y = te.compute((rows, columns), element, name="online")
    return te.function("f", [x, w], list(y) if rng.random() < 0.5 else nn.div(y[2], y[1]))


def by_logarithm(rng: random.Random) -> te.Function:
    """exp(x - m - log s) in a random order, along any axis, in one compute or several."""
    x = te.placeholder(tuple(rng.randint(2, 4) for _ in range(rng.randint(1, 3))), "f64", name="X")
    axis = rng.randrange(x.rank)
    scaled = nn.mul(x, 0.3) if rng.random() < 0.5 else x
    top = nn.max(scaled, axis, keepdims=True)
    total = nn.sum(nn.exp(nn.sub(scaled, top)), axis, keepdims=True)
    order = rng.randrange(4)
    if order == 0:
        return te.function("f", [x], nn.exp(nn.sub(scaled, nn.add(nn.log(total), top))))
    if order == 1:
        return te.function("f", [x], nn.exp(nn.sub(nn.sub(scaled, nn.log(total)), top)))
    if order == 2:
        return te.function("f", [x], nn.mul(nn.exp(nn.neg(nn.add(nn.log(total), nn.sub(top, scaled)))), 2.0))
    return te.function("f", [x], nn.exp(nn.log_softmax(scaled, axis)))


def shows_fault(seed: int, law: Law, make: Callable[[random.Random], te.Function]) -> bool:
    """Whether a law has no form of a random program, or one of another value."""
    graph = canonical_graph(make(random.Random(seed)))
    arrays = [np.random.default_rng(seed).standard_normal(value.shape) * 3 for value in graph.inputs]
    form = next(law.forms(graph, CONTRACT), None)
    return form is None or not all(map(np.allclose, values(graph, *arrays), values(form.graph, *arrays)))


@pytest.mark.parametrize("seed", some(range(12)))
def test_random_programs_keep_their_values(seed: int) -> None:
    assert not shows_fault(seed, online.ONLINE, weighted)
    assert not shows_fault(seed, logarithm.LOGARITHM, by_logarithm)


def test_the_logarithm_of_a_sum_is_a_quotient() -> None:
    """Of all spellings: the text of a softmax, and NaN and infinities as written."""
    x = te.placeholder((4, 9), name="X")
    graph = canonical_graph(te.function("f", [x], nn.exp(nn.log_softmax(x, 1))))
    (form,) = logarithm.LOGARITHM.forms(graph, CONTRACT)
    assert text(form.graph) == text(canonical_graph(te.function("f", [x], nn.softmax(x, 1))))
    assert form.rounding is not None and form.written_rounding is not None and form.gain > 1
    assert form.rounding.probable < form.written_rounding.probable
    array = np.random.default_rng(0).standard_normal((4, 9)).astype(np.float32) * 50
    array[0, 4], array[1, 2], array[2], array[3, 3] = -np.inf, np.nan, -np.inf, np.inf
    written, made = values(graph, array)[0], values(form.graph, array)[0]
    np.testing.assert_allclose(written, made, rtol=1e-4, atol=1e-30)
    assert not list(logarithm.LOGARITHM.forms(graph, replace(CONTRACT, policy="strict")))


def test_other_logarithms_stay() -> None:
    """Of another axis, without the maximum, of other sums: their powers may overflow."""
    x, y = te.placeholder((5, 5), name="X"), te.placeholder((5, 5), name="Y")
    top, rows = nn.max(x, 1, keepdims=True), nn.max(x, 0, keepdims=True)
    total = nn.sum(nn.exp(nn.sub(x, top)), 1, keepdims=True)
    others = (
        nn.exp(nn.sub(nn.sub(x, rows), nn.log(total))),
        nn.exp(nn.sub(x, nn.log(nn.sum(nn.exp(x), 1, keepdims=True)))),
        nn.exp(nn.sub(nn.sub(y, top), nn.log(total))),
        nn.exp(nn.sub(nn.sub(x, top), nn.log(nn.sum(nn.exp(nn.sub(y, top)), 1, keepdims=True)))),
        nn.exp(nn.sub(nn.sub(nn.transpose(x, (1, 0)), top), nn.log(total))),
        nn.exp(nn.add(nn.sub(x, top), nn.log(total))),
    )
    for other in others:
        assert not list(logarithm.LOGARITHM.forms(canonical_graph(te.function("f", [x, y], other)), CONTRACT))


def test_an_attention_in_one_pass_is_one_in_two_products() -> None:
    """The maximum and the sum for each query, not for each result; then the powers are divided."""
    q, k, v = (te.placeholder((2, 5, 4), name=name) for name in "QKV")
    graph = canonical_graph(te.function("f", [q, k, v], in_one_pass(q, k, v)))
    made = rewrite_graph(graph, CONTRACT, PROGRAM_LAWS)
    assert [applied.law for applied in made.applied] == ["online", "normalised"]
    arrays = [np.random.default_rng(n).standard_normal((2, 5, 4)).astype(np.float32) for n in range(3)]
    np.testing.assert_allclose(values(graph, *arrays)[0], values(made.graph, *arrays)[0], rtol=1e-5, atol=1e-6)


Plant = Callable[[pytest.MonkeyPatch], None]


def sums_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """online: whatever has a maximum is one"""
    monkeypatch.setattr(online, "_agrees", lambda case, combiner, position, count: True)


def nan_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """online: NaN is not looked at"""
    right = online._agrees
    monkeypatch.setattr(online, "_agrees", lambda case, *rest: case.order is None or right(case, *rest))


def exponents_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """exponentials: the power of a sum of reads is 1"""
    monkeypatch.setattr(exponentials, "_exponent", lambda *exponents: ())


@pytest.mark.parametrize("fault", [sums_not_compared, nan_forgotten, exponents_lost], ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_seen(fault: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> bool:
        try:
            for combine in OTHERS:
                test_other_combiners_stay(combine)
            for combine in SPELLINGS:
                test_a_combiner_of_a_maximum_and_a_sum_is_two_passes(combine)
        except (AssertionError, ValueError):
            return True
        return False

    assert not seen()
    with monkeypatch.context() as planted:
        fault(planted)
        assert seen(), fault.__doc__
