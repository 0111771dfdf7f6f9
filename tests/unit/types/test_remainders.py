"""Quotients and remainders: of floats exact, to the bit what numpy gives; of integers defined for every divisor."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import compiler
from compiler import te
from compiler.interpret import te as evaluator
from compiler.support.errors import TeError
from compiler.types.dtypes import DTYPES, INDICES

Array = np.ndarray[Any, Any]
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
SPECIAL = (0.0, 1.0, 0.1, 3.0, 5.3, 6.0, 1e4, 1e10, 1e20, 1e300, 6e-8, 1e-38, 1e-40, 5e-324, np.inf, np.nan)
NUMPY: dict[str, Callable[..., Array]] = {"fmod": np.fmod, "remainder": np.remainder, "quotient": np.floor_divide}


def operands(dtype: Any) -> tuple[Array, Array]:
    """All pairs of special numbers, random bits, and dividends next to multiples of their divisors."""
    rng, bits = np.random.default_rng(0), np.dtype(f"u{np.dtype(dtype).itemsize}")
    with np.errstate(all="ignore"):
        special = np.array([sign * value for value in SPECIAL for sign in (1, -1)]).astype(dtype)
        left, right = (grid.ravel() for grid in np.meshgrid(special, special))
        random = rng.integers(0, np.iinfo(bits).max, (2, 3000), bits, endpoint=True).view(dtype)
        divisor = rng.standard_normal(3000).astype(dtype)
        multiple = (divisor.astype(np.float64) * rng.integers(1, 1 << 20, 3000)).astype(dtype)
    return np.concatenate([left, random[0], multiple]), np.concatenate([right, random[1], divisor])


def program(dtype: str, count: int) -> te.Function:
    a, b = te.placeholder((count,), dtype, "A"), te.placeholder((count,), dtype, "B")
    parts = (lambda i: te.fmod(a[i], b[i]), lambda i: a[i] % b[i], lambda i: a[i] // b[i])
    outputs = [te.compute((count,), part, name) for name, part in zip(NUMPY, parts, strict=True)]
    return te.function("division", [a, b], outputs)


def check(dtype: str, run: Callable[[te.Function, Array, Array], Any]) -> None:
    a, b = operands(FLOATS[dtype])
    wide = a.dtype if a.dtype.itemsize > 2 else np.dtype(np.float32)
    for (name, wanted), got in zip(NUMPY.items(), run(program(dtype, len(a)), a, b), strict=True):
        with np.errstate(all="ignore"):
            exact = wanted(a.astype(wide), b.astype(wide)).astype(a.dtype)
        bits = f"u{a.dtype.itemsize}"
        equal = (got.view(bits) == exact.view(bits)) | (np.isnan(got) & np.isnan(exact))
        first = np.flatnonzero(~equal)[:1]
        assert equal.all(), (name, a[first], b[first], got[first], exact[first])


@pytest.mark.sampled
@pytest.mark.parametrize("policy", ["strict", "contract", "fast"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_to_the_bit(dtype: str, policy: str) -> None:
    check(dtype, lambda function, a, b: compiler.build(function, policy=policy)(a, b))


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="named machines are of x86-64")
@pytest.mark.parametrize("machine", ["sse4", "avx2"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_on_machines(dtype: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_MACHINE", machine)
    check(dtype, lambda function, a, b: compiler.build(function)(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_evaluated(dtype: str) -> None:
    check(dtype, lambda function, a, b: evaluator.evaluate(function.module, [a, b]))


@pytest.mark.parametrize("schedule", ["written", "auto"])
def test_remainders_and_loops_of_any_length(schedule: str) -> None:
    for count in (1, 7, 33):
        a, b = (operand[:count] for operand in operands(np.float32))
        fmod, mod, _ = compiler.build(program("f32", count), schedule=schedule)(a, b)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(fmod, np.fmod(a, b))
            np.testing.assert_array_equal(mod, np.remainder(a, b))


def test_kernels_of_gpus_call_the_library() -> None:
    text = compiler.build(program("f32", 64), "cuda").text
    assert "fmodf(" in text


def test_numbers_and_refusals() -> None:
    x = te.placeholder((3,), name="X")
    function = te.function("f", [x], [te.nn.remainder(x, 0.1), te.compute((3,), lambda i: 7.0 // x[i])])
    left = np.float32([1.0, 0.3, -0.1])
    mod, floordiv = compiler.build(function)(left)
    np.testing.assert_array_equal(mod, np.remainder(left, np.float32(0.1)))
    np.testing.assert_array_equal(floordiv, np.floor_divide(np.float32(7), left))
    with pytest.raises(TeError, match=r"use te\.fmod"):
        te.compute((3,), lambda i: te.truncmod(x[i], 2.0))


def extremes(dtype: str) -> tuple[Array, Array]:
    """All pairs of numbers about zero and about the limits."""
    low, high = DTYPES[dtype].limits
    numbers = [n for n in (low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, high - 1, high) if n >= low]
    left, right = np.meshgrid(*[np.array(numbers, DTYPES[dtype].numpy)] * 2)
    return left.ravel(), right.ravel()


def quotients(a: int, b: int) -> tuple[int, int, int, int]:
    """Rounded down with its rest, then towards zero; 0 by zero."""
    if b == 0:
        return 0, 0, 0, 0
    truncated = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
    return a // b, a % b, truncated, a - truncated * b


def power(base: int, exponent: int, modulus: int) -> int:
    """The power modulo another number; 1 / base, truncated, to exponents below zero."""
    if exponent >= 0:
        return pow(base, exponent, modulus)
    return base ** (-exponent % 2) if abs(base) == 1 else 0


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", INDICES)
def test_integers_by_every_divisor(dtype: str) -> None:
    a, b = extremes(dtype)
    x, y = te.placeholder(a.shape, dtype, "X"), te.placeholder(a.shape, dtype, "Y")
    nn = te.nn
    outputs = [nn.floor_divide(x, y), nn.remainder(x, y), nn.trunc_divide(x, y), nn.fmod(x, y)]
    outputs += [nn.remainder(x, 0), nn.pow(x, y)]
    function = te.function("f", [x, y], outputs)
    bits = a.dtype.itemsize * 8
    pairs = [(int(m), int(n)) for m, n in zip(a, b, strict=True)]
    rows = [(*quotients(m, n), 0, power(m, n, 2**bits)) for m, n in pairs]
    for way in (lambda: compiler.build(function)(a, b), lambda: evaluator.evaluate(function.module, [a, b])):
        with np.errstate(all="ignore"):
            results = way()
        for wanted, got in zip(zip(*rows, strict=True), results, strict=True):
            wrapped = np.array([n % 2**bits for n in wanted], np.uint64).astype(f"u{bits // 8}").view(a.dtype)
            np.testing.assert_array_equal(got, wrapped)
