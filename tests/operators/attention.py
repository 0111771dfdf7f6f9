"""Scaled dot-product attention."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import FLOATS, Array, Operator, Parameters, extent, numpy_dtype

P = te.placeholder


def _sample(rng: random.Random) -> Parameters:
    batch, heads = (extent(rng, 2),), ((), ()) if rng.random() < 0.3 else None
    if heads is None:
        groups, share = extent(rng, 2), rng.choice([1, 1, 2])
        heads = ((groups * share,), (groups,))
    rows, width, out = (extent(rng, 5) for _ in range(3))
    columns = 2 + extent(rng, 6)  # of one column the weight is 1, whatever the scores
    return {
        "q": (*batch, *heads[0], rows, width),
        "k": (*batch, *heads[1], columns, width),
        "v": (*batch, *heads[1], columns, out),
        "mask": rng.choice([None, None, "i1", "own"]),
        "full": rng.random() < 0.5,
        "causal": rng.random() < 0.5,
        "scale": rng.choice([None, 0.5]),
        "offset": rng.choice([0, 0, 1, -1]),
        "softcap": rng.choice([None, None, None, 1.5]),
    }


def _build(dtype: str, p: Parameters) -> te.Function:
    q, k, v = (P(p[name], dtype, name=name.upper()) for name in "qkv")
    shape = (*p["q"][:-1], p["k"][-2]) if p["full"] else (p["q"][-2], p["k"][-2])
    mask = [P(shape, "i1" if p["mask"] == "i1" else dtype, name="mask")] if p["mask"] else []
    output = te.nn.attention(
        q, k, v, *mask, causal=p["causal"], scale=p["scale"], offset=p["offset"], softcap=p["softcap"]
    )
    return te.function("attention", [q, k, v, *mask], output)


def _inputs(function: te.Function, seed: int) -> list[Array]:
    """A mask, of bits or of numbers, leaves some rows without any column."""
    rng = np.random.default_rng(seed)
    collected = []
    for tensor in function.inputs:
        values, kept = rng.standard_normal(tensor.shape), rng.random(tensor.shape) < 0.6
        if tensor.name == "mask":
            values = kept if tensor.dtype == "i1" else np.where(kept, values, -np.inf)
        collected.append(np.asarray(values, numpy_dtype(tensor.dtype)))
    return collected


def _reference(p: Parameters, q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
    if q.ndim == 4:
        share = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, share, 1), np.repeat(v, share, 1)
    scale = q.shape[-1] ** -0.5 if p["scale"] is None else p["scale"]
    scores = scale * q @ k.swapaxes(-1, -2)
    if p["softcap"]:
        scores = np.tanh(scores / p["softcap"]) * p["softcap"]
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if p["causal"]:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool), p["offset"]), scores, -np.inf)
    powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    return powers / np.maximum(powers.sum(-1, keepdims=True), 1e-300) @ v


def _torch(p: Parameters, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """torch takes no mask beside a causal one, and no softcap."""
    import torch
    from torch.nn import functional

    if p["softcap"]:
        raise NotImplementedError("torch's attention has no softcap")
    causal = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(p["offset"])
    if p["causal"] and mask is not None:
        mask = mask & causal if mask.dtype == torch.bool else mask.masked_fill(~causal, -torch.inf)
    elif p["causal"]:
        mask = causal
    grouped = q.dim() == 4
    return functional.scaled_dot_product_attention(q, k, v, mask, scale=p["scale"], enable_gqa=grouped)


def _turned(rng: random.Random) -> Parameters:
    half, steps = extent(rng, 3), extent(rng, 4)
    actual = (extent(rng, 2), extent(rng, 3), steps, 2 * half + rng.choice([0, 0, 1, 2]))
    table = rng.choice([(steps, half), (actual[0], 1, steps, half)])
    return {"x": actual, "table": table, "interleaved": rng.random() < 0.5}


def _turned_build(dtype: str, p: Parameters) -> te.Function:
    x, cos, sin = P(p["x"], dtype, name="X"), P(p["table"], dtype, name="cos"), P(p["table"], dtype, name="sin")
    return te.function("rotary_embedding", [x, cos, sin], te.nn.rotary_embedding(x, cos, sin, p["interleaved"]))


def _turned_reference(p: Parameters, x: Array, cos: Array, sin: Array) -> Array:
    half, actual = cos.shape[-1], x.copy()
    pairs = (np.s_[..., 0 : 2 * half : 2], np.s_[..., 1 : 2 * half : 2])
    first, second = pairs if p["interleaved"] else (np.s_[..., :half], np.s_[..., half : 2 * half])
    actual[first], actual[second] = x[first] * cos - x[second] * sin, x[second] * cos + x[first] * sin
    return actual


FAMILY = (
    Operator("attention", FLOATS, _sample, _build, _reference, _torch, _inputs),
    Operator("rotary_embedding", FLOATS, _turned, _turned_build, _turned_reference, None),
)
