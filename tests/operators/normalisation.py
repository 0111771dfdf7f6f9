"""Softmax and the normalisations."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import FLOATS, Array, Operator, Parameters, shape

P = te.placeholder
EPS = 1e-3


def _one_axis(rng: random.Random) -> Parameters:
    found = shape(rng)
    return {"x": found, "axis": rng.randrange(-len(found), len(found))}


def _axes(rng: random.Random) -> Parameters:
    found = shape(rng)
    count = rng.randint(1, len(found))
    return {"x": found, "axis": tuple(rng.sample(range(len(found)), count)), "keepdims": rng.random() < 0.5}


def _image(rng: random.Random) -> Parameters:
    return {"x": shape(rng, least=3, most=4), "axis": 1}


def _build(name: str, scales: int = 0, **options: Any) -> Any:
    """An operator of X and of vectors along its axis."""

    def build(dtype: str, p: Parameters) -> te.Function:
        x = P(p["x"], dtype, name="X")
        names = ("mean", "pos_variance", "gamma", "beta") if name == "batch_norm" else ("gamma", "beta")
        vectors = [P((p["x"][p["axis"]],), dtype, name=n) for n in names[:scales]]
        given = {"axis": p["axis"]} if name != "instance_norm" else {}
        given |= {"keepdims": p["keepdims"]} if "keepdims" in p else {}
        return te.function(name, [x, *vectors], getattr(te.nn, name)(x, *vectors, **given, **options))

    return build


def _along(p: Parameters, vector: Any) -> Any:
    return vector.reshape([-1 if d == p["axis"] % len(p["x"]) else 1 for d in range(len(p["x"]))])


def _softmax(p: Parameters, x: Array) -> Array:
    powers = np.exp(x - x.max(p["axis"], keepdims=True))
    return powers / powers.sum(p["axis"], keepdims=True)


def _logsumexp(p: Parameters, x: Array) -> Array:
    return np.log(np.exp(x).sum(p["axis"], keepdims=p["keepdims"]))


def _standard(x: Any, axis: Any) -> Any:
    middle = x.mean(axis, keepdims=True)
    return (x - middle) / np.sqrt(((x - middle) ** 2).mean(axis, keepdims=True) + EPS)


def _layer_norm(p: Parameters, x: Array, gamma: Array, beta: Array) -> Array:
    return _standard(x, p["axis"]) * _along(p, gamma) + _along(p, beta)


def _instance_norm(p: Parameters, x: Array, gamma: Array, beta: Array) -> Array:
    return _standard(x, tuple(range(2, x.ndim))) * _along(p, gamma) + _along(p, beta)


def _rms_norm(p: Parameters, x: Array, gamma: Array) -> Array:
    return x / np.sqrt((x * x).mean(p["axis"], keepdims=True) + EPS) * _along(p, gamma)


def _batch_norm(p: Parameters, x: Array, mean: Array, variance: Array, gamma: Array, beta: Array) -> Array:
    return (x - _along(p, mean)) / np.sqrt(_along(p, variance) + EPS) * _along(p, gamma) + _along(p, beta)


def _torch_softmax(p: Parameters, x: Any) -> Any:
    return x.softmax(p["axis"])


def _torch_log_softmax(p: Parameters, x: Any) -> Any:
    return x.log_softmax(p["axis"])


def _torch_logsumexp(p: Parameters, x: Any) -> Any:
    return x.logsumexp(p["axis"], p["keepdims"])


def _torch_layer_norm(p: Parameters, x: Any, gamma: Any, beta: Any) -> Any:
    from torch.nn import functional

    last = x.movedim(p["axis"], -1)
    return functional.layer_norm(last, last.shape[-1:], gamma, beta, EPS).movedim(-1, p["axis"])


def _torch_rms_norm(p: Parameters, x: Any, gamma: Any) -> Any:
    from torch.nn import functional

    last = x.movedim(p["axis"], -1)
    return functional.rms_norm(last, last.shape[-1:], gamma, EPS).movedim(-1, p["axis"])


def _torch_batch_norm(p: Parameters, x: Any, mean: Any, variance: Any, gamma: Any, beta: Any) -> Any:
    from torch.nn import functional

    return functional.batch_norm(x, mean, variance, gamma, beta, eps=EPS)


def _torch_instance_norm(p: Parameters, x: Any, gamma: Any, beta: Any) -> Any:
    import torch

    return torch.instance_norm(x, gamma, beta, None, None, True, 0.0, EPS, False)


FAMILY = (
    Operator("softmax", FLOATS, _one_axis, _build("softmax"), _softmax, _torch_softmax),
    Operator(
        "log_softmax",
        FLOATS,
        _one_axis,
        _build("log_softmax"),
        lambda p, x: np.log(_softmax(p, x)),
        _torch_log_softmax,
    ),
    Operator("logsumexp", FLOATS, _axes, _build("logsumexp"), _logsumexp, _torch_logsumexp),
    Operator("layer_norm", FLOATS, _one_axis, _build("layer_norm", 2, eps=EPS), _layer_norm, _torch_layer_norm),
    Operator("rms_norm", FLOATS, _one_axis, _build("rms_norm", 1, eps=EPS), _rms_norm, _torch_rms_norm),
    Operator("batch_norm", FLOATS, _image, _build("batch_norm", 4, eps=EPS), _batch_norm, _torch_batch_norm),
    Operator(
        "instance_norm", FLOATS, _image, _build("instance_norm", 2, eps=EPS), _instance_norm, _torch_instance_norm
    ),
)
