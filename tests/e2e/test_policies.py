"""Floating-point policies: infinities and NaN are values under each of them, and the document states their flags."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.fuzz.programs import arrays_for, program
from compiler.interpret.te import evaluate
from compiler.schedule import Schedule
from compiler.types.policies import POLICIES, Policy
from tests.operators import CASES, inputs
from tests.sample import pairs, some

Array = np.ndarray[Any, Any]
PAGE = Path(__file__).parents[2] / "docs/policies.md"
SPECIAL = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -3.0)


def special(array: Array, seed: int, values: tuple[float, ...] = SPECIAL) -> Array:
    """The array with every fifth float replaced by one of the values."""
    if array.dtype.kind != "f":
        return array
    rng = np.random.default_rng(seed)
    return np.where(rng.random(array.shape) < 0.2, rng.choice(values, array.shape), array).astype(array.dtype)


def same(got: Any, expected: list[Array]) -> None:
    """NaN where NaN is expected, equal infinities, and finite values up to rounding."""
    for output, wanted in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
        assert output.dtype == wanted.dtype
        exact = output.dtype.kind in "iub"
        np.testing.assert_allclose(output, wanted, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-4)


def floating(name: str) -> bool:
    return any(tensor.dtype == "f32" for tensor in CASES[name]().inputs)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "policy"), pairs([name for name in some(CASES) if floating(name)], list(POLICIES)))
def test_operators(name: str, policy: str) -> None:
    function = CASES[name]()
    arrays = [special(array, 1) for array in inputs(function)]
    same(compiler.build(function, policy=policy)(*arrays), evaluate(function.module, arrays))


SHAPE = (8, 64)
X, Y = (te.placeholder(SHAPE, name=name) for name in "XY")


def each(body: Callable[[Any, Any], Any]) -> Callable[[], te.Tensor]:
    return lambda: te.compute(SHAPE, lambda i, j: body(X[i, j], Y[i, j]), name="Z")


def rows(combine: Callable[..., Any], body: Callable[[Any, Any], Any]) -> Callable[[], te.Tensor]:
    k = te.reduce_axis(SHAPE[1], "k")
    return lambda: te.compute((SHAPE[0],), lambda i: combine(body(X[i, k], Y[i, k]), axis=k), name="Z")


PROGRAMS: dict[str, Callable[[], te.Tensor]] = {
    "difference": each(lambda x, y: x - x + y),
    "cancelled": each(lambda x, y: (x + y) - x),
    "division": each(lambda x, y: x / y),
    "reciprocal": each(lambda x, y: 1.0 / x + y / 3.0),
    "comparison": each(lambda x, y: te.select(x < y, x, y * 2 + 1)),
    "is_nan": each(lambda x, y: te.select(te.equal(x, x), y, 7.0)),
    "is_infinite": each(lambda x, y: te.select(te.equal(x, float("inf")), 1.0, x - y)),
    "maximum": each(te.maximum),
    "row_maximum": rows(te.max, lambda x, y: x),
    "row_minimum": rows(te.min, lambda x, y: x * y),
    "row_sum": rows(te.sum, lambda x, y: x + y),
    "row_sum_of_differences": rows(te.sum, lambda x, y: x - x),
}


def in_vectors(function: te.Function) -> Schedule:
    """The last loop in vectors of 8, a reduction's with a partial result in each lane."""
    schedule = Schedule(compiler.lower(function))
    block = schedule.get_block("Z")
    lanes = schedule.split(schedule.get_loops(block)[1], [None, 8])[1]
    if function.name.startswith("row"):
        schedule.rfactor(block, lanes)
    schedule.vectorize(lanes)
    return schedule


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_infinities_and_nan_are_values(name: str, policy: str) -> None:
    function = te.function(name, [X, Y], PROGRAMS[name]())
    rng = np.random.default_rng(0)
    x, y = (special(rng.standard_normal(SHAPE).astype(np.float32), seed) for seed in (1, 2))
    x[0], x[1, 3], x[2] = -np.inf, np.inf, rng.standard_normal(SHAPE[1])
    x[2, 5] = np.inf
    y[2] = rng.standard_normal(SHAPE[1])
    expected = evaluate(function.module, [x, y])
    same(compiler.build(function, policy=policy)(x, y), expected)
    same(compiler.build(in_vectors(function), policy=policy)(x, y), expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("chunk", some(range(9)))
def test_random_programs_on_infinities_and_nan(chunk: int) -> None:
    for seed in range(7000 + 10 * chunk, 7010 + 10 * chunk):
        function = program(random.Random(seed))
        if any(tensor.dtype in ("f16", "bf16") for tensor in function.inputs):
            continue
        arrays = [special(array, seed, SPECIAL[:5]) for array in arrays_for(function, seed)]
        same(compiler.build(function, policy="fast")(*arrays), evaluate(function.module, arrays))


def said(policy: Policy) -> list[str]:
    """A policy's column in the document."""
    return [
        *(", ".join(flags) or "none" for flags in (policy.body, policy.sums, policy.extremes, ())),
        "0" if policy.zeros else "computed",
        "polynomials" if policy.polynomials else "the C library",
        f"`--fmad={'true' if policy.fused else 'false'}`",
        "yes" if policy.narrow else "no",
    ]


def test_the_document_states_the_flags() -> None:
    table = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[2:-1]]
        for line in PAGE.read_text().splitlines()
        if line.startswith("|") and "---" not in line
    ]
    names, *lines = table
    assert names == [f"`{name}`" for name in POLICIES]
    assert [list(column) for column in zip(*lines, strict=True)] == [said(policy) for policy in POLICIES.values()]


def test_the_flags_are_in_the_code() -> None:
    k = te.reduce_axis(SHAPE[1], "k")
    total = te.compute((8,), lambda i: te.sum(X[i, k] * Y[i, k] - 1.0, axis=k), name="S")
    most = te.compute((8,), lambda i: te.max(X[i, k] / Y[i, k], axis=k), name="M")
    function = te.function("f", [X, Y], [total, most])
    for name, policy in POLICIES.items():
        text = compiler.build(function, policy=name).text("low")
        collected = {
            op: set(re.findall(rf"arith\.{op} .*?(?:fastmath<(.*?)>)? : ", text))
            for op in ("subf", "addf", "maximumf", "divf")
        }
        flags = {"subf": policy.body, "addf": policy.sums, "maximumf": policy.extremes, "divf": ()}
        assert collected == {op: {",".join(listed)} for op, listed in flags.items()}, name
