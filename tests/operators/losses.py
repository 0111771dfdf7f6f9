"""Losses: of classes, some of which are to be ignored or are none, and of probabilities."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import Array, Operator, Parameters, shape
from tests.operators.gather import INDICES, indexed_inputs

P = te.placeholder
DTYPES = ("f16", "bf16", "f32", "f64")
REDUCTIONS = ("mean", "sum", "none")
IGNORED = 2


def _sampled(rng: random.Random) -> Parameters:
    return {
        "shape": shape(rng, most=4, elements=120),
        "reduction": rng.choice(REDUCTIONS),
        "target": rng.choice([*INDICES, "probabilities", "probabilities"]),
    }


def _cross_entropy(dtype: str, p: Parameters) -> te.Function:
    logits = p["shape"]
    x = P(logits, dtype, name="X")
    along = min(1, len(logits) - 1)
    if p["target"] == "probabilities":
        t = P(logits, dtype, name="posT")
    else:
        t = P((*logits[:along], *logits[along + 1 :]), p["target"], name="I")
    return te.function("cross_entropy", [x, t], te.nn.cross_entropy(x, t, p["reduction"], IGNORED))


def _reduced(loss: Array, count: Any, reduction: str) -> Any:
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / count


def _cross_entropy_reference(p: Parameters, x: Array, t: Array) -> Any:
    along = min(1, x.ndim - 1)
    top = x.max(along, keepdims=True)
    log = x - top - np.log(np.exp(x - top).sum(along, keepdims=True))
    if p["target"] == "probabilities":
        loss = -(t * log).sum(along)
        return _reduced(loss, loss.size, p["reduction"])
    counts = (t >= 0) & (t < x.shape[along]) & (t != IGNORED)
    at = np.expand_dims(np.where(counts, t, 0), along)
    loss = np.where(counts, -np.take_along_axis(log, at, along).squeeze(along), 0.0)
    return _reduced(loss, np.float64(counts.sum()), p["reduction"])


def _cross_entropy_torch(p: Parameters, x: Any, t: Any) -> Any:
    from torch.nn import functional

    if p["target"] != "probabilities":
        t = t.long()
        counts = (t >= 0) & (t < x.shape[min(1, x.ndim - 1)]) & (t != IGNORED)
        t = t.where(counts, t.new_tensor(-100))  # what torch ignores by itself
    return functional.cross_entropy(x, t, reduction=p["reduction"])


def _pairs(rng: random.Random) -> Parameters:
    return {"shape": shape(rng, 0, 4, 200), "reduction": rng.choice(REDUCTIONS)}


def _mse_loss(dtype: str, p: Parameters) -> te.Function:
    x, t = P(p["shape"], dtype, name="X"), P(p["shape"], dtype, name="T")
    return te.function("mse_loss", [x, t], te.nn.mse_loss(x, t, p["reduction"]))


def _mse_loss_reference(p: Parameters, x: Array, t: Array) -> Any:
    return _reduced((x - t) ** 2, x.size, p["reduction"])


def _mse_loss_torch(p: Parameters, x: Any, t: Any) -> Any:
    from torch.nn import functional

    return functional.mse_loss(x, t, reduction=p["reduction"])


FAMILY = (
    Operator(
        "cross_entropy",
        DTYPES,
        _sampled,
        _cross_entropy,
        _cross_entropy_reference,
        _cross_entropy_torch,
        indexed_inputs,
    ),
    Operator("mse_loss", DTYPES, _pairs, _mse_loss, _mse_loss_reference, _mse_loss_torch),
)
