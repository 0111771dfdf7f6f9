"""Pooling over windows of images of one to three dimensions."""

from __future__ import annotations

import random
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import FLOATS, NUMBERS, Array, Operator, Parameters, extent, shape

P = te.placeholder


def _windows(rank: int, rng: random.Random) -> Parameters:
    kernel = tuple(rng.randint(1, 4 if rank < 3 else 2) for _ in range(rank))
    padding = tuple(rng.choice([0, 0, 1, 2, 3]) for _ in range(2 * rank))
    least = [max(1, k - padding[n] - padding[n + rank]) for n, k in enumerate(kernel)]
    return {
        "x": (extent(rng, 2), extent(rng, 3), *(n + rng.randint(0, 4) for n in least)),
        "kernel": kernel,
        "stride": rng.choice([None, tuple(rng.randint(1, 3) for _ in range(rank))]),
        "padding": padding,
    }


def _counted(rank: int, rng: random.Random) -> Parameters:
    """Windows, each with an element of the image where only those count: 0 / 0 is for another test."""
    p = _windows(rank, rng)
    inside = all(border < size for border, size in zip(p["padding"], p["kernel"] * 2, strict=True))
    whole = inside and _reach(p)
    return {**p, "count_include_pad": not whole or rng.random() < 0.5}


def _reach(p: Parameters) -> bool:
    """Whether the last windows begin inside the image."""
    rank = len(p["kernel"])
    for n, (size, kernel) in enumerate(zip(p["x"][2:], p["kernel"], strict=True)):
        stride = (p["stride"] or p["kernel"])[n]
        before, after = p["padding"][n], p["padding"][n + rank]
        if (size + before + after - kernel) // stride * stride - before >= size:
            return False
    return True


def _build(name: str, dtype: str, p: Parameters) -> te.Function:
    x = P(p["x"], dtype, name="X")
    counted = [p["count_include_pad"]] if "count_include_pad" in p else []
    return te.function(name, [x], getattr(te.nn, name)(x, p["kernel"], p["stride"], p["padding"], *counted))


def _pooled(p: Parameters, x: Array, reduce: Any, outside: float) -> Array:
    """The windows of the padded image, one after another."""
    kernel, strides, rank = p["kernel"], p["stride"] or p["kernel"], len(p["kernel"])
    widths = [(0, 0), (0, 0), *((p["padding"][d], p["padding"][d + rank]) for d in range(rank))]
    x = np.pad(x, widths, constant_values=outside)
    shape = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], kernel, strides, strict=True)]
    out = np.zeros((*x.shape[:2], *shape), x.dtype)
    for at in product(*map(range, shape)):
        window = [slice(i * s, i * s + k) for i, s, k in zip(at, strides, kernel, strict=True)]
        out[(slice(None), slice(None), *at)] = reduce(
            x[(slice(None), slice(None), *window)], axis=tuple(range(2, x.ndim))
        )
    return out


def _max_reference(p: Parameters, x: Array) -> Array:
    """A number below all others stands outside; where a whole window is outside, the least of the dtype is."""
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(np.int64).min
    return _pooled(p, x, np.max, lowest)


def _avg_reference(p: Parameters, x: Array) -> Array:
    return _pooled(p, x, np.mean, 0) if p["count_include_pad"] else _pooled(p, x, np.nanmean, np.nan)


def _max_torch(p: Parameters, x: Any) -> Any:
    import torch
    from torch.nn import functional

    pool = getattr(functional, f"max_pool{len(p['kernel'])}d")
    lowest = -np.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    return pool(_padded(p, x, lowest), p["kernel"], p["stride"])


def _avg_torch(p: Parameters, x: Any) -> Any:
    """torch pads no side by more than half a window, nor two sides by different widths."""
    import torch
    from torch.nn import functional

    pool = getattr(functional, f"avg_pool{len(p['kernel'])}d")
    total = pool(_padded(p, x, 0), p["kernel"], p["stride"])
    if p["count_include_pad"]:
        return total
    return total / pool(_padded(p, torch.ones_like(x), 0), p["kernel"], p["stride"])


def _padded(p: Parameters, x: Any, outside: float) -> Any:
    from torch.nn import functional

    rank = len(p["kernel"])
    widths = [n for d in reversed(range(rank)) for n in (p["padding"][d], p["padding"][d + rank])]
    return functional.pad(x, widths, value=outside)


def _image(rng: random.Random) -> Parameters:
    return {"x": shape(rng, least=3, most=4)}


def _global(dtype: str, p: Parameters) -> te.Function:
    x = P(p["x"], dtype, name="X")
    return te.function("global_avg_pool", [x], te.nn.global_avg_pool(x))


def _global_mean(p: Parameters, x: Any) -> Any:
    return x.mean(tuple(range(2, x.ndim)), **{"keepdims" if isinstance(x, np.ndarray) else "keepdim": True})


def _max(rank: int) -> Operator:
    name = f"max_pool{rank}d"
    return Operator(name, NUMBERS, partial(_inside, rank), partial(_build, name), _max_reference, _max_torch)


def _avg(rank: int) -> Operator:
    name = f"avg_pool{rank}d"
    return Operator(name, FLOATS, partial(_counted, rank), partial(_build, name), _avg_reference, _avg_torch)


def _inside(rank: int, rng: random.Random) -> Parameters:
    """Windows, each with an element of the image: what the maximum of none is, a test of its own says."""
    while True:
        p = _windows(rank, rng)
        if all(b < k for b, k in zip(p["padding"], p["kernel"] * 2, strict=True)) and _reach(p):
            return p


FAMILY = (
    *(_max(rank) for rank in (1, 2, 3)),
    *(_avg(rank) for rank in (1, 2, 3)),
    Operator("global_avg_pool", FLOATS, _image, _global, _global_mean, _global_mean),
)
