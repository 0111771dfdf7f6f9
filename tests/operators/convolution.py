"""Convolutions of one to three dimensions, transposed ones, and gradients."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import NUMBERS, Array, Operator, Parameters, extent

P = te.placeholder


def _images(rank: int, depthwise: bool = False) -> Any:
    def sample(rng: random.Random) -> Parameters:
        groups = rng.choice([1, 1, 2, 3])
        stride, dilation = (tuple(rng.randint(1, 3) for _ in range(rank)) for _ in range(2))
        kernel = tuple(rng.randint(1, 3) for _ in range(rank))
        before, after = (tuple(rng.choice([0, 0, 1, 2, 4]) for _ in range(rank)) for _ in range(2))
        least = [max(1, d * (k - 1) + 1 - b - a) for d, k, b, a in zip(dilation, kernel, before, after, strict=True)]
        depth, share = (1 if depthwise else extent(rng, 3)), extent(rng, 2)
        return {
            "x": (extent(rng, 2), groups * depth, *(n + rng.randint(0, 3) for n in least)),
            "w": (groups * share, depth, *kernel),
            "bias": rng.random() < 0.3,
            "stride": stride,
            "padding": (*before, *after),
            "dilation": dilation,
            "groups": groups,
        }

    return sample


def _options(p: Parameters, *names: str) -> dict[str, Any]:
    return {name: p[name] for name in names}


def _build(name: str, *options: str) -> Any:
    def build(dtype: str, p: Parameters) -> te.Function:
        x, w, b = P(p["x"], dtype, name="X"), P(p["w"], dtype, name="W"), P((p["filters"],), dtype, name="b")
        biased = [b] if p["bias"] else []
        return te.function(name, [x, w, *biased], getattr(te.nn, name)(x, w, *biased, **_options(p, *options)))

    return lambda dtype, p: build(dtype, {"filters": p["w"][0], **p})


def _out(p: Parameters) -> list[int]:
    """The extents of a convolution's result."""
    rank = len(p["stride"])
    return [
        (p["x"][2 + d] + p["padding"][d] + p["padding"][rank + d] - p["dilation"][d] * (p["w"][2 + d] - 1) - 1)
        // p["stride"][d]
        + 1
        for d in range(rank)
    ]


def _pairs(p: Parameters) -> Any:
    """Every (output, tap, input) that a convolution multiplies, the input inside the image."""
    rank = len(p["stride"])
    for at in product(*map(range, _out(p))):
        for tap in product(*map(range, p["w"][2:])):
            place = tuple(at[d] * p["stride"][d] + tap[d] * p["dilation"][d] - p["padding"][d] for d in range(rank))
            if all(0 <= i < n for i, n in zip(place, p["x"][2:], strict=True)):
                yield at, tap, place


def _groups(p: Parameters) -> Any:
    """Each group's filters and channels, as slices."""
    share, depth = p["w"][0] // p["groups"], p["w"][1]
    for g in range(p["groups"]):
        yield slice(g * share, (g + 1) * share), slice(g * depth, (g + 1) * depth)


def _reference(p: Parameters, x: Array, w: Array, b: Array | None = None) -> Array:
    out = np.zeros((p["x"][0], p["w"][0], *_out(p)), x.dtype)
    for at, tap, place in _pairs(p):
        for filters, channels in _groups(p):
            out[(slice(None), filters, *at)] += x[(slice(None), channels, *place)] @ w[(filters, slice(None), *tap)].T
    return out if b is None else out + b.reshape(-1, *[1] * len(p["stride"]))


def _grad_data(p: Parameters, dy: Array, w: Array) -> Array:
    dx = np.zeros(p["x"], dy.dtype)
    for at, tap, place in _pairs(p):
        for filters, channels in _groups(p):
            dx[(slice(None), channels, *place)] += dy[(slice(None), filters, *at)] @ w[(filters, slice(None), *tap)]
    return dx


def _grad_weight(p: Parameters, x: Array, dy: Array) -> Array:
    dw = np.zeros(p["w"], x.dtype)
    for at, tap, place in _pairs(p):
        for filters, channels in _groups(p):
            product_ = dy[(slice(None), filters, *at)].T @ x[(slice(None), channels, *place)]
            dw[(filters, slice(None), *tap)] += product_
    return dw


def _torch_padding(p: Parameters) -> list[int]:
    rank = len(p["stride"])
    return [n for d in reversed(range(rank)) for n in (p["padding"][d], p["padding"][rank + d])]


def _torch(p: Parameters, x: Any, w: Any, b: Any = None) -> Any:
    from torch.nn import functional

    convolve = getattr(functional, f"conv{len(p['stride'])}d")
    return convolve(functional.pad(x, _torch_padding(p)), w, b, p["stride"], 0, p["dilation"], p["groups"])


def _grad_shapes(p: Parameters, name: str, dtype: str) -> te.Function:
    dy = P((p["x"][0], p["w"][0], *_out(p)), dtype, name="dY")
    options = _options(p, "stride", "padding", "dilation", "groups")
    if name == "conv2d_grad_data":
        w = P(p["w"], dtype, name="W")
        return te.function(name, [dy, w], te.nn.conv2d_grad_data(dy, w, p["x"], **options))
    x = P(p["x"], dtype, name="X")
    return te.function(name, [x, dy], te.nn.conv2d_grad_weight(x, dy, p["w"], **options))


