"""Functions and operators are within their bounds, and right at every special point; lanes are scalars."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.lowering.low_to_llvm import emit
from compiler.passes.expand_math import EXACT_OPS, EXPANSIONS, LIBRARY_EXPANSIONS
from compiler.targets.cpu.load import load
from compiler.types.machines import host
from compiler.universe import context
from strata.passes import parse, parse_passes, run
from tests import math_table
from tests.math_accuracy import (
    CHUNK,
    DTYPES,
    chunks,
    errors,
    every,
    kernel,
    of_onnx,
    of_torch,
    samples,
    special,
    text,
    usable,
    worst,
)
from tests.math_rows import FUNCTIONS, OPERATORS, ROWS
from tests.operators.elementwise import UNARY
from tests.sample import all_asked, some

COUNT = 1 << 19 if all_asked() else 1 << 17
STRIDE = 8191 if all_asked() else 32749
"""A prime: one f32 of so many is tried."""

BOTH = pytest.mark.parametrize("dtype", DTYPES)
EACH = pytest.mark.parametrize("name", FUNCTIONS)


def inputs(name: str, dtype: str) -> Iterator[Any]:
    yield from samples(name, dtype, COUNT if dtype == "f32" else COUNT // 8)
    if dtype == "f32":
        yield from every(STRIDE)


@pytest.mark.sampled
@BOTH
@EACH
def test_errors_are_within_the_bounds(name: str, dtype: str) -> None:
    actual = worst(name, dtype, kernel(name, dtype, 16 if dtype == "f32" else 8), inputs(name, dtype))
    assert actual.error <= FUNCTIONS[name].bound(dtype), str(actual)
    assert actual.error > 0.5, "no rounding at all: nothing was measured"


WAYS: dict[str, Callable[[str, str], Any]] = {
    "te": lambda name, dtype: kernel(name, dtype, None),
    "torch": of_torch,
    "onnx": of_onnx,
}


def ways() -> Iterator[tuple[str, str]]:
    """Operators, and the rooms that have them."""
    for name, row in OPERATORS.items():
        rooms = {"te": row.body is not None, "torch": bool(row.torch), "onnx": row.onnx is not None}
        yield from ((name, way) for way, present in rooms.items() if present)


@pytest.mark.sampled
@BOTH
@pytest.mark.parametrize(
    ("name", "way"), [pytest.param(*each, marks=[pytest.mark.doors][: each[1] != "te"]) for each in some(ways(), 2)]
)
def test_operators_are_within_their_bounds(name: str, way: str, dtype: str) -> None:
    actual = worst(name, dtype, WAYS[way](name, dtype), samples(name, dtype, CHUNK))
    assert actual.error <= OPERATORS[name].bound(dtype), str(actual)
    assert actual.error >= 0.45, "no rounding at all: nothing was measured"


UNROUNDED = (
    "abs",
    "bitwise_not",
    "ceil",
    "floor",
    "isinf",
    "isnan",
    "neg",
    "relu",
    "round",
    "sign",
    "threshold",
    "trunc",
)
ROUNDED_ONCE = ("leaky_relu", "sqrt", "square")


def test_every_operator_of_one_tensor_is_in_the_table() -> None:
    assert set(UNARY) - {*UNROUNDED, *ROUNDED_ONCE} <= set(ROWS)


@pytest.mark.sampled
@BOTH
@EACH
def test_a_lane_has_the_bits_of_a_scalar(name: str, dtype: str) -> None:
    """In loops that LLVM vectorizes as it likes, and in vectors of a length that no register has."""
    kernels = [kernel(name, dtype, lanes) for lanes in (None, 2, 8, 16)]
    for x in samples(name, dtype, CHUNK, seed=1):
        first, *others = [k(x) for k in kernels]
        for second in others:
            np.testing.assert_array_equal(
                first.view(f"u{first.itemsize}")[~np.isnan(first)], second.view(f"u{first.itemsize}")[~np.isnan(first)]
            )
            assert np.isnan(second[np.isnan(first)]).all()


@pytest.mark.sampled
@BOTH
@EACH
def test_odd_lengths_and_single_scalars(name: str, dtype: str) -> None:
    x = usable(name, special(name, dtype))
    for lanes in (None, 1, 3):
        in_vectors = len(x) - len(x) % (lanes or 1)
        y = compiler.build(text(FUNCTIONS[name], dtype, lanes, len(x)))(x)[:in_vectors]
        assert errors(name, dtype, x[:in_vectors], y).max() <= FUNCTIONS[name].bound(dtype)


@BOTH
@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "tanh", "erf", "erfc", "sigmoid"])
def test_machines_without_avx512_scale_by_multiplying(name: str, dtype: str) -> None:
    """What another machine is given, run on this one: the same bits."""
    ctx, machine = context(), dataclasses.replace(host(), vector_bits=256)
    module = parse(text(FUNCTIONS[name], dtype, 4))
    run(ctx, module, parse_passes("low-to-cpu"))
    written = emit(module, machine)
    assert "ldexp" not in written
    assert ("ashr" in written) == (name not in ("tanh", "erf")), (
        "two halves where results may be subnormal, and only there"
    )
    second, ours = load(module, machine), kernel(name, dtype, 4)
    for x in samples(name, dtype, CHUNK):
        np.testing.assert_array_equal(second(x), ours(x))


SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(0, 1), (-0.0, 1), (np.inf, np.inf), (-np.inf, 0), (1e30, np.inf), (-1e30, 0)],
    "expm1": [(0, 0), (-0.0, -0.0), (np.inf, np.inf), (-np.inf, -1), (1e-45, 1e-45)],
    "log": [(0, -np.inf), (-0.0, -np.inf), (1, 0), (np.inf, np.inf), (-1, np.nan), (-np.inf, np.nan)],
    "log1p": [(0, 0), (-0.0, -0.0), (-1, -np.inf), (-2, np.nan), (np.inf, np.inf), (1e-45, 1e-45)],
    "log2": [(8, 3), (0.5, -1), (2.0**-149, -149)],
    "tanh": [(0, 0), (-0.0, -0.0), (np.inf, 1), (-np.inf, -1), (1e-45, 1e-45)],
    "erf": [(0, 0), (-0.0, -0.0), (np.inf, 1), (-np.inf, -1), (10, 1)],
    "erfc": [(0, 1), (-0.0, 1), (np.inf, 0), (-np.inf, 2), (28, 0), (-10, 2)],
    "sin": [(0, 0), (-0.0, -0.0), (np.inf, np.nan), (-np.inf, np.nan), (-1e-45, -1e-45)],
    "cos": [(0, 1), (-0.0, 1), (np.inf, np.nan), (1e-45, 1)],
    "sigmoid": [(0, 0.5), (np.inf, 1), (-np.inf, 0)],
}


@BOTH
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, dtype: str) -> None:
    pairs = [*SPECIAL[name], (np.nan, np.nan)]
    given, expected = (np.array(values, DTYPES[dtype]) for values in zip(*pairs, strict=True))
    for lanes in (None, len(pairs)):
        actual = compiler.build(text(FUNCTIONS[name], dtype, lanes, len(pairs)))(given)
        np.testing.assert_array_equal(actual, expected)
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]))


def test_a_wrong_result_is_seen() -> None:
    """The measure itself: one unit off, a sign lost, an infinity or NaN missed."""
    x = np.array([1.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    right = np.tanh(x)
    assert errors("tanh", "f32", x, right).max() <= 0.5
    for place, wrong in enumerate([np.nextafter(right[0], np.float32(0)), 0.0, np.nan, -np.inf, 1.0]):
        y = right.copy()
        y[place] = wrong
        assert errors("tanh", "f32", x, y)[place] > 0.5
    assert errors("exp", "f32", np.array([100, -200], np.float32), np.array([3e38, 1e-45], np.float32)).min() == np.inf


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "erfc", "log"])
def test_unscheduled_loops_are_vectorized_by_llvm(name: str) -> None:
    a = te.placeholder((4096,), name="A")
    function = te.function("f", [a], [getattr(te.nn, name)(a)])
    expanded, called = (compiler.build(function, policy=policy).text("asm") for policy in ("contract", "strict"))
    body = expanded.split("f.body:")[1]
    assert "call" not in body and any(register in body for register in ("zmm", "ymm", "xmm", "v0.4s"))
    assert name in called.split("f.body:")[1], "strict calls the C library"


def test_strict_expands_nothing() -> None:
    x = np.random.default_rng(0).uniform(-5, 5, CHUNK).astype(np.float32)
    strict, contract = (kernel("exp", "f32", 16, policy) for policy in ("strict", "contract"))
    assert "@llvm.exp" in strict.text("llvm") and "@llvm.exp" not in contract.text("llvm")
    assert "@llvm.fma" not in strict.text("llvm")
    np.testing.assert_array_max_ulp(strict(x), contract(x), 2)


def test_fast_keeps_the_bounds() -> None:
    """The expansion takes over no flags, so that `fast` cannot reassociate it."""
    for name in ("exp", "tanh", "erf"):
        a = te.placeholder((CHUNK,), name="A")
        function = te.function("f", [a], [getattr(te.nn, name)(a)])
        x = next(samples(name, "f32", 0))
        fast, contract = (compiler.build(function, policy=policy)(x) for policy in ("fast", "contract"))
        finite = np.isfinite(contract)
        np.testing.assert_array_equal(fast[finite], contract[finite])


def test_large_angles_go_to_the_library_lane_by_lane() -> None:
    x = np.array([1e300, 1.0, np.inf, -(2.0**40)] + [0.25] * 4)
    both = compiler.build(text(FUNCTIONS["sin"], "f64", 8, 8))
    assert "sin" in both.text("asm")
    np.testing.assert_array_max_ulp(both(x), np.sin(x.astype(np.longdouble)).astype(np.float64), 2)
    small = np.where(np.abs(x) > 1e9, 0.5, x)
    np.testing.assert_array_equal(both(small)[4:], both(x)[4:])


def test_every_expansion_is_in_the_table() -> None:
    names = {kind.name.removeprefix("math.") for kind in (*EXPANSIONS, *LIBRARY_EXPANSIONS) if kind not in EXACT_OPS}
    assert names <= set(FUNCTIONS)


def test_the_document_is_what_the_generator_gives() -> None:
    written = math_table.PAGE.read_text()
    rows = math_table.rows_of(written)
    assert [(row.name, row.dtype) for row in rows] == [(name, dtype) for name in ROWS for dtype in DTYPES]
    assert math_table.page(rows) == written, "run python -m tests.math_table"
    assert all(0.45 <= row.measured <= row.bound for row in rows)


def test_the_generator_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert math_table.main(["--stride", "100003", "exp2"]) == 0
    assert "exp2     f32  0." in capsys.readouterr().out


def test_chunks_fill_up() -> None:
    (chunk,) = chunks(np.zeros(3, np.float32))
    assert len(chunk) == CHUNK and chunk.sum() == CHUNK - 3
