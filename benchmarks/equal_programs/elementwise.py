"""Activations, literals and views."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.equal_programs.family import Array, Family, apart, different, exact, speed
from compiler import te
from compiler.te import Tensor

nn: Any = te.nn


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def _gelu_by_ops(x: Tensor) -> Tensor:
    return nn.mul(nn.mul(x, 0.5), nn.add(nn.erf(nn.mul(x, 0.5**0.5)), 1.0))


def _gelu_halved(x: Tensor) -> Tensor:
    """x (1 + erf(x / sqrt(2))), divided by 2 in the end."""
    return nn.div(nn.mul(x, nn.add(nn.erf(nn.mul(x, 0.5**0.5)), 1.0)), 2.0)


def _of_gelu(x: Array) -> Array:
    from math import erf

    return x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2


def _mixed(x: Tensor, y: Tensor) -> Tensor:
    return te.compute(x.shape, lambda i, j: x[i, j] * 2.0 + (x[i, j] - y[i, j]) * 0.25)


def _literals(x: Tensor, y: Tensor) -> Tensor:
    """2x + (x - y) / 4, with x + x for 2x, x + -y for the difference, and a division by 4."""
    return te.compute(x.shape, lambda i, j: (x[i, j] + x[i, j]) + (x[i, j] + -y[i, j]) / 4.0)


def _with_neutrals(x: Tensor, y: Tensor) -> Tensor:
    """2x + (x - y) / 4 with operations that change nothing: times 1, minus 0, divided by 1, negated twice."""
    return te.compute(x.shape, lambda i, j: (x[i, j] * 1.0 - 0.0) * 2.0 - -((x[i, j] - y[i, j]) / 1.0 * 0.25))


def _joined(x: Tensor, y: Tensor) -> Tensor:
    """e^x + e^y by one exp of x and y side by side, cut into slices."""
    n = x.shape[1]
    both = nn.exp(nn.concat([x, y], 1))
    first, second = (nn.slice(both, (0, at), (None, at + n)) for at in (0, n))
    return nn.add(first, second)


FAMILIES = (
    Family(
        "silu",
        nn.silu,
        lambda x: x * _sigmoid(x),
        {"X": (4, 9)},
        {"X": (512, 512)},
        {
            "x sigmoid(x)": speed(lambda x: nn.mul(x, nn.sigmoid(x))),
            "x / (1 + exp(-x))": apart(lambda x: nn.div(x, nn.add(nn.exp(nn.neg(x)), 1.0))),
            "hardswish": different(nn.hardswish),
        },
    ),
    Family(
        "gelu",
        nn.gelu,
        _of_gelu,
        {"X": (4, 9)},
        {"X": (512, 512)},
        {
            "mul, erf, add, mul": speed(_gelu_by_ops),
            "halved in the end": speed(_gelu_halved),
            "by tanh": different(lambda x: nn.gelu(x, "tanh"), scale=2.0),
        },
    ),
    Family(
        "residual",
        lambda x, y: nn.add(nn.relu(y), x),
        lambda x, y: np.maximum(y, 0) + x,
        {"X": (4, 9), "Y": (4, 9)},
        {"X": (512, 512), "Y": (512, 512)},
        {
            "in the other order": exact(lambda x, y: nn.add(x, nn.relu(y))),
            "relu by maximum": exact(lambda x, y: nn.add(x, nn.maximum(y, 0.0))),
            "relu of the sum": different(lambda x, y: nn.relu(nn.add(x, y))),
        },
    ),
    Family(
        "literals",
        _mixed,
        lambda x, y: 2 * x + (x - y) / 4,
        {"X": (4, 9), "Y": (4, 9)},
        {"X": (512, 512), "Y": (512, 512)},
        {
            "sums, divisions, negations": exact(_literals),
            "neutral operations": exact(_with_neutrals),
            "the difference turned round": different(lambda x, y: nn.add(nn.mul(x, 2.0), nn.mul(nn.sub(y, x), 0.25))),
        },
    ),
    Family(
        "views",
        lambda x, y: nn.add(nn.exp(x), nn.exp(y)),
        lambda x, y: np.exp(x) + np.exp(y),
        {"X": (4, 6), "Y": (4, 6)},
        {"X": (512, 512), "Y": (512, 512)},
        {
            "joined, then sliced": exact(_joined),
            "of flat tensors": exact(
                lambda x, y: nn.reshape(nn.add(nn.exp(nn.flatten(x)), nn.exp(nn.flatten(y))), x.shape)
            ),
            "reshaped over a transpose": different(
                lambda x, y: nn.add(nn.exp(x), nn.exp(nn.reshape(nn.transpose(y, (1, 0)), x.shape)))
            ),
        },
    ),
)
