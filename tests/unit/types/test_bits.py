"""Bits, shifts and powers of integers of every width, on whole ranges: as numpy, and defined for every count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.interpret import te as evaluator
from compiler.support.errors import TeError
from compiler.types.dtypes import DTYPES, INDICES

Array = np.ndarray[Any, Any]
COUNT = 200


def program(dtype: str) -> te.Function:
    a, b = te.placeholder((COUNT,), dtype, "A"), te.placeholder((COUNT,), dtype, "B")
    nn = te.nn
    outputs = [nn.bitwise_and(a, b), nn.bitwise_or(a, b), nn.bitwise_xor(a, b), nn.bitwise_not(a)]
    outputs += [nn.left_shift(a, b), nn.right_shift(a, b), nn.pow(a, 5), nn.trunc_divide(a, b), nn.fmod(a, b)]
    return te.function("bits", [a, b], outputs)


def operands(dtype: str) -> tuple[Array, Array]:
    """Values of the whole range, and small counts with some far beyond the width, or below 0."""
    rng, kind, (low, high) = np.random.default_rng(0), np.dtype(DTYPES[dtype].numpy), DTYPES[dtype].limits
    values = rng.integers(low, high, COUNT, kind, endpoint=True)
    counts = rng.integers(max(low, -3), min(high, 2 * DTYPES[dtype].bits), COUNT, kind, endpoint=True)
    return values, np.where(counts == 0, 1, counts).astype(kind)


def expected(a: Array, b: Array) -> list[Array]:
    """What integers without end give, wrapped."""
    bits, kind = a.dtype.itemsize * 8, a.dtype
    pairs = [(int(x), int(n)) for x, n in zip(a, b, strict=True)]

    def wrapped(values: list[int]) -> Array:
        return np.array([v % 2**bits for v in values], np.uint64).astype(f"u{bits // 8}").view(kind)

    left = wrapped([x << n if 0 <= n < bits else 0 for x, n in pairs])
    right = wrapped([x >> (n if 0 <= n < bits else bits) for x, n in pairs])
    power = wrapped([x**5 for x, _ in pairs])
    quotients = [abs(x) // abs(n) * (-1 if (x < 0) != (n < 0) else 1) for x, n in pairs]
    rests = [x - q * n for q, (x, n) in zip(quotients, pairs, strict=True)]
    return [a & b, a | b, a ^ b, ~a, left, right, power, wrapped(quotients), wrapped(rests)]


@pytest.mark.parametrize("dtype", INDICES)
def test_every_width(dtype: str) -> None:
    function, (a, b) = program(dtype), operands(dtype)
    compiled = compiler.build(function)(a, b)
    evaluated = evaluator.evaluate(function.module, [a, b])
    for want, got, right in zip(expected(a, b), compiled, evaluated, strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(right, want)


def test_a_number_within_the_width_needs_no_guard() -> None:
    x = te.placeholder((4,), "i32", "X")
    text = str(te.function("f", [x], te.nn.left_shift(x, 3)))
    assert "arith.shli" in text
    assert "select" not in text


def test_kernels_of_gpus_have_them() -> None:
    text = compiler.build(program("u16"), "cuda").text
    assert "<<" in text
    assert ">>" in text


@pytest.mark.parametrize("name", ["bitwise_and", "left_shift"])
def test_floats_have_no_bits(name: str) -> None:
    x = te.placeholder((4,), name="X")
    with pytest.raises(TeError, match="integers"):
        getattr(te.nn, name)(x, x)
