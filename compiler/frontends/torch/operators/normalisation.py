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


def _enter_softmax(build: Callable[..., Tensor], of_scalar: int, *names: str) -> None:
    """Softmax along a dimension, or its logarithm; a constant for a tensor without dimensions."""

    def convert(call: Call, x: Tensor, dim: int, half_to_float: object = False) -> Tensor:
        if not x.rank:
            return filled((), of_scalar, call.dtype, call.name)
        return build(converted(x, call.dtype, f"{call.name}.wide"), dimension(dim, x.rank), call.name)

    operator(*names)(convert)


_enter_softmax(nn.softmax, 1, "_softmax", "softmax.int")
_enter_softmax(nn.log_softmax, 0, "_log_softmax", "log_softmax.int")


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
    return _normed(call, x, [d for d in range(x.rank) if d != 1], eps, (weight, bias, slice(1, 2)))


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


def _normed(
    call: Call,
    x: Tensor,
    along: Sequence[int],
    eps: float,
    affine: tuple[Tensor | None, Tensor | None, slice],
    place: Callable[[tuple[Index, ...]], tuple[Index, ...]] = lambda i: i,
) -> tuple[Tensor, ...]:
    """(x - mean) / sqrt(variance + eps) over dimensions, times a weight plus a bias; mean and 1 / sqrt.

    `affine` are weight, bias and the dimensions that they have; `place` maps an index of the result to one of x.
    """
    weight, bias, scaled = affine
    statistics, wide = moments(x, along, call.name), working(x.dtype)
    scale = compute(statistics.variance.shape, lambda *i: e.rsqrt(statistics.variance[i] + eps), f"{call.name}.scale")

    def element(*i: Index) -> Expr:
        at = place(i)
        value = statistics.centred[at] * scale[tuple(0 if d in along else index for d, index in enumerate(at))]
        value = value if weight is None else value * e.cast(weight[i[scaled]], wide)
        return e.cast(value if bias is None else value + e.cast(bias[i[scaled]], wide), call.dtype)

    return compute(call.shape, element, call.name), shaped(call, statistics.mean, 1), shaped(call, scale, 2)


@operator("native_layer_norm")
def layer_norm(
    call: Call, x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, ...]:
    """(x - mean) / sqrt(variance + eps) over the last dimensions, times a weight plus a bias; mean and 1 / sqrt."""
    first = x.rank - len(shape)
    return _normed(call, x, range(first, x.rank), eps, (weight, bias, slice(first, None)))


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
    each = channels // groups
    parts = nn.reshape(x, (batch, groups, each, *x.shape[2:]), f"{call.name}.groups")
    affine = (weight, bias, slice(1, 2))
    return _normed(call, parts, range(2, parts.rank), eps, affine, lambda i: (i[0], i[1] // each, i[1] % each, *i[2:]))
