"""Pooling over windows of images of one to three dimensions."""

from __future__ import annotations

import random
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import FLOATS, NUMBERS, Array, Operator, Parameters, extent, of_one, shape

P = te.placeholder


def _windows(rank: int, rng: random.Random) -> Parameters:
    kernel = tuple(rng.randint(1, 4 if rank < 3 else 2) for _ in range(rank))
    dilation = tuple(rng.choice([1, 1, 2]) for _ in range(rank))
    padding = tuple(rng.choice([0, 0, 1, 2, 3]) for _ in range(2 * rank))
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    least = [max(1, span - padding[n] - padding[n + rank]) for n, span in enumerate(spans)]
    return {
        "x": (extent(rng, 2), extent(rng, 3), *(n + rng.randint(0, 4) for n in least)),
        "kernel": kernel,
        "stride": rng.choice([None, tuple(rng.randint(1, 3) for _ in range(rank))]),
        "padding": padding,
        "dilation": dilation,
        "ceil_mode": rng.random() < 0.4,
    }


def _counted(rank: int, rng: random.Random) -> Parameters:
    """Windows, each with an element of the image where only those count: 0 / 0 is for another test."""
    p = {**_windows(rank, rng), "divisor": rng.choice([None, None, None, 5])}
    return {**p, "count_include_pad": not _reach(p) or rng.random() < 0.5}


def _starts(p: Parameters, d: int) -> list[int]:
    """Where the windows of a dimension begin in the padded image."""
    rank, size = len(p["kernel"]), p["x"][2 + d]
    span, stride = p["dilation"][d] * (p["kernel"][d] - 1) + 1, (p["stride"] or p["kernel"])[d]
    before, padded = p["padding"][d], size + p["padding"][d] + p["padding"][d + rank]
    actual = [0]
    while actual[-1] + stride + span <= padded:
        actual.append(actual[-1] + stride)
    if p["ceil_mode"] and actual[-1] + span < padded:
        actual.append(actual[-1] + stride)
    if p["ceil_mode"] and actual[-1] >= size + before:
        actual.pop()
    return actual


def _reach(p: Parameters) -> bool:
    """Whether each window has an element of the image."""
    for d, kernel in enumerate(p["kernel"]):
        size, before = p["x"][2 + d], p["padding"][d]
        for start in _starts(p, d):
            taps = [start + tap * p["dilation"][d] - before for tap in range(kernel)]
            if not any(0 <= tap < size for tap in taps):
                return False
    return True


def _build(name: str, dtype: str, p: Parameters) -> te.Function:
    x = P(p["x"], dtype, name="X")
    names = ("stride", "padding", "dilation", "ceil_mode", "count_include_pad", "divisor", "p")
    output = getattr(te.nn, name)(x, p["kernel"], **{n: p[n] for n in names if n in p})
    return te.function(name, [x], list(output) if isinstance(output, tuple) else output)


def _windowed(p: Parameters, x: Any, padding: float, beyond: float, pad: Any) -> Any:
    """The image with its padding, and with what the last windows have beyond it, or without what none of them has."""
    rank = len(p["kernel"])
    pads = [(p["padding"][d], p["padding"][d + rank]) for d in range(rank)]
    ends = [_starts(p, d)[-1] + p["dilation"][d] * (p["kernel"][d] - 1) + 1 for d in range(rank)]
    padded = pad(x, pads, padding)
    padded = pad(padded, [(0, max(0, end - n)) for end, n in zip(ends, padded.shape[2:], strict=True)], beyond)
    return padded[(slice(None), slice(None), *map(slice, ends))]


def _numpy_pad(x: Array, widths: Any, value: float) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *widths], constant_values=value)


def _torch_pad(x: Any, widths: Any, value: float) -> Any:
    from torch.nn import functional

    return functional.pad(x, [n for pair in reversed(widths) for n in pair], value=value)


def _pooled(p: Parameters, x: Array, reduce: Any, padding: float, beyond: float) -> Array:
    """The windows of the padded image, one after another."""
    rank = len(p["kernel"])
    x = _windowed(p, x, padding, beyond, _numpy_pad)
    starts = [_starts(p, d) for d in range(rank)]
    collected = []
    for at in product(*starts):
        window = [slice(s, s + d * (k - 1) + 1, d) for s, d, k in zip(at, p["dilation"], p["kernel"], strict=True)]
        cut = x[(slice(None), slice(None), *window)]
        collected.append(reduce(cut.reshape(*x.shape[:2], -1), axis=-1))
    return np.stack(collected, -1).reshape(*x.shape[:2], *map(len, starts))


def _lowest(x: Array) -> float:
    """A number below all others."""
    return -np.inf if x.dtype.kind == "f" else np.iinfo(np.int64).min


def _max_reference(p: Parameters, x: Array) -> Array:
    return _pooled(p, x, np.max, _lowest(x), _lowest(x))


