"""Tensors at another size, and recurrent layers, by the formulas as ONNX states them."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import FLOATS, NUMBERS, Array, Operator, Parameters, extent, of_one_by_name, shape

P = te.placeholder


def _sample(mode: str | None, rng: random.Random) -> Parameters:
    extents = shape(rng, 1, 4, 150)
    axes = sorted(rng.sample(range(len(extents)), rng.randint(1, min(2, len(extents)))))
    kinds = ["half_pixel", "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]
    coordinates = rng.choice([*kinds, "tf_crop_and_resize"])
    scales = [rng.choice([0.5, 2.0, 3.0, 0.6, 1.7]) for _ in axes]
    scales = [s if math.floor(extents[d] * s) else 1.0 for s, d in zip(scales, axes, strict=True)]
    by_size = rng.random() < 0.5
    return {
        "x": extents,
        "axes": axes,
        "sizes": [extent(rng, 9) for _ in axes] if by_size else None,
        "scales": None if by_size else scales,
        "mode": mode or rng.choice(["linear", "cubic"]),
        "coordinates": coordinates,
        "rounding": rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
        "cubic": rng.choice([-0.75, -0.5]),
        "exclude_outside": rng.random() < 0.3,
        "antialias": rng.random() < 0.3,
        "roi": [0.2 for _ in axes] + [rng.choice([0.7, 1.2]) for _ in axes],
        "extrapolation": 3,
    }


def _origin(p: Parameters, n: int, i: Any, size: int, scale: Any, length: int) -> Any:
    """Where a place lies, by the formulas of ONNX; in f32 if it decides between neighbours."""
    if p["mode"] == "nearest":
        i, scale = np.float32(i), np.float32(scale)
    resized, start, end = scale * length, p["roi"][n], p["roi"][n + len(p["axes"])]
    if p["coordinates"] == "align_corners":
        return 0.0 if resized == 1 else i * (length - 1) / (resized - 1)
    if p["coordinates"] == "asymmetric":
        return i / scale
    if p["coordinates"] == "tf_crop_and_resize":
        if resized == 1:
            return 0.5 * (start + end) * (length - 1)
        return start * (length - 1) + i * (end - start) * (length - 1) / (resized - 1)
    if p["coordinates"] == "pytorch_half_pixel" and resized == 1:
        return -0.5
    shift = length / 2 * (1 - size / resized) if p["coordinates"] == "half_pixel_symmetric" else 0
    return shift + (i + 0.5) / scale - 0.5


def kernel(p: Parameters, gap: float) -> float:
    """The share of an element so far from a place."""
    gap, a = abs(gap), p["cubic"]
    if p["mode"] == "linear":
        return max(0.0, 1 - gap)
    if gap <= 1:
        return (a + 2) * gap**3 - (a + 3) * gap**2 + 1
    return a * gap**3 - 5 * a * gap**2 + 8 * a * gap - 4 * a if gap < 2 else 0.0


def _row(p: Parameters, at: float, scale: float, length: int) -> Array:
    """The shares of all elements in one place."""
    row = np.zeros(length)
    if p["mode"] == "nearest":
        rounding = p["rounding"]
        half = math.ceil(at - 0.5) if rounding == "round_prefer_floor" else math.floor(at + 0.5)
        place = {"floor": math.floor(at), "ceil": math.ceil(at)}.get(rounding, half)
        row[np.clip(place, 0, length - 1)] = 1
        return row
    shrink = min(1.0, scale) if p["antialias"] else 1.0
    reach = 3 * math.ceil(1 / shrink) + 1
    for index in range(math.floor(at) - reach, math.floor(at) + reach + 1):
        if p["exclude_outside"] and not 0 <= index < length:
            continue
        row[np.clip(index, 0, length - 1)] += kernel(p, (at - index) * shrink)
    if row.sum() == 0:
        row[np.clip(round(at), 0, length - 1)] = 1
    return row / row.sum() if p["exclude_outside"] or p["antialias"] else row


def _reference(p: Parameters, x: Array) -> Array:
    outside = np.zeros((1,) * x.ndim, bool)
    for n, d in enumerate(p["axes"]):
        length = x.shape[d]
        size = p["sizes"][n] if p["sizes"] else math.floor(length * p["scales"][n])
        scale = p["scales"][n] if p["scales"] else size / length
        places = [_origin(p, n, i, size, scale, length) for i in range(size)]
        rows = np.array([_row(p, at, scale, length) for at in places]).astype(x.dtype)
        x = np.moveaxis(np.moveaxis(x, d, -1) @ rows.T, -1, d)
        if p["coordinates"] == "tf_crop_and_resize":
            beyond = np.array([not 0 <= at <= length - 1 for at in places])
            outside = outside | beyond.reshape([-1 if m == d else 1 for m in range(x.ndim)])
    return np.where(outside, p["extrapolation"], x)


def _sequence(rng: random.Random) -> Parameters:
    return {
        "x": (rng.randint(1, 3), extent(rng, 3), extent(rng, 4)),
        "hidden": extent(rng, 3),
        "bias": rng.choice([0, 1, 2]),
        "initial": rng.random() < 0.5,
        "reverse": rng.random() < 0.4,
        "choice": rng.randrange(3),
    }


GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def _options(name: str, p: Parameters) -> dict[str, Any]:
    """What differs between samples of one kind of layer."""
    options: dict[str, Any] = {"reverse": p["reverse"]}
    if name == "rnn":
        options["activation"] = ("tanh", "relu", "sigmoid")[p["choice"]]
    if name == "lstm":
        options["order"] = ("iofc", "ifco", "ifco")[p["choice"]]
    if name == "gru":
        options |= {"order": ("zrh", "rzh", "rzh")[p["choice"]], "linear_before_reset": p["choice"] > 0}
    return options


def _layer(name: str, dtype: str, p: Parameters) -> te.Function:
    hidden, rows = p["hidden"], GATES[name] * p["hidden"]
    x, w, r = P(p["x"], dtype, "X"), P((rows, p["x"][2]), dtype, "W"), P((rows, hidden), dtype, "R")
    given = {n: P((rows,), dtype, n) for n in ("bias", "recurrent_bias")[: p["bias"]]}
    states = ("initial", "initial_cell") if name == "lstm" else ("initial",)
    given |= {n: P((p["x"][1], hidden), dtype, n) for n in states if p["initial"]}
    if name == "lstm" and p["choice"] == 0:
        given["peepholes"] = P((3 * hidden,), dtype, "peepholes")
    made = getattr(te.nn, name)(x, w, r, **given, **_options(name, p))
    return te.function(name, [x, w, r, *given.values()], list(made))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _unrolled(name: str, p: Parameters, x: Array, w: Array, r: Array, *given: Array) -> tuple[Array, ...]:
    """The layer step by step, gate by gate."""
    left, size, options = list(given), p["hidden"], _options(name, p)
    biases = [left.pop(0) if n < p["bias"] else np.zeros(len(w)) for n in range(2)]
    h = left.pop(0) if p["initial"] else np.zeros((x.shape[1], size))
    c = left.pop(0) if p["initial"] and name == "lstm" else np.zeros_like(h)
    see = left.pop(0).reshape(3, size) if left else np.zeros((3, size))
    order = options.get("order", "h")
    output = np.zeros((*x.shape[:2], size))
    for t in range(x.shape[0])[:: -1 if p["reverse"] else 1]:
        inner, outer = x[t] @ w.T + biases[0], h @ r.T + biases[1]
        a = {g: inner[:, n * size : (n + 1) * size] for n, g in enumerate(order)}
        b = {g: outer[:, n * size : (n + 1) * size] for n, g in enumerate(order)}
        if name == "rnn":
            h = {"tanh": np.tanh, "relu": lambda v: np.maximum(v, 0), "sigmoid": _sigmoid}[options["activation"]](
                inner + outer
            )
        elif name == "lstm":
            i, f = _sigmoid(a["i"] + b["i"] + see[0] * c), _sigmoid(a["f"] + b["f"] + see[2] * c)
            c = f * c + i * np.tanh(a["c"] + b["c"])
            h = _sigmoid(a["o"] + b["o"] + see[1] * c) * np.tanh(c)
        else:
            z, reset = _sigmoid(a["z"] + b["z"]), _sigmoid(a["r"] + b["r"])
            n = order.index("h")
            block, bias = r[n * size : (n + 1) * size], biases[1][n * size : (n + 1) * size]
            new = reset * b["h"] if options["linear_before_reset"] else (reset * h) @ block.T + bias
            h = (1 - z) * np.tanh(a["h"] + new) + z * h
        output[t] = h
    return (output, h, c) if name == "lstm" else (output, h)


FAMILY = (
    Operator("resize", FLOATS, partial(_sample, None), of_one_by_name("resize"), _reference, None),
    *(Operator(n, FLOATS, _sequence, partial(_layer, n), partial(_unrolled, n), None) for n in GATES),
)
NEAREST = Operator("resize", NUMBERS, partial(_sample, "nearest"), of_one_by_name("resize"), _reference, None)
"""The same operator, of elements that are not mixed."""
