"""Means and variances of elements whose mean is large beside their spread, and of those that are nearly infinite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import compiler
from compiler import te
from tests.sample import some

Array = NDArray[np.float64]
SHAPE = (4, 6, 300)


def _standard(x: Array, along: tuple[int, ...]) -> Array:
    return (x - x.mean(along, keepdims=True)) / np.sqrt(x.var(along, keepdims=True) + 1e-5)


def _grouped(x: Array) -> Array:
    return _standard(x.reshape(4, 2, 3, 300), (2, 3)).reshape(SHAPE)


OPERATORS: dict[str, tuple[Callable[[te.Tensor], te.Tensor], Callable[[Array], Array]]] = {
    "layer_norm": (te.nn.layer_norm, lambda x: _standard(x, (2,))),
    "layer_norm of two axes": (lambda x: te.nn.layer_norm(x, axis=(1, 2)), lambda x: _standard(x, (1, 2))),
    "instance_norm": (te.nn.instance_norm, lambda x: _standard(x, (2,))),
    "group_norm": (lambda x: te.nn.group_norm(x, 2), _grouped),
    "batch_norm_training": (lambda x: te.nn.batch_norm_training(x)[0], lambda x: _standard(x, (0, 2))),
    "var": (lambda x: te.nn.var(x, 2), lambda x: x.var(2, ddof=1)),
    "std": (lambda x: te.nn.std(x, (0, 2)), lambda x: x.std((0, 2), ddof=1)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", some(OPERATORS, 2))
def test_a_large_mean_costs_no_digits(name: str, threads: int) -> None:
    """Errors of sums of the elements themselves are 1e-4 at a mean of 1e3."""
    build, reference = OPERATORS[name]
    noise, source = np.random.default_rng(0).standard_normal(SHAPE), te.placeholder(SHAPE, name="X")
    for schedule in ("written", "auto"):
        kernel = compiler.build(te.function("f", [source], build(source)), threads=threads, schedule=schedule)
        for mean in (0, 1e3, 1e4):
            x = (noise + mean).astype(np.float32)
            np.testing.assert_allclose(kernel(x), reference(x.astype(np.float64)), rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize("row", [[np.inf, 1, 2, 3], [1, np.nan, 2, 3], [3e38, 1, 2, 3], [-3e38, 3e38, 1, 0]])
def test_a_first_element_that_is_hardly_finite(row: list[float]) -> None:
    """The results are those of sums of the elements themselves."""
    x = np.array([row], np.float32)
    source = te.placeholder(x.shape, name="X")
    kernel = compiler.build(te.function("f", [source], te.nn.layer_norm(source)), schedule="auto")
    with np.errstate(all="ignore"):
        centred = x - x.mean(-1, keepdims=True)
        expected = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))
    np.testing.assert_array_equal(kernel(x), expected)
