"""Images read at places that another tensor holds."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import Array, Operator, Parameters, extent
from tests.operators.resizing import kernel

P = te.placeholder


def _sample(rng: random.Random) -> Parameters:
    rank = rng.choice([2, 2, 3])
    batch = extent(rng, 2)
    modes = ["linear", "linear", "nearest", "cubic"] if rank == 2 else ["linear", "nearest"]
    return {
        "x": (batch, extent(rng, 2), *(extent(rng, 5) for _ in range(rank))),
        "grid": (batch, *(extent(rng, 3) for _ in range(rank)), rank),
        "mode": rng.choice(modes),
        "padding": rng.choice(["zeros", "border", "reflection"]),
        "align_corners": rng.random() < 0.5,
    }


def _build(dtype: str, p: Parameters) -> te.Function:
    x, grid = P(p["x"], dtype, name="X"), P(p["grid"], dtype, name="G")
    made = te.nn.grid_sample(x, grid, p["mode"], p["padding"], p["align_corners"])
    return te.function("grid_sample", [x, grid], made)


def _bounded(p: Parameters, at: float, length: int) -> float:
    if p["padding"] == "zeros":
        return at
    if p["padding"] == "reflection":
        low, high = (0.0, length - 1.0) if p["align_corners"] else (-0.5, length - 0.5)
        while low < high and not low <= at <= high:
            at = 2 * low - at if at < low else 2 * high - at
    return min(max(at, 0.0), length - 1.0)


def _shares(p: Parameters, at: float, length: int) -> dict[int, float]:
    """The elements of one dimension that a coordinate meets, with their shares."""
    at = (at + 1) / 2 * (length - 1) if p["align_corners"] else ((at + 1) * length - 1) / 2
    if p["mode"] != "cubic":
        at = _bounded(p, at, length)
    if p["mode"] == "nearest":
        return {round(at): 1.0}
    collected: dict[int, float] = {}
    low, reach = math.floor(at), range(2) if p["mode"] == "linear" else range(-1, 3)
    for index in (low + offset for offset in reach):
        share = kernel({"mode": p["mode"], "cubic": -0.75}, at - index)
        place = int(_bounded(p, index, length)) if p["mode"] == "cubic" else index
        collected[place] = collected.get(place, 0.0) + share
    return collected


def _reference(p: Parameters, x: Array, grid: Array) -> Array:
    output = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(grid.shape[:-1]):
        dims = [_shares(p, float(c), n) for c, n in zip(grid[at][::-1], x.shape[2:], strict=True)]
        for places in product(*dims):
            if all(0 <= i < n for i, n in zip(places, x.shape[2:], strict=True)):
                share = math.prod(d[i] for d, i in zip(dims, places, strict=True))
                output[(at[0], slice(None), *at[1:])] += share * x[(at[0], slice(None), *places)]
    return output


def _torch(p: Parameters, x: Any, grid: Any) -> Any:
    from torch.nn import functional

    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(p["mode"], p["mode"])
    return functional.grid_sample(x, grid, mode, p["padding"], p["align_corners"])


FAMILY = (Operator("grid_sample", ("f32", "f64"), _sample, _build, _reference, _torch),)
