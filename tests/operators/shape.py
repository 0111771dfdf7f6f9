"""Operators that move elements."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import EVERY, Operator, Parameters, alike, of_one, shape

P = te.placeholder


def _permuted(rng: random.Random) -> Parameters:
    extents = shape(rng)
    perm = tuple(rng.sample(range(len(extents)), len(extents)))
    return {"shape": extents, "perm": rng.choice([None, perm, perm])}


def _transpose_torch(p: Parameters, x: Any) -> Any:
    return x.permute(p["perm"] or tuple(range(x.ndim))[::-1])


def _reshaped(rng: random.Random) -> Parameters:
    extents = shape(rng)
    factors = [f for n in extents for f in ((2, n // 2) if n % 2 == 0 and rng.random() < 0.5 else (n,))]
    rng.shuffle(factors)
    wanted = [*factors, 1] if rng.random() < 0.3 else factors
    if len(wanted) > 1 and rng.random() < 0.5:
        wanted = [wanted[0] * wanted[1], *wanted[2:]]
    if rng.random() < 0.3:
        wanted[rng.randrange(len(wanted))] = -1
    return {"shape": extents, "to": tuple(wanted)}


def _flattened(rng: random.Random) -> Parameters:
    extents = shape(rng)
    return {"shape": extents, "start": rng.randrange(len(extents))}


def _expanded(rng: random.Random) -> Parameters:
    extents = shape(rng)
    return {"shape": extents, "axis": rng.randint(-len(extents) - 1, len(extents))}


def _squeezed(rng: random.Random) -> Parameters:
    actual = tuple(1 if rng.random() < 0.4 else n for n in shape(rng))
    ones = [d for d, n in enumerate(actual) if n == 1]
    return {"shape": actual, "axis": rng.choice([None, tuple(ones)])}


def _broadcast(rng: random.Random) -> Parameters:
    target = shape(rng)
    last_extents = target[rng.randint(0, len(target)) :]
    return {"shape": tuple(1 if rng.random() < 0.3 else n for n in last_extents), "to": target}


def _several(rng: random.Random) -> Parameters:
    actual = list(shape(rng, elements=60))
    axis = rng.randrange(len(actual))
    shapes = [
        tuple(rng.randint(1, 4) if d == axis else n for d, n in enumerate(actual)) for _ in range(rng.randint(1, 4))
    ]
    return {"shapes": shapes, "axis": axis - rng.choice([0, len(actual)])}


def _alike(rng: random.Random) -> Parameters:
    extents = shape(rng, most=3, elements=60)
    return {"shapes": [extents] * rng.randint(1, 4), "axis": rng.randint(-len(extents) - 1, len(extents))}


def _joined(name: str) -> Any:
    def build(dtype: str, p: Parameters) -> te.Function:
        parts = [P(s, dtype, name=f"X{n}") for n, s in enumerate(p["shapes"])]
        return te.function(name, parts, getattr(te.nn, name)(parts, p["axis"]))

    return build


def _sliced(rng: random.Random) -> Parameters:
    extents = shape(rng)
    while True:
        steps = [rng.choice([1, 1, 2, 3, -1, -2]) for _ in extents]
        starts = [rng.randrange(-n, n) for n in extents]
        stops = [rng.choice([None, rng.randrange(-n, n + 1)]) for n in extents]
        if all(range(n)[slice(*part)] for n, *part in zip(extents, starts, stops, steps, strict=True)):
            return {"shape": extents, "starts": starts, "stops": stops, "steps": steps}


def _cut(p: Parameters, x: Any) -> Any:
    return x[tuple(map(slice, p["starts"], p["stops"], p["steps"]))]


def _cut_torch(p: Parameters, x: Any) -> Any:
    """torch has no negative steps: it picks the places one by one."""
    import torch

    for d, part in enumerate(zip(p["starts"], p["stops"], p["steps"], strict=True)):
        x = x.index_select(d, torch.tensor(range(x.shape[d])[slice(*part)]))
    return x


def _turned(rng: random.Random) -> Parameters:
    extents = shape(rng)
    axes = tuple(rng.sample(range(len(extents)), rng.randint(1, len(extents))))
    return {"shape": extents, "axis": rng.choice([axes, axes[0], None])}


def _tiled(rng: random.Random) -> Parameters:
    extents = shape(rng, most=3, elements=30)
    return {"shape": extents, "repeats": tuple(rng.randint(1, 3) for _ in extents)}


def _torch(name: str) -> Any:
    """torch's function of tensors and an axis."""

    def call(p: Parameters, *parts: Any) -> Any:
        import torch

        return getattr(torch, name)(parts, p["axis"])

    return call


def _every_axis(p: Parameters) -> Any:
    return tuple(range(len(p["shape"]))) if p["axis"] is None else p["axis"]


def _flip_torch(p: Parameters, x: Any) -> Any:
    axes = _every_axis(p)
    return x.flip([axes] if isinstance(axes, int) else list(axes))


FAMILY = (
    Operator(
        "transpose",
        EVERY,
        _permuted,
        of_one("transpose", "perm"),
        lambda p, x: x.transpose(p["perm"]),
        _transpose_torch,
    ),
    Operator(
        "reshape",
        EVERY,
        _reshaped,
        of_one("reshape", "to"),
        lambda p, x: x.reshape(p["to"]),
        lambda p, x: x.reshape(p["to"]),
    ),
    Operator(
        "flatten",
        EVERY,
        _flattened,
        of_one("flatten", "start"),
        lambda p, x: x.reshape(*x.shape[: p["start"]], -1),
        lambda p, x: x.flatten(p["start"]),
    ),
    Operator("expand_dims", EVERY, _expanded, *alike("expand_dims", "axis", torch="unsqueeze")),
    Operator(
        "squeeze",
        EVERY,
        _squeezed,
        of_one("squeeze", "axis"),
        lambda p, x: x.squeeze(p["axis"]),
        lambda p, x: x.squeeze() if p["axis"] is None else x.squeeze(p["axis"]),
    ),
    Operator("broadcast_to", EVERY, _broadcast, *alike("broadcast_to", "to")),
    Operator("concat", EVERY, _several, _joined("concat"), lambda p, *x: np.concatenate(x, p["axis"]), _torch("cat")),
    Operator("stack", EVERY, _alike, _joined("stack"), lambda p, *x: np.stack(x, p["axis"]), _torch("stack")),
    Operator("slice", EVERY, _sliced, of_one("slice", "starts", "stops", "steps"), _cut, _cut_torch),
    Operator("flip", EVERY, _turned, of_one("flip", "axis"), lambda p, x: np.flip(x, p["axis"]), _flip_torch),
    Operator("tile", EVERY, _tiled, *alike("tile", "repeats")),
)
