"""Joint combiners: argmax and its like at every level, the test that a region is a combiner, and wrong uses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

import compiler
from compiler import te
from compiler.analysis.combiners import CombinerError
from compiler.interpret import loop as interpreter
from compiler.interpret import te as evaluator
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import StrataError, TeError

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}
SHAPES = [((5, 9), 1), ((5, 9), 0), ((1, 1), 0), ((3, 4, 5), 1), ((33,), 0), ((2, 1), 1)]


def results(function: te.Function, *arrays: np.ndarray) -> list[list[np.ndarray]]:
    """What the evaluator, the compiled kernel and the loop interpreter give."""
    evaluated = evaluator.evaluate(function.module, arrays)
    kernel = compiler.build(function)
    compiled = kernel(*arrays)
    interpreted = [np.empty_like(e) for e in evaluated]
    interpreter.run(parse(kernel.text("loop")), [*arrays, *interpreted])
    return [list(evaluated), list(compiled) if isinstance(compiled, tuple) else [compiled], interpreted]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("operator", ["argmax", "argmin"])
def test_selection_is_numpys(dtype: str, shape: tuple[int, ...], axis: int, operator: str) -> None:
    array = np.random.default_rng(0).integers(-3, 4, shape).astype(DTYPES[dtype])
    if array.dtype.kind == "f":  # ties, infinities and NaN
        array.flat[::7], array.flat[::5], array.flat[1::5] = np.nan, np.inf, -np.inf
    x = te.placeholder(shape, dtype, name="X")
    function = te.function("f", [x], getattr(te.nn, operator)(x, axis))
    expected = getattr(np, operator)(array, axis)
    for (got,) in results(function, array):
        np.testing.assert_array_equal(got, expected)


def test_all_values_are_the_worst() -> None:
    x = te.placeholder((2, 3), name="X")
    function = te.function("f", [x], te.nn.argmax(x))
    for (got,) in results(function, np.full((2, 3), -np.inf, np.float32)):
        np.testing.assert_array_equal(got, [0, 0])


def variance() -> te.Function:
    """Count, mean and sum of squared distances, combined as Chan, Golub and LeVeque do."""

    def combine(a: Any, b: Any) -> Any:
        count, distance = a[0] + b[0], b[1] - a[1]
        share = b[0] / te.maximum(count, 1.0)
        return count, a[1] + distance * share, a[2] + b[2] + distance * distance * a[0] * share

    moments = te.combiner(combine, (0.0, 0.0, 0.0))
    x, k = te.placeholder((4, 37), "f64", name="X"), te.reduce_axis(37)
    unit = te.const(1.0, "f64")
    zero = te.const(0.0, "f64")
    _, mean, squares = te.compute((4,), lambda i: te.reduce(moments, (unit, x[i, k], zero), axis=k), "M")
    return te.function("f", [x], [mean, te.compute((4,), lambda i: squares[i] / 37, "V")])


def test_a_combiner_of_three() -> None:
    array = np.random.default_rng(0).standard_normal((4, 37)) + 100
    for mean, spread in results(variance(), array):
        np.testing.assert_allclose(mean, array.mean(1), rtol=1e-13)
        np.testing.assert_allclose(spread, array.var(1), rtol=1e-11)


def test_lanes_of_a_reduction_and_beside_it() -> None:
    for vectorized in ("k", "i"):
        x, k = te.placeholder((8, 8), name="X"), te.reduce_axis(8)
        pick = te.combiner(lambda a, b: (te.minimum(a[0], b[0]), te.maximum(a[1], b[1])), (math.inf, -math.inf))
        low, high = te.compute((8,), lambda i: te.reduce(pick, (x[i, k], x[i, k] * 2), axis=k), "S")  # noqa: B023
        function = te.function("f", [x], [low, high])
        text = str(compiler.lower(function)).replace(
            f'"{vectorized}" %{vectorized} = 8', f'"{vectorized}" %{vectorized} = 8 vectorized'
        )
        array = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
        for got, expected in zip(compiler.build(text)(array), (array.min(1), 2 * array.max(1)), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_schedule_splits_reorders_and_factors() -> None:
    x = te.placeholder((6, 40), name="X")
    function = te.function("f", [x], te.nn.argmax(x))
    s = Schedule(compiler.lower(function))
    block = s.get_block("argmax")
    row, k = s.get_loops(block)
    outer, inner = s.split(k, [None, 8])
    s.reorder(inner, row, outer)
    s.rfactor(block, inner)
    assert s.verify()
    array = np.random.default_rng(0).integers(0, 5, (6, 40)).astype(np.float32)
    np.testing.assert_array_equal(compiler.build(s)(array), array.argmax(1))


def later_max(body: Any) -> te.Function:
    """The greatest value of a body and where it first stands."""

    def first(held: Any, added: Any) -> Any:
        later = (added[0] > held[0]) | (te.equal(added[0], held[0]) & (added[1] < held[1]))
        return te.select(later, added[0], held[0]), te.select(later, added[1], held[1])

    x, k = te.placeholder((4, 9), name="X"), te.reduce_axis(9)
    pick = te.combiner(first, (-math.inf, 2**63 - 1))
    value, place = te.compute((4,), lambda i: te.reduce(pick, (body(x[i, k]), te.cast(k, "i64")), axis=k), name="M")
    return te.function("f", [x], [value, place])


@pytest.mark.parametrize("name", ["sqrt", "log"])
def test_a_body_that_yields_nan_of_some_numbers(name: str) -> None:
    """What the combiner makes of NaN is not asked: the reads that it is tested on are not those of a user."""
    array = np.random.default_rng(0).uniform(0.1, 9, (4, 9)).astype(np.float32)
    expected = getattr(np, name)(array)
    for value, place in results(later_max(getattr(te, name)), array):
        np.testing.assert_allclose(value, expected.max(1), rtol=1e-6)
        np.testing.assert_array_equal(place, expected.argmax(1))


def test_a_body_that_yields_nan_only() -> None:
    with pytest.raises(StrataError, match="combiner of 'M' cannot be used: its body yields NaN for all of the random"):
        compiler.build(later_max(lambda x: te.sqrt(-1.0 - x * x)))


def test_a_combiner_that_makes_nan_of_numbers_is_refused_at_its_place() -> None:
    x, k = te.placeholder((4, 9), name="X"), te.reduce_axis(9)
    harmonic = te.combiner(lambda a, b: (a[0] * b[0] / (a[0] + b[0]),), (math.inf,))
    function = te.function("f", [x], te.compute((4,), lambda i: te.reduce(harmonic, (x[i, k],), axis=k), name="H"))
    with pytest.raises(
        CombinerError, match=r"of 'H' cannot be used: its identity is not neutral: .* gives \(nan\)"
    ) as said:
        compiler.build(function)
    assert isinstance(said.value, StrataError) and said.value.op.name == "te.compute"


WRONG: dict[str, tuple[Any, str]] = {
    "no function": (lambda x, k: te.combiner(3, (0,)), "a combiner is a function of two tuples"),  # type: ignore[arg-type]
    "no identity": (lambda x, k: te.combiner(max, ()), "and a tuple of neutral values"),
    "count": (lambda x, k: te.reduce(te.combiner(lambda a, b: a, (0, 0)), (x[k],), axis=k), "2 neutral values"),
    "returned": (lambda x, k: te.reduce(te.combiner(lambda a, b: (a[0], b[0]), (0,)), (x[k],), axis=k), "returns 2"),
    "dtype": (
        lambda x, k: te.reduce(te.combiner(lambda a, b: (te.cast(a[0], "i64"),), (0,)), (x[k],), axis=k),
        "the combiner returns i64 where it takes f32",
    ),
    "identity": (
        lambda x, k: te.reduce(te.combiner(lambda a, b: a, (0.5,)), (te.cast(k, "i64"),), axis=k),
        "0.5 is not a value of i64",
    ),
    "axis": (lambda x, k: te.reduce(te.combiner(lambda a, b: a, (0,)), (x[0],), axis=3), "one reduce axis or several"),
    "no combiner": (lambda x, k: te.reduce(max, (x[k],), axis=k), "te.combiner makes one"),  # type: ignore[arg-type]
    "reversed": (
        lambda x, k: te.reduce(te.combiner(lambda a, b: a, (0, 0)), (x[k], x[k]), axis=k)[::-1],
        "return the tuple of te.reduce as it is",
    ),
    "beside another": (
        lambda x, k: (*te.reduce(te.combiner(lambda a, b: a, (0,)), (x[k],), axis=k), te.sum(x[k], axis=k)),
        "return the tuple of te.reduce as it is",
    ),
    "in an expression": (
        lambda x, k: te.reduce(te.combiner(lambda a, b: a, (0,)), (x[k],), axis=k)[0] + 1,
        "a joint reduction stands inside an expression",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses(name: str) -> None:
    element, sentence = WRONG[name]
    x, k = te.placeholder((4,), name="X"), te.reduce_axis(4)
    with pytest.raises(TeError, match=sentence):
        te.compute((), lambda: element(x, k), "R")


def test_a_schedule_begins_with_a_combiner() -> None:
    x, k = te.placeholder((4,), name="X"), te.reduce_axis(4)
    last = te.combiner(lambda a, b: (b[0],), (0.0,))
    (value,) = te.compute((), lambda: te.reduce(last, (x[k],), axis=k), "R")
    with pytest.raises(VerifyException, match="the combiner of 'R' cannot be used: its identity is not neutral"):
        compiler.lower(te.function("f", [x], value))
