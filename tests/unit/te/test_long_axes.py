"""Scans and selections along axes too long for comparing each place with each; refusals beyond; options of gathers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.support.errors import TeError

Array = np.ndarray[Any, Any]


def run(build: Callable[..., Any], *arrays: Array) -> Any:
    """What an operator gives of arrays."""
    dtypes = {"float32": "f32", "int64": "i64", "int32": "i32"}
    inputs = [te.placeholder(a.shape, dtypes[a.dtype.name], f"X{n}") for n, a in enumerate(arrays)]
    made = build(*inputs)
    return compiler.build(te.function("f", inputs, list(made) if isinstance(made, tuple) else made))(*arrays)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_in_blocks(exclusive: bool, reverse: bool) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (2, 301, 2))
    checked = run(lambda t: te.nn.cumsum(t, 1, exclusive, reverse), x)
    own = np.flip(x, 1) if reverse else x
    want = own.cumsum(1) - (own if exclusive else 0)
    np.testing.assert_array_equal(checked, np.flip(want, 1) if reverse else want)


@pytest.mark.parametrize("largest", [False, True])
def test_a_selection_one_after_another(largest: bool) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-300, 300, (2, 2100)).astype(np.float32)
    x[0, 7], x[1, 5], x[1, 6] = np.nan, np.inf, -np.inf
    values, places = run(lambda t: te.nn.topk(t, 4, -1, largest), x)
    key = np.where(np.isnan(x), np.inf, x) if not largest else np.where(np.isnan(x), -np.inf, -x)
    key[0, 7] += 0 if largest else 1
    want = np.argsort(key, axis=-1, kind="stable")[:, :4]
    np.testing.assert_array_equal(places, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, -1))


def test_nan_is_the_greatest() -> None:
    x = np.array([[2, np.nan, 1, np.inf, np.nan]], np.float32)
    np.testing.assert_array_equal(run(lambda t: te.nn.topk(t, 3), x)[1], [[1, 4, 3]])
    np.testing.assert_array_equal(run(lambda t: te.nn.sort(t), x)[1], [[2, 0, 3, 1, 4]])


def test_indices_that_wrap() -> None:
    x, at = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([[-1, 0], [2, -3]])
    np.testing.assert_array_equal(run(lambda t, i: te.nn.gather(t, i, 0, wrap=True), x, at), x[at])
    checked = run(lambda t, i: te.nn.take_along_axis(t, i, 0, wrap=True), x, np.array([[-1, 1, -2, 0]]))
    np.testing.assert_array_equal(checked, [[8, 5, 6, 3]])


def test_a_reduction_over_no_axis() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    np.testing.assert_array_equal(run(lambda t: te.nn.mean(t, ()), x), x)
    np.testing.assert_array_equal(run(lambda t: te.nn.norm(t, 2, ()), x), abs(x))


LONG = te.placeholder((70000,), name="L")
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "scan": (lambda: te.nn.cumsum(LONG), "axis 0 of 'L' has 70000 elements; up to 65536 are scanned"),
    "top": (lambda: te.nn.topk(LONG, 40), "40 of 70000 elements along axis 0 of 'L' would need a sort"),
    "sort": (lambda: te.nn.sort(LONG), "up to 2048 are sorted"),
    "cut": (lambda: te.nn.pad(te.placeholder((3,), name="X"), [(-2, -1)]), "leave nothing of dimension 0"),
    "mode": (lambda: te.nn.pad(LONG, [(1, 1)], mode="mirror"), "unknown mode 'mirror'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, said = REFUSED[name]
    with pytest.raises(TeError, match=said):
        call()
