"""Softmax and normalisations; floats narrower than f32 are computed in f32 and rounded once."""

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
from compiler.te.nn.reduction import Axes, inverse_of, reduce_dims
from compiler.te.nn.shape import reshape
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.dtypes import DTYPES

Value: TypeAlias = Callable[[Indices], Expr]
"""Maps an index to an element."""


def _widened(x: Tensor) -> Value:
    """Return a function from an index to the tensor's element, cast to the accumulator's dtype."""
    return lambda at: e.cast(x[at], accumulator(x.dtype))


def _reduce(x: Tensor, dims: Sequence[int], combine: e.Reduction, value: Value, name: str) -> Tensor:
    """Reduce value(index), for the indices of x's shape, over dimensions, which keep extent 1."""
    return reduce_dims(x.dims, dims, True, lambda at, axes: combine(value(at), axes), name)


def _reduced_index(i: Indices, dims: Sequence[int]) -> Indices:
    return tuple(0 if d in dims else index for d, index in enumerate(i))


def _map(x: Tensor, value: Value, name: str) -> Tensor:
    """Compute a tensor of x's shape whose element at each index is value(index)."""
    return compute(x.dims, lambda *i: value(i), name)


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    """Y[i] = exp(X[i] - max X) / sum exp(X - max X) along one axis. A row of -inf, or with inf or NaN, yields NaN.
    Raises TeError for a dtype that is no float, and for an axis out of range."""
    return softmax_over(x, check_axis("softmax", check_float("softmax", x), axis), name)


def softmax_over(x: Tensor, axis: int, name: str, guarded: bool = False) -> Tensor:
    """Compute softmax along a non-negative axis; a row of -inf yields NaN, or 0 if `guarded`."""
    dims, value = [axis], _widened(x)
    top = _reduce(x, dims, e.max, value, f"{name}.max")

    def finite_max(i: Indices) -> Expr:
        greatest = top[_reduced_index(i, dims)]
        return e.select(e.equal(greatest, -math.inf), 0.0, greatest) if guarded else greatest

    powers = _map(x, lambda i: e.exp(value(i) - finite_max(i)), f"{name}.exp")
    total = _reduce(x, dims, e.sum, lambda at: powers[at], f"{name}.sum")

    def element(i: Indices) -> Expr:
        divisor: Expr = total[_reduced_index(i, dims)]
        divisor = e.select(e.equal(divisor, 0.0), 1.0, divisor) if guarded else divisor
        return e.cast(powers[i] * (1.0 / divisor), x.dtype)

    return _map(x, element, name)


def log_softmax(x: Tensor, axis: int = -1, name: str = "log_softmax") -> Tensor:
    """Y[i] = X[i] - max X - log sum exp(X - max X) along one axis. A row of -inf, or with inf or NaN, yields NaN.
    Raises TeError for a dtype that is no float, and for an axis out of range."""
    dims = [check_axis("log_softmax", check_float("log_softmax", x), axis)]
    value = _widened(x)
    top = _reduce(x, dims, e.max, value, f"{name}.max")
    total = _reduce(x, dims, e.sum, lambda at: e.exp(value(at) - top[_reduced_index(at, dims)]), f"{name}.sum")

    def element(i: Indices) -> Expr:
        reduced = _reduced_index(i, dims)
        return e.cast(value(i) - top[reduced] - e.log(total[reduced]), x.dtype)

    return _map(x, element, name)


def logsumexp(x: Tensor, axis: Axes = -1, keepdims: bool = False, name: str = "logsumexp") -> Tensor:
    """Y = max X + log sum exp(X - max X) over axes (None: all), which are dropped, or with `keepdims` kept with extent
    1. An infinite maximum is itself the result. Raises TeError for a dtype that is no float, and for axes out of range
    or repeated."""
    dims = check_axes("logsumexp", check_float("logsumexp", x), axis)
    check_flag("logsumexp", "keepdims", keepdims)
    return logsumexp_as(x.dtype, x, dims, keepdims, name)


def logsumexp_as(dtype: str, x: Tensor, dims: Sequence[int], keepdims: bool, name: str) -> Tensor:
    """Compute logsumexp of x over non-negative dimensions, which `keepdims` keeps with extent 1, cast to a dtype."""
    value = _widened(x)
    top = _reduce(x, dims, e.max, value, f"{name}.max")

    def finite_max(reduced: Indices) -> Expr:
        return e.select(e.abs(top[reduced]) < math.inf, top[reduced], 0.0)

    total = _reduce(x, dims, e.sum, lambda at: e.exp(value(at) - finite_max(_reduced_index(at, dims))), f"{name}.sum")
    result_dims = [d for d in range(x.rank) if keepdims or d not in dims]

    def element(*i: Index) -> Expr:
        coordinates = dict(zip(result_dims, i, strict=True))
        reduced = tuple(0 if d in dims else coordinates[d] for d in range(x.rank))
        return e.cast(finite_max(reduced) + e.log(total[reduced]), dtype)

    shape = [1 if d in dims else x.dims[d] for d in result_dims]
    return compute(shape, element, name, axes=[f"i{d}" for d in result_dims])


