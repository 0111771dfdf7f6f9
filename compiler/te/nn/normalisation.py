"""Softmax and the normalisations, each in f32 where its dtype is narrower, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.common import Indices, accumulator, check_axis, check_equal, check_flag, check_float, check_rank
from compiler.te.nn.reduction import Axes, axes_of, reduced
from compiler.te.tensor import Tensor

Value: TypeAlias = Callable[[Indices], Expr]
"""An element as a function of its index."""


def _wide(x: Tensor) -> Value:
    """Reads of a tensor in the dtype of its sums."""
    return lambda at: e.cast(x[at], accumulator(x.dtype))


def _over(x: Tensor, along: Sequence[int], combine: e.Reduction, value: Value, name: str) -> Tensor:
    """A reduction of values over some dimensions of a tensor's shape, kept with extent 1."""
    return reduced(x.shape, along, True, lambda at, axes: combine(value(at), axes), name)


def _less(i: Indices, along: Sequence[int]) -> Indices:
    return tuple(0 if d in along else index for d, index in enumerate(i))


def _map(x: Tensor, value: Value, name: str) -> Tensor:
    """A tensor of x's shape, element by element."""
    return compute(x.shape, lambda *i: value(i), name)


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    """Y[i] = exp(X[i] - max X) * (1 / sum exp(X - max X)), along one axis: one division a sum. Raises TeError."""
    along = [check_axis("softmax", check_float("softmax", x), axis)]
    value = _wide(x)
    top = _over(x, along, e.max, value, f"{name}.max")
    powers = _map(x, lambda i: e.exp(value(i) - top[_less(i, along)]), f"{name}.exp")
    total = _over(x, along, e.sum, lambda at: powers[at], f"{name}.sum")
    return _map(x, lambda i: e.cast(powers[i] * (1.0 / total[_less(i, along)]), x.dtype), name)


def log_softmax(x: Tensor, axis: int = -1, name: str = "log_softmax") -> Tensor:
    """Y[i] = X[i] - max X - log sum exp(X - max X), along one axis. Raises TeError."""
    along = [check_axis("log_softmax", check_float("log_softmax", x), axis)]
    value = _wide(x)
    top = _over(x, along, e.max, value, f"{name}.max")
    total = _over(x, along, e.sum, lambda at: e.exp(value(at) - top[_less(at, along)]), f"{name}.sum")

    def element(i: Indices) -> Expr:
        less = _less(i, along)
        return e.cast(value(i) - top[less] - e.log(total[less]), x.dtype)

    return _map(x, element, name)


def logsumexp(x: Tensor, axis: Axes = -1, keepdims: bool = False, name: str = "logsumexp") -> Tensor:
    """Y = max X + log sum exp(X - max X), over the given axes, which are dropped or kept with extent 1.

    Where the maximum is infinite it is the result. Raises TeError.
    """
    along = axes_of("logsumexp", check_float("logsumexp", x), axis)
    check_flag("logsumexp", "keepdims", keepdims)
    return logsumexp_as(x.dtype, x, along, keepdims, name)


def logsumexp_as(dtype: str, x: Tensor, along: Sequence[int], keepdims: bool, name: str) -> Tensor:
    """logsumexp over dimensions, rounded to a dtype."""
    value = _wide(x)
    top = _over(x, along, e.max, value, f"{name}.max")

    def level(less: Indices) -> Expr:
        return e.select(e.abs(top[less]) < math.inf, top[less], 0.0)

    total = _over(x, along, e.sum, lambda at: e.exp(value(at) - level(_less(at, along))), f"{name}.sum")
    shown = [d for d in range(x.rank) if keepdims or d not in along]

    def element(*i: Index) -> Expr:
        at = dict(zip(shown, i, strict=True))
        less = tuple(0 if d in along else at[d] for d in range(x.rank))
        return e.cast(level(less) + e.log(total[less]), dtype)

    shape = [1 if d in along else x.shape[d] for d in shown]
    return compute(shape, element, name, axes=[f"i{d}" for d in shown])


