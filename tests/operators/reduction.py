"""Reductions over axes, and where the greatest and the least are."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.operators.catalogue import FLOATS, NUMBERS, Operator, Parameters, of_one, shape


def _axes(rng: random.Random) -> Parameters:
    extents = shape(rng)
    axes = tuple(rng.sample(range(len(extents)), rng.randint(1, len(extents))))
    return {
        "shape": extents,
        "axis": rng.choice([axes, axes, axes[0] - len(extents), None]),
        "keep": rng.random() < 0.5,
    }


def _axis(rng: random.Random) -> Parameters:
    extents = shape(rng)
    return {
        "shape": extents,
        "axis": rng.randrange(-len(extents), len(extents)),
        "keep": rng.random() < 0.5,
        "last": rng.random() < 0.3,
    }


def _place(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(p: Parameters, x: Any) -> Any:
        if not p["last"]:
            return function(x, axis=p["axis"], keepdims=p["keep"])
        return x.shape[p["axis"]] - 1 - function(np.flip(x, p["axis"]), axis=p["axis"], keepdims=p["keep"])

    return call


def _numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda p, x: function(x, axis=p["axis"], keepdims=p["keep"])


def _torch(name: str) -> Callable[..., Any]:
    def call(p: Parameters, x: Any) -> Any:
        import torch

        axes = p["axis"] if p["axis"] is not None else tuple(range(x.ndim))
        if name != "prod":
            return getattr(torch, name)(x, axes, keepdim=p["keep"])
        for axis in sorted([axes] if isinstance(axes, int) else axes, reverse=True):
            x = torch.prod(x, axis, keepdim=p["keep"])
        return x

    return call


REDUCTIONS = {"sum": (np.sum, "sum"), "prod": (np.prod, "prod"), "max": (np.max, "amax"), "min": (np.min, "amin")}
PLACES = {"argmax": np.argmax, "argmin": np.argmin}

FAMILY = (
    *(Operator(n, NUMBERS, _axes, of_one(n, "axis", "keep"), _numpy(f), _torch(t)) for n, (f, t) in REDUCTIONS.items()),
    Operator("mean", FLOATS, _axes, of_one("mean", "axis", "keep"), _numpy(np.mean), _torch("mean")),
    *(Operator(n, NUMBERS, _axis, of_one(n, "axis", "keep", "last"), _place(f), None) for n, f in PLACES.items()),
)
