"""Images at another size."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tests.operators.catalogue import EVERY, FLOATS, Array, Operator, Parameters, extent, of_one


def _sample(rng: random.Random) -> Parameters:
    return {
        "x": (extent(rng, 2), extent(rng, 3), extent(rng, 7), extent(rng, 7)),
        "size": (extent(rng, 9), extent(rng, 9)),
        "align_corners": rng.random() < 0.4,
    }


def _nearest_reference(p: Parameters, x: Array) -> Array:
    rows, columns = (np.arange(out) * n // out for out, n in zip(p["size"], x.shape[2:], strict=True))
    return x[:, :, rows][:, :, :, columns]


def _weights(out: int, extent: int, align_corners: bool) -> Array:
    """A matrix whose rows say what share of each pixel a place takes."""
    output = np.zeros((out, extent))
    for i in range(out):
        at = i * (extent - 1) / max(out - 1, 1) if align_corners else (i + 0.5) * extent / out - 0.5
        at = min(max(at, 0.0), extent - 1.0)
        low = min(int(np.floor(at)), extent - 1)
        output[i, low] += 1 - (at - low)
        output[i, min(low + 1, extent - 1)] += at - low
    return output


def _bilinear_reference(p: Parameters, x: Array) -> Array:
    rows, columns = (_weights(o, n, p["align_corners"]) for o, n in zip(p["size"], x.shape[2:], strict=True))
    return np.einsum("nchw,ah,bw->ncab", x, rows, columns)


def _nearest_torch(p: Parameters, x: Any) -> Any:
    from torch.nn import functional

    return functional.interpolate(x, p["size"], mode="nearest")


def _bilinear_torch(p: Parameters, x: Any) -> Any:
    from torch.nn import functional

    return functional.interpolate(x, p["size"], mode="bilinear", align_corners=p["align_corners"])


FAMILY = (
    Operator("resize_nearest", EVERY, _sample, of_one("resize_nearest", "size"), _nearest_reference, _nearest_torch),
    Operator(
        "resize_bilinear",
        FLOATS,
        _sample,
        of_one("resize_bilinear", "size", "align_corners"),
        _bilinear_reference,
        _bilinear_torch,
    ),
)
