"""Softmax and the normalisations, each in f32 where its dtype is narrower, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn import formulas
from compiler.te.nn.common import (
    Indices,
    accumulator,
    check_axes,
    check_axis,
    check_equal,
    check_flag,
    check_float,
    check_number,
    check_rank,
    is_count,
)
from compiler.te.nn.reduction import Axes, reduced
from compiler.te.nn.shape import reshape
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.elements import DTYPES

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
    return softmax_over(x, check_axis("softmax", check_float("softmax", x), axis), name)


def softmax_over(x: Tensor, axis: int, name: str, guarded: bool = False) -> Tensor:
    """softmax along a dimension; if `guarded`, elements that are all -inf give 0 instead of NaN."""
    along, value = [axis], _wide(x)
    top = _over(x, along, e.max, value, f"{name}.max")

    def level(i: Indices) -> Expr:
        greatest = top[_less(i, along)]
        return e.select(e.equal(greatest, -math.inf), 0.0, greatest) if guarded else greatest

    powers = _map(x, lambda i: e.exp(value(i) - level(i)), f"{name}.exp")
    total = _over(x, along, e.sum, lambda at: powers[at], f"{name}.sum")

    def element(i: Indices) -> Expr:
        divisor: Expr = total[_less(i, along)]
        divisor = e.select(e.equal(divisor, 0.0), 1.0, divisor) if guarded else divisor
        return e.cast(powers[i] * (1.0 / divisor), x.dtype)

    return _map(x, element, name)


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
    along = check_axes("logsumexp", check_float("logsumexp", x), axis)
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
    x: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    eps: float = 1e-5,
    axis: Axes = -1,
    name: str = "layer_norm",
) -> Tensor:
    """Y = (X - mean) / sqrt(variance + eps) * gamma + beta, mean and variance over one axis or several.

    gamma and beta, where they are given, have the extents of these axes, in their order in x. Raises TeError.
    """
    along = check_axes("layer_norm", check_float("layer_norm", x), axis)
    scales = _scales("layer_norm", x, along, gamma, beta)
    scaled = _standardised(x, along, check_number("layer_norm", "eps", eps), name)
    return _map(x, lambda i: scales.applied(scaled(i), tuple(i[d] for d in along), x.dtype), name)


@dataclass(frozen=True)
class _Scales:
    """The scale and the bias of standardised elements; None for those not given."""

    gamma: Tensor | None
    beta: Tensor | None

    def applied(self, value: Expr, at: Indices, dtype: str) -> Expr:
        """The value with the scale at an index, rounded to a dtype."""
        value = value if self.gamma is None else value * _wide(self.gamma)(at)
        return e.cast(value if self.beta is None else value + _wide(self.beta)(at), dtype)


def _scales(operator: str, x: Tensor, along: Sequence[int], gamma: Tensor | None, beta: Tensor | None) -> _Scales:
    """The scales of an operator, with the extents of some dimensions. Raises TeError."""
    _check_scales(operator, x, along, gamma, beta)
    return _Scales(gamma, beta)


def _check_scales(operator: str, x: Tensor, along: Sequence[int], *scales: Tensor | None) -> None:
    for scale in (s for s in scales if s is not None):
        check_rank(operator, scale, len(along), "one element a position of the axes")
        for d, extent in zip(along, scale.shape, strict=True):
            check_equal(operator, f"the extents of the axis and of '{scale.name}'", x.shape[d], extent)
        if scale.dtype != x.dtype:
            raise TeError(f"{operator}: '{x.name}' is of {x.dtype}, '{scale.name}' of {scale.dtype}")


@dataclass(frozen=True)
class Moments:
    """The mean over some dimensions, the elements less it, and the sum and the mean of the squares of these.

    The statistics have the dimensions that they are over with extent 1.
    """

    middle: Tensor
    centred: Tensor
    squares: Tensor
    variance: Tensor


def moments(x: Tensor, along: Sequence[int], name: str) -> Moments:
    """The moments of a tensor over some dimensions, in f32 of narrower floats.

    Sums are of the differences from the first element: in x itself their rounding grows with the mean, which a variance
    that is small beside it shows. A first element so large that differences may overflow is clamped.
    Source: shifted data, Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance, 1983.
    """
    value, share = _wide(x), 1.0 / math.prod(x.shape[d] for d in along)
    largest = float(math.isqrt(DTYPES[accumulator(x.dtype)].infinite))

    def origin(i: Indices) -> Expr:
        first = value(_less(i, along))
        return e.maximum(e.minimum(first, largest), -largest)

    def shifted(i: Indices) -> Expr:
        return value(i) - origin(i)

    total = _over(x, along, e.sum, shifted, f"{name}.mean.sum")
    offset = _map(total, lambda i: total[i] * share, f"{name}.mean")
    middle = _map(offset, lambda i: origin(i) + offset[i], f"{name}.middle")
    centred = _map(x, lambda i: shifted(i) - offset[_less(i, along)], f"{name}.centred")
    square = _map(x, lambda i: centred[i] * centred[i], f"{name}.square")
    squares = _over(x, along, e.sum, lambda at: square[at], f"{name}.variance.sum")
    variance = _map(squares, lambda i: squares[i] * share, f"{name}.variance")
    return Moments(middle, centred, squares, variance)


def _standardised(x: Tensor, along: Sequence[int], eps: float, name: str) -> Value:
    """(X - mean) / sqrt(variance + eps) over some dimensions, as a function of the index."""
    of_x = moments(x, along, name)
    return lambda i: of_x.centred[i] * e.rsqrt(of_x.variance[_less(i, along)] + eps)


def instance_norm(
    x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, eps: float = 1e-5, name: str = "instance_norm"
) -> Tensor:
    """Y[n, c, ...] = (X - mean) / sqrt(variance + eps) * gamma[c] + beta[c], mean and variance of each n and c.

    x is [N, C, ...] with at least one more dimension, gamma and beta, where they are given, are [C]. Raises TeError.
    """
    check_float("instance_norm", x)
    if x.rank < 3:
        raise TeError(f"instance_norm: '{x.name}' has shape {x.shape}, expected [N, C, ...]")
    scales = _scales("instance_norm", x, [1], gamma, beta)
    scaled = _standardised(x, range(2, x.rank), check_number("instance_norm", "eps", eps), name)
    return _map(x, lambda i: scales.applied(scaled(i), (i[1],), x.dtype), name)


def group_norm(
    x: Tensor,
    groups: int,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    eps: float = 1e-5,
    name: str = "group_norm",
) -> Tensor:
    """Y[n, c, ...] = (X - mean) / sqrt(variance + eps) * gamma[c] + beta[c], of each n and group of channels.

    x is [N, C, ...], gamma and beta, where they are given, are [C]; groups of C / groups consecutive channels.
    Raises TeError. Source: Wu and He, Group Normalization, 2018.
    """
    check_float("group_norm", x)
    if x.rank < 2:
        raise TeError(f"group_norm: '{x.name}' has shape {x.shape}, expected [N, C, ...]")
    if not is_count(groups) or not groups or x.shape[1] % groups:
        raise TeError(f"group_norm: {groups!r} groups do not divide the {x.shape[1]} channels of '{x.name}'")
    scales, share = _scales("group_norm", x, [1], gamma, beta), x.shape[1] // groups
    split = reshape(x, (x.shape[0], groups, share, *x.shape[2:]), f"{name}.groups")
    scaled = _standardised(split, range(2, split.rank), check_number("group_norm", "eps", eps), name)

    def element(n: Index, c: Index, *image: Index) -> Expr:
        return scales.applied(scaled((n, c // share, c % share, *image)), (c,), x.dtype)

    labels = [f"i{d}" for d in range(2, x.rank)]
    return compute(x.shape, element, name, axes=("n", "c", *labels))


def rms_norm(
    x: Tensor, gamma: Tensor | None = None, eps: float = 1e-6, axis: Axes = -1, name: str = "rms_norm"
) -> Tensor:
    """Y = X / sqrt(mean of X^2 + eps) * gamma, the mean over one axis or several, gamma as layer_norm.

    Raises TeError. Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    """
    along = check_axes("rms_norm", check_float("rms_norm", x), axis)
    scales = _scales("rms_norm", x, along, gamma, None)
    value, share = _wide(x), 1.0 / math.prod(x.shape[d] for d in along)
    eps = check_number("rms_norm", "eps", eps)
    total = _over(x, along, e.sum, lambda at: value(at) * value(at), f"{name}.sum")

    def element(i: Indices) -> Expr:
        scale = e.rsqrt(total[_less(i, along)] * share + eps)
        return scales.applied(value(i) * scale, tuple(i[d] for d in along), x.dtype)

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

    The inference form, computed as X * scale[c] + shift[c] with scale = gamma / sqrt(variance + eps) and
    shift = beta - mean * scale: mean and variance, gamma (1 where it is not given) and beta (0) are inputs with one
    element a channel. Where they are constant, scale and shift are computed once. Raises TeError. Source: Ioffe and
    Szegedy, Batch Normalization, 2015; in this form as torch has it on CPUs.
    """
    along = check_axis("batch_norm", check_float("batch_norm", x), axis)
    _check_scales("batch_norm", x, [along], mean, variance, gamma, beta)
    return batch_norm_as(x.dtype, x, along, mean, variance, gamma, beta, eps, name)


