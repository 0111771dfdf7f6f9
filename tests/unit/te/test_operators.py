"""Python's operators of whole tensors: what numpy computes, and what te.nn names."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compiler import te
from compiler.interpret.te import evaluate

FLOATS, INTEGERS, TRUTHS = "f32", "i32", "i1"
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge)
BITS = (operator.and_, operator.or_, operator.xor)
CASES = (
    *((f, FLOATS) for f in (*ARITHMETIC, operator.truediv, operator.pow, *COMPARISONS)),
    *((f, INTEGERS) for f in (*ARITHMETIC, *BITS, operator.lshift, operator.rshift, *COMPARISONS)),
    *((f, TRUTHS) for f in BITS),
)


def _drawn(shape: tuple[int, ...], dtype: str) -> Any:
    values = np.random.default_rng(len(shape)).uniform(1.1, 3.4, shape)
    return values > 2 if dtype == TRUTHS else values.astype({FLOATS: np.float32, INTEGERS: np.int32}[dtype])


def _computed(build: Callable[..., Any], *arrays: Any, dtype: str = FLOATS) -> Any:
    tensors = [te.placeholder(array.shape, dtype, f"x{n}") for n, array in enumerate(arrays)]
    return evaluate(te.function("f", tensors, build(*tensors)).module, list(arrays))[0]


@pytest.mark.parametrize(("function", "dtype"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_operators_are_those_of_numpy(function: Callable[[Any, Any], Any], dtype: str) -> None:
    number: Any = {FLOATS: 1.5, INTEGERS: 2, TRUTHS: True}[dtype]
    a, b = _drawn((3, 1, 4), dtype), _drawn((2, 1), dtype)
    for build, arrays in (
        (function, (a, b)),
        (lambda x: function(x, number), (a,)),
        (lambda x: function(number, x), (a,)),
        (lambda x: function(x, np.asarray(number)[()]), (a,)),
    ):
        actual, expected = _computed(build, *arrays, dtype=dtype), build(*arrays)
        assert actual.dtype == (np.bool_ if function in COMPARISONS else a.dtype)
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("function", (operator.neg, operator.abs, lambda x: x**2, lambda x: 2.0**x, lambda x: 1 - x))
def test_operators_of_one_tensor(function: Callable[[Any], Any]) -> None:
    x = _drawn((3, 4), FLOATS) - 2
    np.testing.assert_allclose(_computed(function, x), function(x), rtol=1e-6)


@pytest.mark.parametrize(
    "shapes",
    (
        ((3, 4), (4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (2, 4, 5)),
    ),
)
def test_matrix_products_are_those_of_numpy(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (_drawn(shape, FLOATS) for shape in shapes)
    np.testing.assert_allclose(_computed(operator.matmul, a, b), a @ b, rtol=1e-5)


def test_a_bias_is_added_along_the_channels() -> None:
    image, bias = _drawn((2, 3, 4, 5), FLOATS), _drawn((3,), FLOATS)
    actual = _computed(lambda x, b: x + te.nn.reshape(b, (3, 1, 1)), image, bias)
    np.testing.assert_array_equal(actual, image + bias[:, None, None])


def test_tensors_are_compared_and_hashed_as_objects() -> None:
    first, second = (te.placeholder((2,), name="A") for _ in range(2))
    assert first != second
    assert first in [second, first]
    assert {first: 1, second: 2}[first] == 1