def _places_reference(p: Parameters, x: Array) -> tuple[Array, Array]:
    """The maxima, and where the image has them."""
    values = _pooled(p, x, np.max, _lowest(x), _lowest(x))
    first = _pooled(p, x, np.argmax, _lowest(x), _lowest(x))
    taps = list(product(*(range(k) for k in p["kernel"])))
    starts = list(product(*(_starts(p, d) for d in range(len(p["kernel"])))))
    places = np.empty_like(first)
    for index, tap in np.ndenumerate(first):
        start = starts[int(np.ravel_multi_index(index[2:], first.shape[2:]))]
        at = [
            s + t * d - before for s, t, d, before in zip(start, taps[tap], p["dilation"], p["padding"], strict=False)
        ]
        places[index] = np.ravel_multi_index(at, x.shape[2:])
    return values, places


def _avg_reference(p: Parameters, x: Array) -> Array:
    if p["divisor"] is not None:
        return _pooled(p, x, np.sum, 0, 0) / p["divisor"]
    return _pooled(p, x, np.nanmean, 0 if p["count_include_pad"] else np.nan, np.nan)


def _lp_reference(p: Parameters, x: Array) -> Array:
    return _pooled(p, np.abs(x) ** p["p"], np.sum, 0, 0) ** (1 / p["p"])


def _max_torch(p: Parameters, x: Any) -> Any:
    import torch
    from torch.nn import functional

    pool = getattr(functional, f"max_pool{len(p['kernel'])}d")
    lowest = -np.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    return pool(_windowed(p, x, lowest, lowest, _torch_pad), p["kernel"], p["stride"], dilation=p["dilation"])


def _avg_torch(p: Parameters, x: Any) -> Any:
    """torch pads no side by more than half a window, nor two sides by different widths, nor has it dilation."""
    import torch

    total = _lp_sum(p, x)
    if p["divisor"] is not None:
        return total / p["divisor"]
    ones = torch.ones_like(x)
    return total / _lp_sum(p, ones, 1 if p["count_include_pad"] else 0)


def _lp_sum(p: Parameters, x: Any, padding: float = 0) -> Any:
    """The sums over windows, as convolutions with ones."""
    import torch

    x = _windowed(p, x, padding, 0, _torch_pad)
    ones = torch.ones((x.shape[1], 1, *p["kernel"]), dtype=x.dtype)
    conv = getattr(torch.nn.functional, f"conv{len(p['kernel'])}d")
    return conv(x, ones, None, p["stride"] or p["kernel"], 0, p["dilation"], x.shape[1])


def _lp_torch(p: Parameters, x: Any) -> Any:
    return _lp_sum(p, x.abs() ** p["p"]) ** (1 / p["p"])


def _powered(rng: random.Random) -> Parameters:
    return {**_windows(rng.randint(1, 2), rng), "p": rng.choice([1, 2, 2, 3])}


def _adapted(rng: random.Random) -> Parameters:
    rank = rng.randint(1, 3)
    size = tuple(rng.randint(1, 4) for _ in range(rank))
    image = [n * rng.randint(1, 3) if rng.random() < 0.4 else extent(rng, 8) for n in size]
    return {"x": (extent(rng, 2), extent(rng, 3), *image), "size": size}


def _adaptive_reference(reduce: Any, p: Parameters, x: Array) -> Array:
    out = np.zeros((*x.shape[:2], *p["size"]), x.dtype)
    for at in np.ndindex(p["size"]):
        cut = [
            slice(int(np.floor(i * n / m)), int(np.ceil((i + 1) * n / m)))
            for i, n, m in zip(at, x.shape[2:], p["size"], strict=True)
        ]
        out[(slice(None), slice(None), *at)] = reduce(
            x[(slice(None), slice(None), *cut)].reshape(*x.shape[:2], -1), axis=-1
        )
    return out


def _adaptive_torch(name: str, p: Parameters, x: Any) -> Any:
    from torch.nn import functional

    return getattr(functional, f"{name}{len(p['size'])}d")(x, p["size"])


def _image(rng: random.Random) -> Parameters:
    return {"x": shape(rng, least=3, most=4)}


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
        if _reach(p):
            return p


FAMILY = (
    *(_max(rank) for rank in (1, 2, 3)),
    *(_avg(rank) for rank in (1, 2, 3)),
    Operator(
        "max_pool_with_places",
        NUMBERS,
        lambda rng: _inside(rng.randint(1, 3), rng),
        partial(_build, "max_pool_with_places"),
        _places_reference,
        None,
    ),
    Operator("lp_pool", FLOATS, _powered, partial(_build, "lp_pool"), _lp_reference, _lp_torch),
    *(
        Operator(
            name,
            dtypes,
            _adapted,
            of_one(name, "size"),
            partial(_adaptive_reference, reduce),
            partial(_adaptive_torch, name),
        )
        for name, dtypes, reduce in (("adaptive_avg_pool", FLOATS, np.mean), ("adaptive_max_pool", NUMBERS, np.max))
    ),
    Operator("global_avg_pool", FLOATS, _image, of_one("global_avg_pool"), _global_mean, _global_mean),
)
