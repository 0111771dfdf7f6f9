"""Order, scans, norms and truth along axes."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np

from tests.operators.catalogue import (
    EVERY,
    FLOATS,
    NUMBERS,
    Array,
    Operator,
    Parameters,
    of_one_by_name,
    one_axis,
    shape,
)


def _axes(rng: random.Random) -> Parameters:
    extents = shape(rng)
    axes = tuple(rng.sample(range(len(extents)), rng.randint(0, len(extents))))
    return {"x": extents, "axis": rng.choice([axes, axes, None]), "keepdims": rng.random() < 0.5}


def _best(rng: random.Random) -> Parameters:
    p = one_axis(rng)
    return {**p, "k": rng.randint(1, p["x"][p["axis"]]), "largest": rng.random() < 0.6}


def _ordered(p: Parameters, x: Array, count: int, descending: bool) -> tuple[Array, Array]:
    places = np.argsort(-x if descending else x, axis=p["axis"], kind="stable").take(range(count), p["axis"])
    return np.take_along_axis(x, places, p["axis"]), places


def _scanned(rng: random.Random) -> Parameters:
    return {**one_axis(rng), "exclusive": rng.random() < 0.4, "reverse": rng.random() < 0.4}


def _scan(function: Any, p: Parameters, x: Array) -> Array:
    axis = p["axis"] % x.ndim
    x = np.flip(x, axis) if p["reverse"] else x
    actual = function(x, axis)
    if p["exclusive"]:
        start = np.full_like(actual.take([0], axis), 1 if function is np.cumprod else 0)
        actual = np.concatenate([start, actual.take(range(x.shape[axis] - 1), axis)], axis)
    return np.flip(actual, axis) if p["reverse"] else actual


def _scan_torch(name: str, p: Parameters, x: Any) -> Any:
    import torch

    if p["exclusive"]:
        raise NotImplementedError("torch has no exclusive scan")
    return (
        getattr(torch, name)(x.flip(p["axis"]), p["axis"]).flip(p["axis"])
        if p["reverse"]
        else getattr(torch, name)(x, p["axis"])
    )


def _every(p: Parameters, x: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if p["axis"] is None else tuple(p["axis"])


def _norm(p: Parameters, x: Array) -> Array:
    axes, size = _every(p, x), np.abs(x)
    if np.isinf(p["p"]):
        return (np.max if p["p"] > 0 else np.min)(size, axis=axes, keepdims=p["keepdims"])
    powered = (size != 0) * 1.0 if p["p"] == 0 else size ** p["p"]
    total = powered.sum(axes, keepdims=p["keepdims"])
    return total if p["p"] == 0 else total ** (1 / p["p"])


def _spread(root: bool, p: Parameters, x: Array) -> Array:
    axes = _every(p, x)
    count = np.prod([x.shape[d] for d in axes])
    divisor = max(0.0, float(count - p["correction"]))
    gap = x - x.mean(axes, keepdims=True)
    total = (gap * gap).sum(axes, keepdims=p["keepdims"])
    actual = total / divisor if divisor else total * np.inf
    return np.sqrt(actual) if root else actual


def _corrected(rng: random.Random) -> Parameters:
    return {**_axes(rng), "correction": rng.choice([0, 1, 1, 2])}


def _powered(rng: random.Random) -> Parameters:
    return {**_axes(rng), "p": rng.choice([0, 1, 2, 2, 3, 0.5, float("inf"), float("-inf")])}


def _truth(function: Any, p: Parameters, x: Array) -> Array:
    return function(x, axis=_every(p, x), keepdims=p["keepdims"])


FAMILY = (
    Operator("topk", NUMBERS, _best, of_one_by_name("topk"), lambda p, x: _ordered(p, x, p["k"], p["largest"]), None),
    Operator(
        "sort",
        NUMBERS,
        lambda rng: {**one_axis(rng), "descending": rng.random() < 0.5},
        of_one_by_name("sort"),
        lambda p, x: _ordered(p, x, x.shape[p["axis"]], p["descending"]),
        None,
    ),
    *(
        Operator(n, NUMBERS, _scanned, of_one_by_name(n), partial(_scan, f), partial(_scan_torch, n))
        for n, f in {"cumsum": np.cumsum, "cumprod": np.cumprod}.items()
    ),
    Operator("norm", FLOATS, _powered, of_one_by_name("norm"), _norm, None),
    Operator("var", FLOATS, _corrected, of_one_by_name("var"), partial(_spread, False), None),
    Operator("std", FLOATS, _corrected, of_one_by_name("std"), partial(_spread, True), None),
    *(
        Operator(n, EVERY, _axes, of_one_by_name(n), partial(_truth, f), None)
        for n, f in {"any": np.any, "all": np.all}.items()
    ),
)
