"""Softmax, norms and reductions along rows."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.equal_programs.family import Array, Family, Spelled, apart, choice, different, exact, speed
from compiler import te
from compiler.te import Tensor

nn: Any = te.nn


def _by_ops(x: Tensor) -> Tensor:
    """Softmax along rows as torch decomposes it: amax, sub, exp, sum, div."""
    powers = nn.exp(nn.sub(x, nn.max(x, 1, keepdims=True)))
    return nn.div(powers, nn.sum(powers, 1, keepdims=True))


def _by_reciprocal(x: Tensor) -> Tensor:
    powers = nn.exp(nn.sub(x, nn.max(x, 1, keepdims=True)))
    return nn.mul(powers, nn.reciprocal(nn.sum(powers, 1, keepdims=True)))


def _powers_twice(x: Tensor) -> Tensor:
    """Softmax along rows that computes e^(x - maximum) for the sum, and again for the result."""
    m, n = x.shape
    k = te.reduce_axis(n, "k")
    top = te.compute((m,), lambda i: te.max(x[i, k], axis=k), name="top")
    total = te.compute((m,), lambda i: te.sum(te.exp(x[i, k] - top[i]), axis=k), name="total")
    return te.compute((m, n), lambda i, j: te.exp(x[i, j] - top[i]) * (1.0 / total[i]), name="soft")


def _logarithm(x: Tensor) -> Tensor:
    """Softmax along rows as e^(log_softmax(x))."""
    return nn.exp(nn.log_softmax(x, 1))


def _online(combine: Callable[[Any, Any], Any]) -> Spelled:
    """Softmax along rows with the maximum and the sum in one reduction, by `combine` of two pairs (maximum, sum).
    Source: Milakov and Gimelshein, 2018."""
    online = te.combiner(combine, identity=(-math.inf, 0.0))

    def made(x: Tensor) -> Tensor:
        m, n = x.shape
        k, one = te.reduce_axis(n, "k"), te.const(1.0, "f32")
        top, total = te.compute((m,), lambda i: te.reduce(online, (x[i, k], one), axis=k), name="online")
        return te.compute((m, n), lambda i, j: te.exp(x[i, j] - top[i]) * (1.0 / total[i]), name="soft")

    return made


def _scaled_sums(a: Any, b: Any) -> Any:
    """Combine two pairs (maximum, sum): multiply both sums by e^(own maximum - greater maximum), and add them."""
    top = te.maximum(b[0], a[0])
    return top, te.exp(b[0] - top) * b[1] + a[1] * te.exp(a[0] - top)


def _selected_sums(a: Any, b: Any) -> Any:
    """Combine two pairs (maximum, sum): as `_scaled_sums`, but a sum whose maximum is the greater one is not
    multiplied, also if that is infinite."""
    top = te.maximum(a[0], b[0])
    first, second = (te.select(te.equal(x[0], top), x[1], x[1] * te.exp(x[0] - top)) for x in (a, b))
    return top, first + second


def _transposed(x: Tensor) -> Tensor:
    return nn.transpose(nn.softmax(nn.transpose(x, (1, 0)), 0), (1, 0))


def _without_maximum(x: Tensor) -> Tensor:
    powers = nn.exp(x)
    return nn.mul(powers, nn.reciprocal(nn.sum(powers, 1, keepdims=True)))


def _of_softmax(x: Array) -> Array:
    x = x.astype(np.float64)
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _layer_norm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    return nn.layer_norm(x, g, b)


def _scaled(x: Tensor, g: Tensor, b: Tensor, deviation: Callable[[Tensor, Tensor], Tensor], eps: float) -> Tensor:
    """A layer norm (x - mean) * rsqrt(variance + eps) * g + b along rows, with the variance from `deviation(x - mean,
    mean)`."""
    mean = nn.mean(x, 1, keepdims=True)
    centred = nn.sub(x, mean)
    scale = nn.rsqrt(nn.add(deviation(centred, mean), eps))
    return nn.add(nn.mul(nn.mul(centred, scale), g), b)


def _by_squares(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    """A layer norm with the variance as the mean of (x - mean)^2, as torch decomposes it."""
    return _scaled(x, g, b, lambda centred, mean: nn.mean(nn.square(centred), 1, keepdims=True), 1e-5)


def _by_reshape(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    m, n = x.shape
    return nn.reshape(nn.layer_norm(nn.reshape(x, (1, m, n)), g, b), (m, n))


def _by_moments(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    """A different program: a layer norm with the variance as E[x^2] - mean^2, whose digits cancel."""
    return _scaled(
        x, g, b, lambda centred, mean: nn.sub(nn.mean(nn.square(x), 1, keepdims=True), nn.square(mean)), 1e-5
    )


def _other_eps(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    """A different program: a layer norm that adds eps to the root of the variance, not below it."""
    mean = nn.mean(x, 1, keepdims=True)
    centred = nn.sub(x, mean)
    root = nn.sqrt(nn.mean(nn.square(centred), 1, keepdims=True))
    return nn.add(nn.mul(nn.div(centred, nn.add(root, 1e-5)), g), b)


def _unbiased(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    """A different program: a layer norm whose variance is divided by n - 1."""
    n = x.shape[1]
    return _scaled(
        x, g, b, lambda centred, mean: nn.mul(nn.sum(nn.square(centred), 1, keepdims=True), 1 / (n - 1)), 1e-5
    )


def _of_layer_norm(x: Array, g: Array, b: Array) -> Array:
    x = x.astype(np.float64)
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


def _rms_by_ops(x: Tensor, g: Tensor) -> Tensor:
    return nn.mul(nn.mul(x, nn.rsqrt(nn.add(nn.mean(nn.square(x), 1, keepdims=True), 1e-6))), g)


def _rms_by_norm(x: Tensor, g: Tensor) -> Tensor:
    """An RMS norm that divides x by the root, instead of multiplying it by rsqrt."""
    return nn.mul(nn.div(x, nn.sqrt(nn.add(nn.mean(nn.square(x), 1, keepdims=True), 1e-6))), g)


def _sum(x: Tensor) -> Tensor:
    return nn.sum(x, (0, 1))


def _sum_of_flat(x: Tensor) -> Tensor:
    return nn.sum(nn.reshape(x, (-1, x.shape[2])), 0)


def _maxima(x: Tensor) -> Tensor:
    return nn.max(x, (1, 2))


def _tenth(x: Tensor) -> Tensor:
    return nn.div(nn.sum(x, 1), float(x.shape[1]))


FAMILIES = (
    Family(
        "softmax",
        nn.softmax,
        _of_softmax,
        {"X": (4, 9)},
        {"X": (64, 1024)},
        {
            "max, exp, sum, reciprocal": speed(_by_reciprocal),
            "of a transpose": exact(_transposed),
            "max, exp, sum, division": apart(_by_ops),
            "powers computed twice": exact(_powers_twice),
            "in one pass": choice(_online(_scaled_sums)),
            "in one pass, equal maxima apart": speed(_online(_selected_sums)),
            "by its logarithm": choice(_logarithm),
            "without the maximum": different(_without_maximum, scale=100.0),
            "along the other axis": different(lambda x: nn.softmax(x, 0)),
        },
    ),
    Family(
        "layer norm",
        _layer_norm,
        _of_layer_norm,
        {"X": (4, 9), "g": (9,), "b": (9,)},
        {"X": (128, 768), "g": (768,), "b": (768,)},
        {
            "of a reshape": exact(_by_reshape),
            "mean of squared deviations": apart(_by_squares),
            "E[x^2] - mean^2": different(_by_moments, scale=0.01, shift=100.0),
            "eps behind the root": different(_other_eps, scale=1e-3),
            "n - 1 in the variance": different(_unbiased),
        },
    ),
    Family(
        "rms norm",
        lambda x, g: nn.rms_norm(x, g),
        lambda x, g: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * g,
        {"X": (4, 9), "g": (9,)},
        {"X": (64, 1024), "g": (1024,)},
        {
            "square, mean, rsqrt": speed(_rms_by_ops),
            "over a root": apart(_rms_by_norm),
        },
    ),
    Family(
        "sum of rows",
        _sum,
        lambda x: x.sum((0, 1)),
        {"X": (3, 4, 5)},
        {"X": (64, 64, 256)},
        {
            "of a reshape": exact(_sum_of_flat),
            "one axis after the other": apart(lambda x: nn.sum(nn.sum(x, 0), 0)),
            "of all but the last row": different(
                lambda x: nn.sum(nn.slice(x, (0, 0, 0), (None, x.shape[1] - 1, None)), (0, 1))
            ),
        },
    ),
    Family(
        "maxima of images",
        _maxima,
        lambda x: x.max((1, 2)),
        {"X": (5, 3, 4)},
        {"X": (256, 28, 28)},
        {
            "one axis after the other": choice(lambda x: nn.max(nn.max(x, 2), 1)),
            "of a reshape": exact(lambda x: nn.max(nn.reshape(x, (x.shape[0], -1)), 1)),
            "of columns, the greatest sum": different(lambda x: nn.max(nn.sum(x, 2), 1)),
        },
    ),
    Family(
        "mean",
        lambda x: nn.mean(x, 1),
        lambda x: x.mean(1),
        {"X": (5, 8)},
        {"X": (1024, 1024)},
        {
            "sum over a power of two": exact(_tenth),
            "elements divided before": apart(lambda x: nn.sum(nn.mul(x, 1.0 / x.shape[1]), 1)),
            "over one less": different(lambda x: nn.div(nn.sum(x, 1), float(x.shape[1] - 1))),
        },
    ),
)
