"""Softmax and the normalisations."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import FLOATS, Array, Operator, Parameters, of_one, one_axis, shape

P = te.placeholder
EPS = 1e-3


def _axes(rng: random.Random) -> Parameters:
    extents = shape(rng)
    count = rng.randint(1, len(extents))
    return {"x": extents, "axis": tuple(rng.sample(range(len(extents)), count)), "keepdims": rng.random() < 0.5}


def _image(rng: random.Random) -> Parameters:
    return {"x": shape(rng, least=3, most=4), "axis": 1}


def _scaled_axes(rng: random.Random) -> Parameters:
    """One axis or several, and which of gamma and beta are there."""
    extents = shape(rng)
    axes = tuple(sorted(rng.sample(range(len(extents)), rng.randint(1, len(extents)))))
    axis = rng.choice([axes, axes[0], axes[0] - len(extents)])
    return {"x": extents, "axis": axis, "scales": rng.choice([(), ("gamma",), ("gamma", "beta"), ("gamma", "beta")])}


def _scaled_image(rng: random.Random) -> Parameters:
    return {**_image(rng), "scales": rng.choice([(), ("gamma",), ("gamma", "beta"), ("gamma", "beta")])}


def _grouped(rng: random.Random) -> Parameters:
    actual = list(shape(rng, least=3, most=4, elements=100))
    groups = rng.choice([1, 2, 3])
    actual[1] = groups * rng.randint(1, 2)
    return {**_scaled_image(rng), "x": tuple(actual), "groups": groups}


def _scaled(name: str, *options: str) -> Any:
    """An operator of X and of those scales that a sample has, with the extents of its axes."""

    def build(dtype: str, p: Parameters) -> te.Function:
        x = P(p["x"], dtype, name="X")
        axes = p["axis"] if isinstance(p["axis"], tuple) else (p["axis"],)
        names = [n for n in p["scales"] if name != "rms_norm" or n == "gamma"]
        scales = {n: P(tuple(p["x"][d] for d in axes), dtype, name=n) for n in names}
        made = getattr(te.nn, name)(x, **scales, eps=EPS, **{o: p[o] for o in options})
        return te.function(name, [x, *scales.values()], list(made) if isinstance(made, tuple) else made)

    return build


def _placed(p: Parameters, value: Any, scales: Any) -> Any:
    """A value times gamma plus beta, along the axes of a sample."""
    axes = [d % len(p["x"]) for d in (p["axis"] if isinstance(p["axis"], tuple) else (p["axis"],))]
    wanted = [n if d in axes else 1 for d, n in enumerate(p["x"])]
    for scale, applied in zip(scales, (lambda v, s: v * s, lambda v, s: v + s), strict=False):
        value = applied(value, scale.reshape(wanted))
    return value


def _group_norm(p: Parameters, x: Array, *scales: Array) -> Array:
    split = x.reshape(x.shape[0], p["groups"], -1)
    return _placed(p, _standard(split, 2).reshape(x.shape), scales)


def _training(p: Parameters, x: Array, *scales: Array) -> tuple[Array, Array, Array]:
    others = tuple(d for d in range(x.ndim) if d != 1)
    return _placed(p, _standard(x, others), scales), x.mean(others), x.var(others)


def _powered(rng: random.Random) -> Parameters:
    return {**_axes(rng), "p": rng.choice([1, 2, 2, 3]), "eps": rng.choice([0, 0, 0.5])}


def _lp(p: Parameters, x: Any) -> Any:
    keep = {"keepdims" if isinstance(x, np.ndarray) else "keepdim": True}
    norm = (abs(x) ** p["p"]).sum(p["axis"], **keep) ** (1 / p["p"])
    return x / (norm.clip(p["eps"]) if p["eps"] else norm)


def _responding(rng: random.Random) -> Parameters:
    return {"x": shape(rng, least=3, most=4), "size": rng.randint(1, 5), "before": rng.choice([None, None, 0, 1])}


def _lrn_build(dtype: str, p: Parameters) -> te.Function:
    x = P(p["x"], dtype, name="X")
    made = te.nn.local_response_norm(x, p["size"], 0.5, 0.75, 1.5, p["before"])
    return te.function("local_response_norm", [x], made)


def _lrn(p: Parameters, x: Any) -> Any:
    before, total = p["size"] // 2 if p["before"] is None else p["before"], x * 0
    for c in range(x.shape[1]):
        low = max(0, c - before)
        total[:, c] = (x[:, low : max(low, c - before + p["size"])] ** 2).sum(1)
    return x / (1.5 + 0.5 / p["size"] * total) ** 0.75


def _build(name: str, scales: int = 0, **options: Any) -> Any:
    """An operator of X and of vectors along its axis."""

    def build(dtype: str, p: Parameters) -> te.Function:
        x = P(p["x"], dtype, name="X")
        names = ("mean", "pos_variance", "gamma", "beta") if name == "batch_norm" else ("gamma", "beta")
        vectors = [P((p["x"][p["axis"]],), dtype, name=n) for n in names[:scales]]
        given = {"axis": p["axis"]} | ({"keepdims": p["keepdims"]} if "keepdims" in p else {})
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


def _layer_norm(p: Parameters, x: Array, *scales: Array) -> Array:
    return _placed(p, _standard(x, p["axis"]), scales)


def _instance_norm(p: Parameters, x: Array, *scales: Array) -> Array:
    return _placed(p, _standard(x, tuple(range(2, x.ndim))), scales)


def _rms_norm(p: Parameters, x: Array, *scales: Array) -> Array:
    return _placed(p, x / np.sqrt((x * x).mean(p["axis"], keepdims=True) + EPS), scales)


def _batch_norm(p: Parameters, x: Array, mean: Array, variance: Array, gamma: Array, beta: Array) -> Array:
    return (x - _along(p, mean)) / np.sqrt(_along(p, variance) + EPS) * _along(p, gamma) + _along(p, beta)


def _torch_last(name: str) -> Any:
    """torch's operator over the last dimensions, to which the axes are moved."""

    def call(p: Parameters, x: Any, *scales: Any) -> Any:
        from torch.nn import functional

        axes = p["axis"] if isinstance(p["axis"], tuple) else (p["axis"],)
        ends = tuple(range(-len(axes), 0))
        last = x.movedim(axes, ends)
        given = {"weight": scales[0] if scales else None, "bias": scales[1] if len(scales) > 1 else None}
        given = given if name == "layer_norm" else {"weight": given["weight"]}
        return getattr(functional, name)(last, last.shape[-len(axes) :], **given, eps=EPS).movedim(ends, axes)

    return call