def layer_norm(
    x: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    eps: float = 1e-5,
    axis: Axes = -1,
    name: str = "layer_norm",
) -> Tensor:
    """Y = (X - mean) / sqrt(variance + eps) * gamma + beta, mean and variance over one axis or several.

    x is of a float dtype; gamma and beta (default 1, 0) have the extents of these axes, in x's order. Raises TeError
    for other arguments.
    """
    dims = check_axes("layer_norm", check_float("layer_norm", x), axis)
    scales = _scales("layer_norm", x, dims, gamma, beta)
    normalised = _standardised(x, dims, check_number("layer_norm", "eps", eps), name)
    return _map(x, lambda i: scales.apply(normalised(i), tuple(i[d] for d in dims), x.dtype), name)


@dataclass(frozen=True)
class _Scales:
    """The scale, gamma, and the bias, beta, of normalised elements; None for 1 and 0."""

    gamma: Tensor | None
    beta: Tensor | None

    def apply(self, value: Expr, at: Indices, dtype: str) -> Expr:
        """Return value * gamma[at] + beta[at], cast to a dtype."""
        value = value if self.gamma is None else value * _widened(self.gamma)(at)
        return e.cast(value if self.beta is None else value + _widened(self.beta)(at), dtype)


def _scales(operator: str, x: Tensor, dims: Sequence[int], gamma: Tensor | None, beta: Tensor | None) -> _Scales:
    """Return gamma and beta as _Scales. Raises TeError unless they have the extents of x's `dims` and x's dtype."""
    _check_scales(operator, x, dims, gamma, beta)
    return _Scales(gamma, beta)


def _check_scales(operator: str, x: Tensor, dims: Sequence[int], *scales: Tensor | None) -> None:
    for scale in (s for s in scales if s is not None):
        check_rank(operator, scale, len(dims), "one element a position of the axes")
        for d, extent in zip(dims, scale.dims, strict=True):
            check_equal(operator, f"the extents of the axis and of '{scale.name}'", x.dims[d], extent)
        if scale.dtype != x.dtype:
            raise TeError(f"{operator}: '{x.name}' is of {x.dtype}, '{scale.name}' of {scale.dtype}")


@dataclass(frozen=True)
class Moments:
    """The mean of x over some dimensions, x - mean (centred), and the sum and the mean of its squares.

    Reduced dimensions keep extent 1; `centred` has x's shape.
    """

    mean: Tensor
    centred: Tensor
    square_sum: Tensor
    variance: Tensor


def moments(x: Tensor, dims: Sequence[int], name: str) -> Moments:
    """Compute the moments of a tensor over some dimensions, in f32 for narrower floats.

    The data are shifted by their first element: rounding errors of plain sums grow with the mean, and a small variance
    would lose its digits. The shift is clamped so that differences do not overflow.
    Source: shifted data, Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance, 1983.
    """
    value, inverse_count = _widened(x), inverse_of([x.dims[d] for d in dims], accumulator(x.dtype))
    largest = float(math.isqrt(DTYPES[accumulator(x.dtype)].infinite))

    def origin(i: Indices) -> Expr:
        first = value(_reduced_index(i, dims))
        return e.maximum(e.minimum(first, largest), -largest)

    def shifted(i: Indices) -> Expr:
        return value(i) - origin(i)

    total = _reduce(x, dims, e.sum, shifted, f"{name}.mean.sum")
    offset = _map(total, lambda i: total[i] * inverse_count, f"{name}.mean")
    mean = _map(offset, lambda i: origin(i) + offset[i], f"{name}.middle")
    centred = _map(x, lambda i: shifted(i) - offset[_reduced_index(i, dims)], f"{name}.centred")
    square = _map(x, lambda i: centred[i] * centred[i], f"{name}.square")
    square_sum = _reduce(x, dims, e.sum, lambda at: square[at], f"{name}.variance.sum")
    variance = _map(square_sum, lambda i: square_sum[i] * inverse_count, f"{name}.variance")
    return Moments(mean, centred, square_sum, variance)


def _standardised(x: Tensor, dims: Sequence[int], eps: float, name: str) -> Value:
    """Return a function from an index to (X - mean) / sqrt(variance + eps), with moments over some dimensions."""
    statistics = moments(x, dims, name)
    return lambda i: statistics.centred[i] * e.rsqrt(statistics.variance[_reduced_index(i, dims)] + eps)


