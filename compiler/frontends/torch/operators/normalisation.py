"""Softmax and the normalisations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from compiler.frontends.torch.operators.elements import converted, dimension, filled, pointwise, shaped, working
from compiler.frontends.torch.table import Call, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.normalisation import batch_norm_as, moments, softmax_over
from compiler.te.tensor import Tensor


@operator("_softmax", "softmax.int")
def softmax(call: Call, x: Tensor, dim: int, half_to_float: object = False) -> Tensor:
    """exp(x) over its sum along a dimension."""
    if not x.rank:
        return filled((), 1, call.dtype, call.name)
    return nn.softmax(converted(x, call.dtype, f"{call.name}.wide"), dimension(dim, x.rank), call.name)


@operator("_log_softmax", "log_softmax.int")
def log_softmax(call: Call, x: Tensor, dim: int, half_to_float: object = False) -> Tensor:
    """The logarithm of softmax."""
    if not x.rank:
        return filled((), 0, call.dtype, call.name)
    return nn.log_softmax(converted(x, call.dtype, f"{call.name}.wide"), dimension(dim, x.rank), call.name)


@operator("_safe_softmax")
def safe_softmax(call: Call, x: Tensor, dim: int, dtype: object = None) -> Tensor:
    """Softmax; zero where all elements are -inf."""
    wide = converted(x, call.dtype, f"{call.name}.wide")
    return softmax_over(wide, dimension(dim, x.rank), call.name, guarded=True)


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
    """(x - mean) / sqrt(variance + eps) times a weight plus a bias, of each channel; by stated statistics only."""
    if len(options) == 3 and options[0]:
        return None, None, None
    return batch_norm_as(call.dtype, x, 1, mean, variance, weight, bias, options[-1], call.name), None, None


@operator("_native_batch_norm_legit.no_stats")
def instance_norm(
    call: Call, x: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    """(x - mean) / sqrt(variance + eps) of each channel by itself, times a weight plus a bias; mean and 1 / sqrt."""
    centred, middle, scale = _standardised(x, [d for d in range(x.rank) if d != 1], eps, call.name)
    wide = working(x.dtype)

    def element(*i: Index) -> Expr:
        c = i[1]
        normed = centred[i] * scale[(0, c, *(0 for _ in i[2:]))]
        normed = normed if weight is None else normed * e.cast(weight[c], wide)
        return e.cast(normed if bias is None else normed + e.cast(bias[c], wide), call.dtype)

    return compute(x.shape, element, call.name), shaped(call, middle, 1), shaped(call, scale, 2)


@operator("_native_batch_norm_legit_functional")
def trained_batch_norm(
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
    """The same by the batch's own statistics; these, and the running ones, moved towards them."""
    if not training:
        return (*batch_norm(call, x, weight, bias, mean, variance, momentum, eps), mean, variance)
    normed, middle, scale = instance_norm(call, x, weight, bias, training, momentum, eps)
    count = math.prod(x.shape) // x.shape[1]
    unbiased = count / max(count - 1, 1)

    def moved(position: int, running_value: Tensor, value: Callable[[Expr], Expr], new: Tensor) -> Tensor:
        mixed = Call(f"{call.name}.{position}", (running_value.shape,), (running_value.dtype,), running_value.dtype)
        return pointwise(mixed, lambda a, b: a * (1.0 - momentum) + value(b) * momentum, running_value, new)

    running = moved(3, mean, lambda v: v, middle)
    return normed, middle, scale, running, moved(4, variance, lambda r: (1.0 / (r * r) - eps) * unbiased, scale)


def _standardised(x: Tensor, along: Sequence[int], eps: float, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """The centred tensor, its mean, and 1 / sqrt(variance + eps), over dimensions that are kept with extent 1."""
    of_x = moments(x, along, name)
    scale = compute(of_x.variance.shape, lambda *i: e.rsqrt(of_x.variance[i] + eps), f"{name}.scale")
    return of_x.centred, of_x.middle, scale


@operator("native_layer_norm")
def layer_norm(
    call: Call, x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, ...]:
    """(x - mean) / sqrt(variance + eps) over the last dimensions, times a weight plus a bias; mean and 1 / sqrt."""
    first = x.rank - len(shape)
    along, wide = range(first, x.rank), working(x.dtype)
    centred, middle, scale = _standardised(x, along, eps, call.name)

    def element(*i: Index) -> Expr:
        normed = centred[i] * scale[(*i[:first], *(0 for _ in along))]
        normed = normed if weight is None else normed * e.cast(weight[i[first:]], wide)
        return e.cast(normed if bias is None else normed + e.cast(bias[i[first:]], wide), call.dtype)

    return compute(x.shape, element, call.name), shaped(call, middle, 1), shaped(call, scale, 2)


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
    """(x - mean) / sqrt(variance + eps) over the channels of a group and their image, times a weight plus a bias."""
    channels_each, wide = channels // groups, working(x.dtype)
    parts = nn.reshape(x, (batch, groups, channels_each, *x.shape[2:]), f"{call.name}.groups")
    along = range(2, parts.rank)
    centred, middle, scale = _standardised(parts, along, eps, call.name)

    def element(*i: Index) -> Expr:
        n, c = i[:2]
        normed = (
            centred[(n, c // channels_each, c % channels_each, *i[2:])]
            * scale[(n, c // channels_each, *(0 for _ in along))]
        )
        normed = normed if weight is None else normed * e.cast(weight[c], wide)
        return e.cast(normed if bias is None else normed + e.cast(bias[c], wide), call.dtype)

    return compute(x.shape, element, call.name), shaped(call, middle, 1), shaped(call, scale, 2)
