"""Inputs that find what random ones do not: extreme integers, indices outside, NaN, infinities, near overflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from compiler import te
from compiler.dialects.numbers import is_float
from tests.operators.catalogue import Operator, numpy_dtype

Array = np.ndarray[Any, Any]
Fill = Callable[[np.random.Generator, "np.dtype[Any]", tuple[int, ...], Array], Array]


def _near_overflow(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], plain: Array) -> Array:
    """Numbers whose exponentials are too large, or too small, for single precision; integers next to their limits."""
    if is_float(dtype):
        signs = rng.choice([-1, 1], (*shape[:-1], 1) if shape else ())
        return np.asarray(rng.uniform(88.5, 100.0, shape) * signs).astype(dtype)
    low, high = _limits(dtype)
    return rng.choice(np.array([low, low + 1, high - 1, high], dtype), shape)


def _sprinkled(numbers: list[float]) -> Fill:
    def fill(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], plain: Array) -> Array:
        """The random numbers, some of which are special; of integers limits and what lies about zero."""
        low, high = _limits(dtype)
        special = numbers if is_float(dtype) else [low, high, -1 if low < 0 else high // 2, 0, 1]
        chosen = np.array(special, np.float64 if is_float(dtype) else dtype).astype(dtype)
        return np.where(rng.random(shape) < 0.15, rng.choice(chosen, shape), plain).astype(dtype)

    return fill


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype.kind == "b" or is_float(dtype):
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


KINDS: Mapping[str, Fill] = {
    "random": lambda rng, dtype, shape, plain: plain,
    "near overflow": _near_overflow,
    "infinities and zeros": _sprinkled([np.inf, -np.inf, 0.0, -0.0]),
    "NaN": _sprinkled([np.nan, 0.0, -1.0]),
    "tiny": _sprinkled([1e-40, -1e-40, 1e-7, -1e-7, 0.0, -0.0]),
}
"""Ways to fill an array, given what the operator would have."""


def arrays(operator: Operator, function: te.Function, kind: str, seed: int = 0) -> list[Array]:
    """Inputs of a kind for an operator's function."""
    rng = np.random.default_rng(seed)
    plain = operator.inputs(function, seed)
    shapes = [(tensor.shape, numpy_dtype(tensor.dtype)) for tensor in function.inputs]
    return [KINDS[kind](rng, dtype, shape, array) for (shape, dtype), array in zip(shapes, plain, strict=True)]