def instance_norm(
    x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, eps: float = 1e-5, name: str = "instance_norm"
) -> Tensor:
    """Y[n, c, ...] = (X - mean) / sqrt(variance + eps) * gamma[c] + beta[c], mean and variance for each n and c.

    x is [N, C, ...] of rank 3 or more and a float dtype; gamma and beta (default 1 and 0) are [C]. Raises TeError for
    other arguments.
    """
    check_float("instance_norm", x)
    if x.rank < 3:
        raise TeError(f"instance_norm: '{x.name}' has shape {x.shape}, expected [N, C, ...]")
    scales = _scales("instance_norm", x, [1], gamma, beta)
    normalised = _standardised(x, range(2, x.rank), check_number("instance_norm", "eps", eps), name)
    return _map(x, lambda i: scales.apply(normalised(i), (i[1],), x.dtype), name)


def group_norm(
    x: Tensor,
    groups: int,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    eps: float = 1e-5,
    name: str = "group_norm",
) -> Tensor:
    """Y[n, c, ...] = (X - mean) / sqrt(variance + eps) * gamma[c] + beta[c], for each n and group of channels.

    x is [N, C, ...] of a float dtype; gamma and beta (default 1 and 0) are [C]; a group is C / groups consecutive
    channels. Raises TeError for other arguments. Source: Wu and He, Group Normalization, 2018.
    """
    check_float("group_norm", x)
    if x.rank < 2:
        raise TeError(f"group_norm: '{x.name}' has shape {x.shape}, expected [N, C, ...]")
    if not is_count(groups) or not groups or x.shape[1] % groups:
        raise TeError(f"group_norm: {groups!r} groups do not divide the {x.shape[1]} channels of '{x.name}'")
    scales, group_size = _scales("group_norm", x, [1], gamma, beta), x.shape[1] // groups
    split = reshape(x, (x.shape[0], groups, group_size, *x.shape[2:]), f"{name}.groups")
    normalised = _standardised(split, range(2, split.rank), check_number("group_norm", "eps", eps), name)

    def element(n: Index, c: Index, *image: Index) -> Expr:
        return scales.apply(normalised((n, c // group_size, c % group_size, *image)), (c,), x.dtype)

    labels = [f"i{d}" for d in range(2, x.rank)]
    return compute(x.shape, element, name, axes=("n", "c", *labels))


def rms_norm(
    x: Tensor, gamma: Tensor | None = None, eps: float = 1e-6, axis: Axes = -1, name: str = "rms_norm"
) -> Tensor:
    """Y = X / sqrt(mean of X^2 + eps) * gamma, the mean over one axis or several, gamma as layer_norm.

    x is of a float dtype; gamma (default 1) has the extents of these axes, in x's order. Raises TeError for other
    arguments. Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    """
    dims = check_axes("rms_norm", check_float("rms_norm", x), axis)
    scales = _scales("rms_norm", x, dims, gamma, None)
    value, inverse_count = _widened(x), 1.0 / math.prod(x.shape[d] for d in dims)
    eps = check_number("rms_norm", "eps", eps)
    total = _reduce(x, dims, e.sum, lambda at: value(at) * value(at), f"{name}.sum")

    def element(i: Indices) -> Expr:
        scale = e.rsqrt(total[_reduced_index(i, dims)] * inverse_count + eps)
        return scales.apply(value(i) * scale, tuple(i[d] for d in dims), x.dtype)

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
    """Y = (X - mean[c]) / sqrt(variance[c] + eps) * gamma[c] + beta[c], where c is the index along one axis.

    Inference only: mean, variance, gamma (default 1) and beta (0) are vectors with an element a channel, of x's float
    dtype. Computed as X * scale[c] + shift[c] with scale = gamma / sqrt(variance + eps), shift = beta - mean * scale;
    scale and shift of constants are computed once. Raises TeError for other arguments. Source: Ioffe and Szegedy, Batch
    Normalization, 2015; in this form as in torch on CPUs.
    """
    channel_dim = check_axis("batch_norm", check_float("batch_norm", x), axis)
    _check_scales("batch_norm", x, [channel_dim], mean, variance, gamma, beta)
    return batch_norm_as(x.dtype, x, channel_dim, mean, variance, gamma, beta, eps, name)


def batch_norm_as(
    dtype: str,
    x: Tensor,
    dim: int,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    eps: float,
    name: str,
) -> Tensor:
    """Compute batch_norm along dimension `dim`, cast to `dtype`; statistics and scales may have other dtypes than x,
    and None is gamma 1 or beta 0."""
    channels = (x.shape[dim],)

    def factor(c: Index) -> Expr:
        inverse = e.rsqrt(_widened(variance)((c,)) + eps)
        return inverse if gamma is None else inverse * _widened(gamma)((c,))

    scale = compute(channels, factor, f"{name}.scale")

    def offset(c: Index) -> Expr:
        scaled_mean = _widened(mean)((c,)) * scale[c]
        return -scaled_mean if beta is None else _widened(beta)((c,)) - scaled_mean

    shift = compute(channels, offset, f"{name}.shift")
    return _map(x, lambda i: e.cast(_widened(x)(i) * scale[i[dim]] + shift[i[dim]], dtype), name)


def batch_norm_training(
    x: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    eps: float = 1e-5,
    axis: int = 1,
    name: str = "batch_norm_training",
) -> tuple[Tensor, Tensor, Tensor]:
    """Y, M, V = batch_norm of X with its own mean M[c] and variance V[c], where c is the index along one axis.

    V is the biased variance (divided by the number of elements); gamma (default 1) and beta (0) have an element for
    each c; all are of x's float dtype. Raises TeError for other arguments.
    """
    operator = "batch_norm_training"
    dim = check_axis(operator, check_float(operator, x), axis)
    scales, reduced_dims = _scales(operator, x, [dim], gamma, beta), [d for d in range(x.rank) if d != dim]
    eps = check_number(operator, "eps", eps)
    if not reduced_dims:
        raise TeError(f"{operator}: '{x.name}' has no dimension beside its channels")
    statistics = moments(x, reduced_dims, name)

    def element(i: Indices) -> Expr:
        normalised = statistics.centred[i] * e.rsqrt(statistics.variance[_reduced_index(i, reduced_dims)] + eps)
        return scales.apply(normalised, (i[dim],), x.dtype)

    def vector(moment: Tensor, label: str) -> Tensor:
        def element(c: Index) -> Expr:
            return e.cast(moment[tuple(c if d == dim else 0 for d in range(x.rank))], x.dtype)

        return compute((x.shape[dim],), element, f"{name}.{label}")

    return _map(x, element, name), vector(statistics.mean, "means"), vector(statistics.variance, "variances")


def lp_normalize(x: Tensor, p: float = 2, axis: Axes = -1, eps: float = 0.0, name: str = "lp_normalize") -> Tensor:
    """Y = X / max((sum |X|^p)^(1/p), eps), the sum over one axis or several; 0 for a divisor of 0.

    x is of a float dtype, p above 0. Raises TeError for other arguments. Elsewhere: ONNX LpNormalization; torch
    normalize, with an eps.
    """
    dims = check_axes("lp_normalize", check_float("lp_normalize", x), axis)
    power, smallest = check_number("lp_normalize", "p", p), check_number("lp_normalize", "eps", eps)
    if power <= 0 or smallest < 0:
        raise TeError(f"lp_normalize: p is {p} and eps {eps}, expected p above 0 and eps not below")
    value = _widened(x)

    total = _reduce(x, dims, e.sum, lambda at: formulas.power(e.abs(value(at)), power), f"{name}.sum")

    def root(i: Indices) -> Expr:
        value = formulas.root(total[i], power)
        return e.maximum(value, smallest) if smallest else e.select(e.equal(value, 0.0), math.inf, value)

    norm = _map(total, root, f"{name}.norm")
    return _map(x, lambda i: e.cast(value(i) / norm[_reduced_index(i, dims)], x.dtype), name)


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

    x is [N, C, ...] of a float dtype, zero out of bounds; `before` is size // 2 by default. Raises TeError for other
    arguments. Elsewhere: torch local_response_norm; ONNX LRN, with (size - 1) // 2 before.
    """
    operator = "local_response_norm"
    check_float(operator, x)
    if x.rank < 2 or not is_count(size) or not size:
        raise TeError(
            f"{operator}: '{x.name}' has shape {x.shape}, and the size is {size!r}: expected [N, C, ...] and 1"
        )
    slope, power, offset = (
        check_number(operator, what, n) for what, n in (("alpha", alpha), ("beta", beta), ("bias", bias))
    )
    start = size // 2 if before is None else before
    if not is_count(start):
        raise TeError(f"{operator}: before is {before!r}, expected an integer of at least 0")
    acc_dtype, padded, k = accumulator(x.dtype), x.padded(0), reduce_axis(size, "k")

    def squares(*i: Index) -> Expr:
        value = e.cast(padded[(i[0], i[1] - start + k, *i[2:])], acc_dtype)
        return e.sum(value * value, axis=k)

    total = compute(x.shape, squares, f"{name}.sum")
    value = _widened(x)
    return _map(x, lambda i: e.cast(value(i) / e.pow(total[i] * (slope / size) + offset, power), x.dtype), name)