def _torch_gradient(p: Parameters, x: Any, w: Any, dy: Any, of: str) -> Any:
    x, w = (t.clone().requires_grad_() for t in (x, w))
    _torch(p, x, w).backward(dy)
    return x.grad if of == "x" else w.grad


def _torch_grad_data(p: Parameters, dy: Any, w: Any) -> Any:
    return _torch_gradient(p, dy.new_zeros(p["x"]), w, dy, "x")


def _torch_grad_weight(p: Parameters, x: Any, dy: Any) -> Any:
    return _torch_gradient(p, x, x.new_zeros(p["w"]), dy, "w")


def _spread(rank: int) -> Any:
    """Parameters of a transposed convolution, whose result has something left after the padding."""

    def sample(rng: random.Random) -> Parameters:
        groups = rng.choice([1, 1, 2])
        stride, dilation = (tuple(rng.randint(1, 3) for _ in range(rank)) for _ in range(2))
        kernel, image = (tuple(rng.randint(1, 4) for _ in range(rank)) for _ in range(2))
        extra = tuple(rng.randrange(max(s, d)) for s, d in zip(stride, dilation, strict=True))
        unpadded = [(image[d] - 1) * stride[d] + dilation[d] * (kernel[d] - 1) + extra[d] for d in range(rank)]
        padding = tuple(rng.randint(0, min(2, n // 2)) for n in unpadded)
        share = extent(rng, 2)
        return {
            "x": (extent(rng, 2), groups * extent(rng, 2), *image),
            "share": share,
            "kernel": kernel,
            "filters": share * groups,
            "bias": rng.random() < 0.3,
            "stride": stride,
            "padding": padding,
            "output_padding": extra,
            "dilation": dilation,
            "groups": groups,
        }

    def completed(rng: random.Random) -> Parameters:
        p = sample(rng)
        return {**p, "w": (p["x"][1], p["share"], *p["kernel"])}

    return completed


def _spread_reference(p: Parameters, x: Array, w: Array, b: Array | None = None) -> Array:
    rank, depth, share = len(p["stride"]), p["x"][1] // p["groups"], p["share"]
    out = np.zeros(
        (
            p["x"][0],
            p["filters"],
            *(
                (p["x"][2 + d] - 1) * p["stride"][d]
                - 2 * p["padding"][d]
                + p["dilation"][d] * (p["kernel"][d] - 1)
                + p["output_padding"][d]
                + 1
                for d in range(rank)
            ),
        ),
        x.dtype,
    )
    for at in product(*map(range, p["x"][2:])):
        for tap in product(*map(range, p["kernel"])):
            place = tuple(at[d] * p["stride"][d] + tap[d] * p["dilation"][d] - p["padding"][d] for d in range(rank))
            if all(0 <= i < n for i, n in zip(place, out.shape[2:], strict=True)):
                for g in range(p["groups"]):
                    channels, filters = slice(g * depth, (g + 1) * depth), slice(g * share, (g + 1) * share)
                    part = x[(slice(None), channels, *at)] @ w[(channels, slice(None), *tap)]
                    out[(slice(None), filters, *place)] += part
    return out if b is None else out + b.reshape(-1, *[1] * rank)


def _spread_torch(p: Parameters, x: Any, w: Any, b: Any = None) -> Any:
    from torch.nn import functional

    convolve = getattr(functional, f"conv_transpose{len(p['stride'])}d")
    return convolve(x, w, b, p["stride"], p["padding"], p["output_padding"], p["groups"], p["dilation"])


_USUAL = ("stride", "padding", "dilation", "groups")
_TRANSPOSED = (*_USUAL, "output_padding")

FAMILY = (
    *(
        Operator(f"conv{rank}d", NUMBERS, _images(rank), _build(f"conv{rank}d", *_USUAL), _reference, _torch)
        for rank in (1, 2, 3)
    ),
    Operator(
        "depthwise_conv2d",
        NUMBERS,
        _images(2, depthwise=True),
        _build("depthwise_conv2d", "stride", "padding", "dilation"),
        _reference,
        _torch,
    ),
    *(
        Operator(name, NUMBERS, _spread(rank), _build(name, *_TRANSPOSED), _spread_reference, _spread_torch)
        for rank, name in ((rank, f"conv{rank}d_transpose") for rank in (1, 2, 3))
    ),
    Operator(
        "conv2d_grad_data",
        NUMBERS,
        _images(2),
        lambda dtype, p: _grad_shapes(p, "conv2d_grad_data", dtype),
        _grad_data,
        _torch_grad_data,
    ),
    Operator(
        "conv2d_grad_weight",
        NUMBERS,
        _images(2),
        lambda dtype, p: _grad_shapes(p, "conv2d_grad_weight", dtype),
        _grad_weight,
        _torch_grad_weight,
    ),
)