def _torch_batch_norm(p: Parameters, x: Any, mean: Any, variance: Any, gamma: Any, beta: Any) -> Any:
    from torch.nn import functional

    return functional.batch_norm(x, mean, variance, gamma, beta, eps=EPS)


def _two(scales: Any) -> list[Any]:
    return [*scales, None, None][:2]


def _torch_instance_norm(p: Parameters, x: Any, *scales: Any) -> Any:
    import torch

    return torch.instance_norm(x, *_two(scales), None, None, True, 0.0, EPS, False)


def _torch_group_norm(p: Parameters, x: Any, *scales: Any) -> Any:
    import torch

    return torch.group_norm(x, p["groups"], *_two(scales), EPS)


def _torch_lrn(p: Parameters, x: Any) -> Any:
    from torch.nn import functional

    return functional.local_response_norm(x, p["size"], 0.5, 0.75, 1.5) if p["before"] is None else _lrn(p, x)


FAMILY = (
    Operator("softmax", FLOATS, one_axis, _build("softmax"), _softmax, lambda p, x: x.softmax(p["axis"])),
    Operator(
        "log_softmax",
        FLOATS,
        one_axis,
        _build("log_softmax"),
        lambda p, x: np.log(_softmax(p, x)),
        lambda p, x: x.log_softmax(p["axis"]),
    ),
    Operator(
        "logsumexp", FLOATS, _axes, _build("logsumexp"), _logsumexp, lambda p, x: x.logsumexp(p["axis"], p["keepdims"])
    ),
    Operator("layer_norm", FLOATS, _scaled_axes, _scaled("layer_norm", "axis"), _layer_norm, _torch_last("layer_norm")),
    Operator("rms_norm", FLOATS, _scaled_axes, _scaled("rms_norm", "axis"), _rms_norm, _torch_last("rms_norm")),
    Operator("batch_norm", FLOATS, _image, _build("batch_norm", 4, eps=EPS), _batch_norm, _torch_batch_norm),
    Operator("batch_norm_training", FLOATS, _scaled_image, _scaled("batch_norm_training"), _training, None),
    Operator("instance_norm", FLOATS, _scaled_image, _scaled("instance_norm"), _instance_norm, _torch_instance_norm),
    Operator("group_norm", FLOATS, _grouped, _scaled("group_norm", "groups"), _group_norm, _torch_group_norm),
    Operator("lp_normalize", FLOATS, _powered, of_one("lp_normalize", "p", "axis", "eps"), _lp, _lp),
    Operator("local_response_norm", FLOATS, _responding, _lrn_build, _lrn, _torch_lrn),
)
