"""Operators that read a table at indices that a tensor holds: some of the indices are outside."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import (
    INTEGERS,
    NUMBERS,
    Array,
    Operator,
    Parameters,
    extent,
    numpy_dtype,
    random_inputs,
    shape,
)

P = te.placeholder
DTYPES = NUMBERS
INDICES = INTEGERS


def indexed_inputs(function: te.Function, seed: int) -> list[Array]:
    """Random inputs; those named I are indices, of which some are below zero and some too large for most tables."""
    rng = np.random.default_rng(seed)
    collected = []
    for tensor, array in zip(function.inputs, random_inputs(function, seed), strict=True):
        if tensor.name == "I":
            array = np.asarray(rng.integers(-2, 8, tensor.shape)).astype(numpy_dtype(tensor.dtype))
        collected.append(array)
    return collected


def _any(rng: random.Random) -> Parameters:
    return {"index": rng.choice(INDICES), "otherwise": rng.choice([0, 3])}


def _taken(rng: random.Random) -> Parameters:
    table = shape(rng, most=3, elements=100)
    axis = rng.randrange(-len(table), len(table))
    return {"shape": table, "axis": axis, "indices": shape(rng, 0, 2, 8), **_any(rng)}


def _of_axis(name: str) -> Callable[[str, Parameters], te.Function]:
    def build(dtype: str, p: Parameters) -> te.Function:
        x, i = P(p["shape"], dtype, name="X"), P(p["indices"], p["index"], name="I")
        return te.function(name, [x, i], getattr(te.nn, name)(x, i, p["axis"], p["otherwise"]))

    return build


def _gather_reference(p: Parameters, x: Array, i: Array) -> Array:
    axis = p["axis"] % x.ndim
    inside = ((i >= 0) & (i < x.shape[axis])).reshape((*i.shape, *[1] * (x.ndim - axis - 1)))
    return np.where(inside, np.take(x, i, axis, mode="clip"), p["otherwise"])


def _gather_torch(p: Parameters, x: Any, i: Any) -> Any:
    axis = p["axis"] % x.ndim
    inside = ((i >= 0) & (i < x.shape[axis])).reshape((*i.shape, *[1] * (x.ndim - axis - 1)))
    at = i.long().clamp(0, x.shape[axis] - 1)
    actual = x.index_select(axis, at.reshape(-1)).reshape((*x.shape[:axis], *i.shape, *x.shape[axis + 1 :]))
    return actual.where(inside, x.new_tensor(p["otherwise"]))


def _along(rng: random.Random) -> Parameters:
    table = list(shape(rng, most=3, elements=100))
    axis = rng.randrange(-len(table), len(table))
    indices = [1 if rng.random() < 0.2 else n for n in table]
    indices[axis] = extent(rng)
    table = [1 if d != axis % len(table) and rng.random() < 0.1 else n for d, n in enumerate(table)]
    return {"shape": tuple(table), "axis": axis, "indices": tuple(indices), **_any(rng)}


def _take_along_axis_reference(p: Parameters, x: Array, i: Array) -> Array:
    size = x.shape[p["axis"]]
    actual = np.take_along_axis(x, np.clip(i, 0, size - 1), p["axis"])
    return np.where((i >= 0) & (i < size), actual, p["otherwise"])


def _take_along_axis_torch(p: Parameters, x: Any, i: Any) -> Any:
    size = x.shape[p["axis"]]
    actual = x.take_along_dim(i.long().clamp(0, size - 1), p["axis"])
    return actual.where((i >= 0) & (i < size), x.new_tensor(p["otherwise"]))


def _rows(rng: random.Random) -> Parameters:
    return {"shape": (extent(rng), extent(rng, 12)), "indices": shape(rng, 0, 3, 12), **_any(rng)}


def _embedding(dtype: str, p: Parameters) -> te.Function:
    w, i = P(p["shape"], dtype, name="W"), P(p["indices"], p["index"], name="I")
    return te.function("embedding", [i, w], te.nn.embedding(i, w, p["otherwise"]))


def _embedding_reference(p: Parameters, i: Array, w: Array) -> Array:
    return _gather_reference({**p, "axis": 0}, w, i)


def _embedding_torch(p: Parameters, i: Any, w: Any) -> Any:
    from torch.nn import functional

    actual = functional.embedding(i.long().clamp(0, w.shape[0] - 1), w)
    return actual.where(((i >= 0) & (i < w.shape[0]))[..., None], w.new_tensor(p["otherwise"]))


FAMILY = (
    Operator("gather", DTYPES, _taken, _of_axis("gather"), _gather_reference, _gather_torch, indexed_inputs),
    Operator(
        "take_along_axis",
        DTYPES,
        _along,
        _of_axis("take_along_axis"),
        _take_along_axis_reference,
        _take_along_axis_torch,
        indexed_inputs,
    ),
    Operator("embedding", DTYPES, _rows, _embedding, _embedding_reference, _embedding_torch, indexed_inputs),
)
