"""Softmax and normalisations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from compiler.frontends.torch.operators.elements import dimension, fill, pointwise, result, to_dtype, wide_dtype
from compiler.frontends.torch.table import Call, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.normalisation import batch_norm_as, moments, softmax_over
from compiler.te.tensor import Tensor


def _register_softmax(build: Callable[..., Tensor], of_scalar: int, *names: str) -> None:
    """Register operators for a softmax `build`(x, axis, name); a tensor without dimensions yields `of_scalar`."""

    def convert(call: Call, x: Tensor, dim: int, half_to_float: object = False) -> Tensor:
        if not x.rank:
            return fill((), of_scalar, call.dtype, call.name)
        return build(to_dtype(x, call.dtype, f"{call.name}.wide"), dimension(dim, x.rank), call.name)

    operator(*names)(convert)


_register_softmax(nn.softmax, 1, "_softmax", "softmax.int")
_register_softmax(nn.log_softmax, 0, "_log_softmax", "log_softmax.int")


@operator("_safe_softmax")
def safe_softmax(call: Call, x: Tensor, dim: int, dtype: object = None) -> Tensor:
    """Softmax along a dimension, in the call's dtype, whatever `dtype` is; 0 for a row in which all elements are
    -inf."""
    typed = to_dtype(x, call.dtype, f"{call.name}.wide")
    return softmax_over(typed, dimension(dim, x.rank), call.name, guarded=True)


@operator("_native_batch_norm_legit_no_training", "native_batch_norm", "_native_batch_norm_legit")
def batch_norm(
    call: Call,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    *options: float,
) -> tuple[Tensor | None, ...]:
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel of dimension 1, and None for the statistics to
    save; all results are None in training mode, which has no te form here. options: `training` or nothing, then
    momentum and eps."""
    if len(options) == 3 and options[0]:
        return None, None, None
    return batch_norm_as(call.dtype, x, 1, mean, variance, weight, bias, options[-1], call.name), None, None


@operator("_native_batch_norm_legit.no_stats")
def instance_norm(
    call: Call, x: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    """(x - mean) * rstd * weight + bias, mean and rstd = 1 / sqrt(variance + eps), over all dimensions except 1, in
    training or not; `momentum` is not used."""
    return _normalise(call, x, [d for d in range(x.rank) if d != 1], eps, (weight, bias, slice(1, 2)))


@operator("_native_batch_norm_legit_functional")
def batch_norm_training(
    call: Call,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor | None, ...]:
    """batch_norm with the batch's statistics: the result, mean, rstd = 1 / sqrt(variance + eps), and updated running
    mean and variance; without `training` the results of batch_norm, and the running ones unchanged."""
    if not training:
        return (*batch_norm(call, x, weight, bias, mean, variance, momentum, eps), mean, variance)
    normalised, batch_mean, inverse_deviation = instance_norm(call, x, weight, bias, training, momentum, eps)
    count = math.prod(x.shape) // x.shape[1]
    unbiased = count / max(count - 1, 1)

    def updated(position: int, running_value: Tensor, value: Callable[[Expr], Expr], batch_value: Tensor) -> Tensor:
        update = Call(f"{call.name}.{position}", (running_value.shape,), (running_value.dtype,), running_value.dtype)
        return pointwise(update, lambda a, b: a * (1.0 - momentum) + value(b) * momentum, running_value, batch_value)

    running_mean = updated(3, mean, lambda v: v, batch_mean)
    running_variance = updated(4, variance, lambda r: (1.0 / (r * r) - eps) * unbiased, inverse_deviation)
    return normalised, batch_mean, inverse_deviation, running_mean, running_variance


def _normalise(
    call: Call,
    x: Tensor,
    dims: Sequence[int],
    eps: float,
    affine: tuple[Tensor | None, Tensor | None, slice],
    source_index: Callable[[tuple[Index, ...]], tuple[Index, ...]] = lambda i: i,
) -> tuple[Tensor, ...]:
    """(x - mean) * rstd * weight + bias, mean and rstd = 1 / sqrt(variance + eps), with statistics over `dims` of x.

    affine: weight, bias, and the result's dimensions that index both. source_index: maps an index of the result to x's.
    """
    weight, bias, affine_dims = affine
    statistics, calc_dtype = moments(x, dims, call.name), wide_dtype(x.dtype)
    scale = compute(statistics.variance.shape, lambda *i: e.rsqrt(statistics.variance[i] + eps), f"{call.name}.scale")

    def element(*i: Index) -> Expr:
        source = source_index(i)
        value = statistics.centred[source] * scale[tuple(0 if d in dims else index for d, index in enumerate(source))]
        value = value if weight is None else value * e.cast(weight[i[affine_dims]], calc_dtype)
        return e.cast(value if bias is None else value + e.cast(bias[i[affine_dims]], calc_dtype), call.dtype)

    return compute(call.shape, element, call.name), result(call, statistics.mean, 1), result(call, scale, 2)


@operator("native_layer_norm")
def layer_norm(
    call: Call, x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, ...]:
    """(x - mean) * rstd * weight + bias, mean, rstd = 1 / sqrt(variance + eps), over the last len(shape) dimensions."""
    first = x.rank - len(shape)
    return _normalise(call, x, range(first, x.rank), eps, (weight, bias, slice(first, None)))


@operator("native_group_norm")
def group_norm(
    call: Call,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    pixels: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, ...]:
    """(x - mean) * rstd * weight + bias, mean and rstd = 1 / sqrt(variance + eps), over each of `groups` groups of
    channels. `pixels`, the elements of a channel's image, is not read."""
    size = channels // groups
    split = nn.reshape(x, (batch, groups, size, *x.shape[2:]), f"{call.name}.groups")
    affine = (weight, bias, slice(1, 2))
    dims = range(2, split.rank)
    return _normalise(call, split, dims, eps, affine, lambda i: (i[0], i[1] // size, i[1] % size, *i[2:]))