def batch_norm_as(
    dtype: str,
    x: Tensor,
    along: int,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    eps: float,
    name: str,
) -> Tensor:
    """batch_norm along a dimension, its statistics and scales of any dtypes, rounded to a dtype."""
    channels = (x.shape[along],)

    def factor(c: Index) -> Expr:
        inverse = e.rsqrt(_wide(variance)((c,)) + eps)
        return inverse if gamma is None else inverse * _wide(gamma)((c,))

    scale = compute(channels, factor, f"{name}.scale")

    def offset(c: Index) -> Expr:
        moved = _wide(mean)((c,)) * scale[c]
        return -moved if beta is None else _wide(beta)((c,)) - moved

    shift = compute(channels, offset, f"{name}.shift")
    return _map(x, lambda i: e.cast(_wide(x)(i) * scale[i[along]] + shift[i[along]], dtype), name)


def batch_norm_training(
    x: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    eps: float = 1e-5,
    axis: int = 1,
    name: str = "batch_norm_training",
) -> tuple[Tensor, Tensor, Tensor]:
    """Y, M, V = batch_norm of X with its own mean M[c] and variance V[c], c being the index along one axis.

    V is the mean of the squares, divided by the number of elements; gamma and beta as batch_norm. Raises TeError.
    """
    operator = "batch_norm_training"
    along = check_axis(operator, check_float(operator, x), axis)
    scales, reduced_axes = _scales(operator, x, [along], gamma, beta), [d for d in range(x.rank) if d != along]
    eps = check_number(operator, "eps", eps)
    if not reduced_axes:
        raise TeError(f"{operator}: '{x.name}' has no dimension beside its channels")
    of_x = moments(x, reduced_axes, name)

    def element(i: Indices) -> Expr:
        scaled = of_x.centred[i] * e.rsqrt(of_x.variance[_less(i, reduced_axes)] + eps)
        return scales.applied(scaled, (i[along],), x.dtype)

    def vector(of: Tensor, label: str) -> Tensor:
        def at(c: Index) -> Expr:
            return e.cast(of[tuple(c if d == along else 0 for d in range(x.rank))], x.dtype)

        return compute((x.shape[along],), at, f"{name}.{label}")

    return _map(x, element, name), vector(of_x.middle, "means"), vector(of_x.variance, "variances")