def layer_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5, axis: int = -1, name: str = "layer_norm"
) -> Tensor:
    """Y = (X - mean) / sqrt(variance + eps) * gamma + beta, mean and variance along one axis.

    gamma and beta have one element for each position of that axis. Raises TeError.
    """
    along = check_axis("layer_norm", check_float("layer_norm", x), axis)
    _check_scales("layer_norm", x, along, (gamma, beta))
    scaled = _standardised(x, [along], eps, name)
    return _map(x, lambda i: e.cast(scaled(i) * _wide(gamma)((i[along],)) + _wide(beta)((i[along],)), x.dtype), name)


def _check_scales(operator: str, x: Tensor, along: int, scales: Sequence[Tensor]) -> None:
    for scale in scales:
        check_rank(operator, scale, 1, "one element a position of the axis")
        check_equal(operator, f"the extents of the axis and of '{scale.name}'", x.shape[along], scale.shape[0])
        if scale.dtype != x.dtype:
            raise TeError(f"{operator}: '{x.name}' is of {x.dtype}, '{scale.name}' of {scale.dtype}")


def _standardised(x: Tensor, along: Sequence[int], eps: float, name: str) -> Value:
    """(X - mean) / sqrt(variance + eps) over some dimensions, as a function of the index."""
    value, share = _wide(x), 1.0 / math.prod(x.shape[d] for d in along)

    def mean(of: Value, label: str) -> Tensor:
        total = _over(x, along, e.sum, of, f"{label}.sum")
        return _map(total, lambda i: total[i] * share, label)

    middle = mean(value, f"{name}.mean")
    centred = _map(x, lambda i: value(i) - middle[_less(i, along)], f"{name}.centred")
    squares = _map(x, lambda i: centred[i] * centred[i], f"{name}.square")
    variance = mean(lambda at: squares[at], f"{name}.variance")
    return lambda i: centred[i] * e.rsqrt(variance[_less(i, along)] + eps)


def instance_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5, name: str = "instance_norm") -> Tensor:
    """Y[n, c, ...] = (X - mean) / sqrt(variance + eps) * gamma[c] + beta[c], mean and variance of each n and c.

    x is [N, C, ...] with at least one more dimension, gamma and beta are [C]. Raises TeError.
    """
    check_float("instance_norm", x)
    if x.rank < 3:
        raise TeError(f"instance_norm: '{x.name}' has shape {x.shape}, expected [N, C, ...]")
    _check_scales("instance_norm", x, 1, (gamma, beta))
    scaled = _standardised(x, range(2, x.rank), eps, name)
    return _map(x, lambda i: e.cast(scaled(i) * _wide(gamma)((i[1],)) + _wide(beta)((i[1],)), x.dtype), name)


def rms_norm(x: Tensor, gamma: Tensor, eps: float = 1e-6, axis: int = -1, name: str = "rms_norm") -> Tensor:
    """Y = X / sqrt(mean of X^2 + eps) * gamma, the mean along one axis, gamma one element a position of it.

    Raises TeError. Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    """
    along = check_axis("rms_norm", check_float("rms_norm", x), axis)
    _check_scales("rms_norm", x, along, (gamma,))
    value, share = _wide(x), 1.0 / x.shape[along]
    total = _over(x, [along], e.sum, lambda at: value(at) * value(at), f"{name}.sum")

    def element(i: Indices) -> Expr:
        scale = e.rsqrt(total[_less(i, [along])] * share + eps)
        return e.cast(value(i) * scale * _wide(gamma)((i[along],)), x.dtype)

    return _map(x, element, name)


def batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    eps: float = 1e-5,
    axis: int = 1,
    name: str = "batch_norm",
) -> Tensor:
    """Y = (X - mean[c]) / sqrt(variance[c] + eps) * gamma[c] + beta[c], c being the index along one axis.

    The inference form: mean and variance, gamma (1 where it is not given) and beta (0) are inputs with one element a
    channel. Raises TeError. Source: Ioffe and Szegedy, Batch Normalization, 2015.
    """
    along = check_axis("batch_norm", check_float("batch_norm", x), axis)
    _check_scales("batch_norm", x, along, [t for t in (mean, variance, gamma, beta) if t is not None])

    def element(i: Indices) -> Expr:
        c = i[along]
        found = (_wide(x)(i) - _wide(mean)((c,))) * e.rsqrt(_wide(variance)((c,)) + eps)
        found = found if gamma is None else found * _wide(gamma)((c,))
        return e.cast(found if beta is None else found + _wide(beta)((c,)), x.dtype)

    return _map(x, element, name)
