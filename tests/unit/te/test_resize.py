"""resize of elements that are not mixed, places on no line, refusals; attention without anything to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.support.errors import TeError
from compiler.te.nn.interpolation import Resizing, fit_windows
from tests.operator_runs import compiled, sample
from tests.operators.resizing import NEAREST
from tests.sample import some

X = te.placeholder((1, 1, 5, 4), name="X")


@pytest.mark.parametrize("number", some(range(10)))
def test_nearest_elements(number: int) -> None:
    s = sample(NEAREST, "i64" if number % 2 else "f32", number)
    np.testing.assert_array_equal(compiled(s)[0], s.reference[0])


def test_windows_hold_what_they_must() -> None:
    resizing = Resizing(7, 5, 0.7, "nearest", "half_pixel", "floor", -0.75, False, False, (0.0, 1.0))
    first, last = [0, 3, 1, 6, 2], [1, 3, 2, 6, 4]
    actual = fit_windows(first, last, resizing.slopes)
    for i, (low, high) in enumerate(zip(first, last, strict=True)):
        assert actual.start(i) <= low <= high < actual.start(i) + actual.length


def test_a_whole_factor_needs_no_table() -> None:
    text = str(te.function("f", [X], te.nn.resize(X, scales=(1.0, 1.0, 2.0, 2.0), coordinates="asymmetric")))
    assert "te.constant" not in text
    assert text.count("te.compute") == 1


def test_a_row_that_sees_nothing_gives_zero() -> None:
    q, mask = te.placeholder((1, 2, 3), name="Q"), te.placeholder((2, 2), "i1", name="M")
    kernel = compiler.build(te.function("f", [q, mask], te.nn.attention(q, q, q, mask)))
    values = np.ones((1, 2, 3), np.float32)
    np.testing.assert_allclose(kernel(values, np.array([[False, False], [True, False]])), [[[0] * 3, [1] * 3]])


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: te.nn.resize(X), "neither sizes nor scales are given"),
    "count": (lambda: te.nn.resize(X, (2, 2)), "not one for each of 4 axes"),
    "size": (lambda: te.nn.resize(X, (1, 1, 0, 2)), "not all from 1"),
    "scale": (lambda: te.nn.resize(X, scales=(1.0, 1.0, 0.1, 1.0)), "not all from 1"),
    "mode": (lambda: te.nn.resize(X, (1, 1, 2, 2), mode="area"), "unknown mode 'area'"),
    "region": (lambda: te.nn.resize(X, (1, 1, 2, 2), roi=(0, 1)), "has not a start and an end for each of 4 axes"),
    "steps": (
        lambda: te.nn.rnn(te.placeholder((600, 1, 1)), te.placeholder((1, 1)), te.placeholder((1, 1))),
        "up to 512 are unrolled",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, said = REFUSED[name]
    with pytest.raises(TeError, match=said):
        call()