def lp_normalize(x: Tensor, p: float = 2, axis: Axes = -1, eps: float = 0.0, name: str = "lp_normalize") -> Tensor:
    """Y = X / max((sum |X|^p)^(1/p), eps), the sum over one axis or several; 0 where that divisor is 0.

    p is above 0. Raises TeError. Elsewhere: ONNX LpNormalization; torch normalize, with an eps.
    """
    along = check_axes("lp_normalize", check_float("lp_normalize", x), axis)
    power, smallest = check_number("lp_normalize", "p", p), check_number("lp_normalize", "eps", eps)
    if power <= 0 or smallest < 0:
        raise TeError(f"lp_normalize: p is {p} and eps {eps}, expected p above 0 and eps not below")
    value = _wide(x)

    total = _over(x, along, e.sum, lambda at: formulas.power(e.abs(value(at)), power), f"{name}.sum")

    def root(i: Indices) -> Expr:
        value = formulas.root(total[i], power)
        return e.maximum(value, smallest) if smallest else e.select(e.equal(value, 0.0), math.inf, value)

    norm = _map(total, root, f"{name}.norm")
    return _map(x, lambda i: e.cast(value(i) / norm[_less(i, along)], x.dtype), name)


def local_response_norm(
    x: Tensor,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
    before: int | None = None,
    name: str = "local_response_norm",
) -> Tensor:
    """Y[n, c, ...] = X / (bias + alpha / size * sum over k < size of X[n, c - before + k, ...]^2)^beta.

    x is [N, C, ...] of a float dtype; outside of it are zeros; before is size // 2 where it is not given. Raises
    TeError. Elsewhere: torch local_response_norm; ONNX LRN, with (size - 1) // 2 before.
    """
    operator = "local_response_norm"
    check_float(operator, x)
    if x.rank < 2 or not is_count(size) or not size:
        raise TeError(
            f"{operator}: '{x.name}' has shape {x.shape}, and the size is {size!r}: expected [N, C, ...] and 1"
        )
    share, power, offset = (
        check_number(operator, what, n) for what, n in (("alpha", alpha), ("beta", beta), ("bias", bias))
    )
    start = size // 2 if before is None else before
    if not is_count(start):
        raise TeError(f"{operator}: before is {before!r}, expected an integer of at least 0")
    wide, source, k = accumulator(x.dtype), x.padded(0), reduce_axis(size, "k")

    def squares(*i: Index) -> Expr:
        value = e.cast(source[(i[0], i[1] - start + k, *i[2:])], wide)
        return e.sum(value * value, axis=k)

    total = compute(x.shape, squares, f"{name}.sum")
    value = _wide(x)
    return _map(x, lambda i: e.cast(value(i) / e.pow(total[i] * (share / size) + offset, power), x.dtype), name)
