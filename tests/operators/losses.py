"""Losses: of classes, some of which are to be ignored or are none, and of probabilities."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import Array, Operator, Parameters, random_inputs, shape
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
        "weight": rng.random() < 0.4,
    }


def _of_classes(rng: random.Random) -> Parameters:
    return {**_sampled(rng), "target": rng.choice(INDICES)}


def _of_targets(name: str, dtype: str, p: Parameters) -> te.Function:
    logits = p["shape"]
    x = P(logits, dtype, name="X")
    along = min(1, len(logits) - 1)
    if p["target"] == "probabilities":
        t = P(logits, dtype, name="posT")
    else:
        t = P((*logits[:along], *logits[along + 1 :]), p["target"], name="I")
    weight = [P((logits[along],), dtype, name="posW")] if p["weight"] else []
    return te.function(name, [x, t, *weight], getattr(te.nn, name)(x, t, p["reduction"], IGNORED, *weight))


def _reduced(loss: Array, count: Any, reduction: str) -> Any:
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / count


def _cross_entropy_reference(p: Parameters, x: Array, t: Array, *weight: Array) -> Any:
    along = min(1, x.ndim - 1)
    top = x.max(along, keepdims=True)
    log = x - top - np.log(np.exp(x - top).sum(along, keepdims=True))
    if p["target"] == "probabilities":
        factors = weight[0].reshape([-1 if d == along else 1 for d in range(x.ndim)]) if weight else 1
        loss = -(t * log * factors).sum(along)
        return _reduced(loss, loss.size, p["reduction"])
    return _nll_reference(p, log, t, *weight)


def _nll_reference(p: Parameters, log: Array, t: Array, *weight: Array) -> Any:
    along = min(1, log.ndim - 1)
    counts = (t >= 0) & (t < log.shape[along]) & (t != IGNORED)
    at = np.where(counts, t, 0)
    factors = np.where(counts, weight[0][at] if weight else 1.0, 0.0)
    loss = -np.take_along_axis(log, np.expand_dims(at, along), along).squeeze(along) * factors
    return _reduced(loss, factors.sum(), p["reduction"])


def _cross_entropy_torch(p: Parameters, x: Any, t: Any, weight: Any = None, name: str = "cross_entropy") -> Any:
    from torch.nn import functional

    if p["target"] != "probabilities":
        t = t.long()
        counts = (t >= 0) & (t < x.shape[min(1, x.ndim - 1)]) & (t != IGNORED)
        t = t.where(counts, t.new_tensor(-100))  # what torch ignores by itself
    return getattr(functional, name)(x, t, weight, reduction=p["reduction"])


def _pairs(rng: random.Random) -> Parameters:
    return {"shape": shape(rng, 0, 4, 200), "reduction": rng.choice(REDUCTIONS)}


def _pair(name: str, dtype: str, p: Parameters) -> te.Function:
    x, t = P(p["shape"], dtype, name="posX" if name == "bce_loss" else "X"), P(p["shape"], dtype, name="posT")
    options = {n: p[n] for n in OPTIONS.get(name, ())}
    return te.function(name, [x, t], getattr(te.nn, name)(x, t, p["reduction"], **options))


OPTIONS = {"smooth_l1_loss": ("beta",), "bce_loss": ("logits",), "kl_div": ("log_target",)}


def _optioned(rng: random.Random) -> Parameters:
    flags = {"logits": rng.random() < 0.5, "log_target": rng.random() < 0.5}
    return {**_pairs(rng), "beta": rng.choice([1.0, 0.5, 0]), **flags}


def _shares(function: te.Function, seed: int) -> list[Array]:
    """Numbers between 0 and 1."""
    return [np.asarray(a / (1 + a), a.dtype) for a in (np.abs(a) for a in random_inputs(function, seed))]


def _each(p: Parameters, x: Array, t: Array, name: str) -> Any:
    gap = np.abs(x - t)
    if name == "mse_loss":
        loss = gap**2
    elif name == "smooth_l1_loss":
        loss = np.where(gap < p["beta"], gap**2 / (2 * p["beta"] or 1), gap - p["beta"] / 2)
    elif name == "bce_loss":
        x = 1 / (1 + np.exp(-x)) if p["logits"] else x
        loss = -(t * np.log(x) + (1 - t) * np.log(1 - x))
    else:
        loss = np.exp(t) * (t - x) if p["log_target"] else t * (np.log(t) - x)
    return _reduced(loss, x.size, p["reduction"])


def _each_torch(p: Parameters, x: Any, t: Any, name: str) -> Any:
    from torch.nn import functional

    if name == "bce_loss":
        name = "binary_cross_entropy_with_logits" if p["logits"] else "binary_cross_entropy"
        return getattr(functional, name)(x, t, reduction=p["reduction"])
    options = {n: p[n] for n in OPTIONS.get(name, ())}
    return getattr(functional, name)(x, t, reduction=p["reduction"], **options)


FAMILY = (
    Operator(
        "cross_entropy",
        DTYPES,
        _sampled,
        partial(_of_targets, "cross_entropy"),
        _cross_entropy_reference,
        _cross_entropy_torch,
        indexed_inputs,
    ),
    Operator(
        "nll_loss",
        DTYPES,
        _of_classes,
        partial(_of_targets, "nll_loss"),
        _nll_reference,
        partial(_cross_entropy_torch, name="nll_loss"),
        indexed_inputs,
    ),
    *(
        Operator(n, DTYPES, _optioned, partial(_pair, n), partial(_each, name=n), partial(_each_torch, name=n), _shares)
        for n in ("mse_loss", "smooth_l1_loss", "bce_loss", "kl_div")
    ),
)
