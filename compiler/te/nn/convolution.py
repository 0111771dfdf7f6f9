"""Convolutions of one to three dimensions, transposed ones, and the gradients of conv2d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import compared
from compiler.te.nn.common import (
    accumulator,
    borders_of,
    check_equal,
    check_rank,
    pair,
    product,
    result_dtype,
    rounded,
    several,
    window_size,
)
from compiler.te.tensor import Tensor, reduce_axis

_SPATIAL = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}
_TAPS = {1: ("s",), 2: ("r", "s"), 3: ("q", "r", "s")}
_IMAGE = {1: "N, C, W", 2: "N, C, H, W", 3: "N, C, D, H, W"}
_FILTER = {1: "O, C / groups, S", 2: "O, C / groups, R, S", 3: "O, C / groups, Q, R, S"}


def conv1d(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv1d",
) -> Tensor:
    """Y[n, o, w] = sum over c, s of X[n, g + c, w*stride + s*dilation - left] * W[o, c, s], plus bias[o].

    x is [N, C, W], w [O, C / groups, S], bias [O]; padding is an integer or (left, right), of zeros; dtypes as conv2d.
    Raises TeError.
    """
    return _convolution("conv1d", 1, x, w, bias, stride, padding, dilation, groups, dtype, name)


def conv2d(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv2d",
) -> Tensor:
    """Y[n, o, h, w] = sum over c, r, s of X[n, g + c, h*stride + r*dilation - top, ...] * W[o, c, r, s].

    x is [N, C, H, W], w is [O, C / groups, R, S], bias is [O]; padding is an integer, (height, width), or (top,
    left, bottom, right), of zeros. Output channel o reads the channels of its group. Sums are formed in f32 of narrower
    floats and in i32 of narrower integers; `dtype` is that of the result: x's of floats, that of the sums of integers.
    Raises TeError.
    """
    return _convolution("conv2d", 2, x, w, bias, stride, padding, dilation, groups, dtype, name)


def conv3d(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv3d",
) -> Tensor:
    """Y[n, o, d, h, w] = sum over c, q, r, s of X[n, g + c, d*stride + q*dilation - front, ...] * W[o, c, q, r, s].

    x is [N, C, D, H, W], w [O, C / groups, Q, R, S], bias [O]; padding is an integer, one for each dimension, or
    (front, top, left, back, bottom, right), of zeros; dtypes as conv2d. Raises TeError.
    """
    return _convolution("conv3d", 3, x, w, bias, stride, padding, dilation, groups, dtype, name)


def depthwise_conv2d(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    dtype: str | None = None,
    name: str = "depthwise_conv2d",
) -> Tensor:
    """Y[n, o, h, w] = sum over r, s of X[n, o // M, h*stride + r*dilation - top, ...] * W[o, 0, r, s].

    x is [N, C, H, W], w [C * M, 1, R, S] for M filters a channel, bias [C * M]; the rest as conv2d with C groups.
    Raises TeError.
    """
    channels = check_rank("depthwise_conv2d", x, 4, _IMAGE[2]).shape[1]
    return _convolution("depthwise_conv2d", 2, x, w, bias, stride, padding, dilation, channels, dtype, name)


def _convolution(
    operator: str,
    rank: int,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    dtype: str | None,
    name: str,
) -> Tensor:
    check_rank(operator, x, rank + 2, _IMAGE[rank])
    check_rank(operator, w, rank + 2, _FILTER[rank])
    strides, dilations = several(operator, "stride", stride, 1, rank), several(operator, "dilation", dilation, 1, rank)
    before, after = borders_of(operator, padding, rank)
    batch, channels, *image = x.shape
    filters, depth, *kernel = w.shape
    _check_groups(operator, groups, channels, filters)
    check_equal(operator, f"the channels of a group and of '{w.name}'", channels // groups, depth)
    out = [
        window_size(operator, image[d], kernel[d], strides[d], dilations[d], before[d] + after[d]) for d in range(rank)
    ]
    c = reduce_axis(depth, "c")
    taps = [reduce_axis(size, label) for size, label in zip(kernel, _TAPS[rank], strict=True)]
    source: Any = x.padded(0) if any((*before, *after)) else x
    share, sums = filters // groups, accumulator(x.dtype)

    def element(*i: Any) -> Expr:
        n, o, *at = i
        channel = c if groups == 1 else (o // share) * depth + c
        places = [at[d] * strides[d] + taps[d] * dilations[d] - before[d] for d in range(rank)]
        return e.sum(product(source[(n, channel, *places)], w[(o, c, *taps)], sums), axis=(c, *taps))

    axes = ("n", "o", *_SPATIAL[rank])
    return _finished(operator, (batch, filters, *out), element, axes, bias, filters, x.dtype, dtype, name)


def _check_groups(operator: str, groups: Any, channels: int, filters: int) -> None:
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1 or channels % groups or filters % groups:
        raise TeError(f"{operator}: {groups!r} groups do not divide {channels} channels and {filters} filters")


def _finished(
    operator: str,
    shape: Sequence[int],
    element: Any,
    axes: Sequence[str],
    bias: Tensor | None,
    filters: int,
    own: str,
    dtype: str | None,
    name: str,
) -> Tensor:
    """The sums, with the bias of each filter, in the dtype of the result."""
    wanted = result_dtype(operator, own, dtype)
    sums: Tensor = compute(shape, element, name if wanted == accumulator(own) else f"{name}.sum", axes=axes)
    if bias is None:
        return rounded(sums, wanted, name)
    check_rank(operator, bias, 1, "O")
    check_equal(operator, f"the filters and '{bias.name}'", filters, bias.shape[0])

    def biased(*i: Any) -> Expr:
        return e.cast(sums[i] + e.cast(bias[i[1]], sums.dtype), wanted)

    result: Tensor = compute(shape, biased, f"{name}.bias", axes=axes)
    return result


def conv1d_transpose(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv1d_transpose",
) -> Tensor:
    """Y[n, o, w] = sum over c, s of X[n, g + c, (w + left - s*dilation) / stride] * W[g + c, o, s].

    Only where the quotients are whole. x is [N, C, W], w [C, O / groups, S], bias [O]; the result has (W - 1) * stride
    - left - right + dilation * (S - 1) + output_padding + 1 columns; dtypes as conv2d. Raises TeError. Elsewhere: torch
    conv_transpose1d.
    """
    return _transposed(
        "conv1d_transpose", 1, x, w, bias, stride, padding, output_padding, dilation, groups, dtype, name
    )


def conv2d_transpose(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv2d_transpose",
) -> Tensor:
    """Y[n, o, h, w] = sum over c, r, s of X[n, g + c, (h + top - r*dilation) / stride, ...] * W[g + c, o, r, s].

    Only where the quotients are whole. x is [N, C, H, W], w [C, O / groups, R, S], bias [O]; the result has
    (H - 1) * stride - top - bottom + dilation * (R - 1) + output_padding + 1 rows, columns alike; dtypes as conv2d.
    Raises TeError. Elsewhere: torch conv_transpose2d.
    """
    return _transposed(
        "conv2d_transpose", 2, x, w, bias, stride, padding, output_padding, dilation, groups, dtype, name
    )


def _transposed(
    operator: str,
    rank: int,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int,
    dtype: str | None,
    name: str,
) -> Tensor:
    check_rank(operator, x, rank + 2, _IMAGE[rank])
    check_rank(operator, w, rank + 2, "C, O / groups, and the window")
    strides, dilations = several(operator, "stride", stride, 1, rank), several(operator, "dilation", dilation, 1, rank)
    before, after = borders_of(operator, padding, rank)
    extra = several(operator, "output_padding", output_padding, 0, rank)
    batch, channels, *image = x.shape
    filters = w.shape[1] * groups if isinstance(groups, int) else 0
    _check_groups(operator, groups, channels, max(filters, 1))
    check_equal(operator, f"the channels of '{x.name}' and '{w.name}'", channels, w.shape[0])
    out = []
    for d in range(rank):
        if extra[d] >= max(strides[d], dilations[d]):
            raise TeError(f"{operator}: output_padding {extra[d]} is not below the stride or the dilation")
        window = dilations[d] * (w.shape[2 + d] - 1) + 1
        out.append((image[d] - 1) * strides[d] - before[d] - after[d] + window + extra[d])
        if out[d] < 1:
            raise TeError(f"{operator}: a padding of {before[d]} and {after[d]} leaves nothing of the result")
    element = _spread(x, w, strides, before, dilations, groups)
    axes = ("n", "o", *_SPATIAL[rank])
    return _finished(operator, (batch, filters, *out), element, axes, bias, filters, x.dtype, dtype, name)


def _spread(
    x: Tensor, w: Tensor, strides: Sequence[int], before: Sequence[int], dilations: Sequence[int], groups: int
) -> Any:
    """The element of a transposed convolution, which is also the gradient of a convolution for its data."""
    rank, depth, share = x.rank - 2, x.shape[1] // groups, w.shape[1]
    c = reduce_axis(depth, "c")
    taps = [reduce_axis(size, label) for size, label in zip(w.shape[2:], _TAPS[rank], strict=True)]
    sums = accumulator(x.dtype)

    def element(*i: Any) -> Expr:
        n, o, *at = i
        channel = c if groups == 1 else (o // share) * depth + c
        filter = o if groups == 1 else o % share
        spread = [at[d] + before[d] - taps[d] * dilations[d] for d in range(rank)]
        places = [s // strides[d] for d, s in enumerate(spread)]
        holds = [compared(s % strides[d], "==", 0) for d, s in enumerate(spread) if strides[d] > 1]
        for place, size in zip(places, x.shape[2:], strict=True):
            holds += [place >= 0, place <= size - 1]
        value = e.select(e.all_of(*holds), x[(n, channel, *places)], 0)
        return e.sum(product(value, w[(channel, filter, *taps)], sums), axis=(c, *taps))

    return element


def conv2d_grad_data(
    dy: Tensor,
    w: Tensor,
    shape: Sequence[int],
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv2d_grad_data",
) -> Tensor:
    """dX[n, c, h, w] = sum over o, r, s of dY[n, g + o, (h + top - r*dilation) / stride, ...] * W[g + o, c, r, s].

    Only where the quotients are whole: the gradient of conv2d for its input of that shape [N, C, H, W], dy [N, O, OH,
    OW] being that of its result, w [O, C / groups, R, S]; the rest as conv2d. Raises TeError where they do not fit.
    """
    operator = "conv2d_grad_data"
    check_rank(operator, dy, 4, "N, O, OH, OW")
    check_rank(operator, w, 4, _FILTER[2])
    strides, dilations = pair(operator, "stride", stride, 1), pair(operator, "dilation", dilation, 1)
    before, _ = _check_fit(operator, dy, shape, w.shape, strides, padding, dilations, groups)
    element = _spread(dy, w, strides, before, dilations, groups)
    axes = ("n", "i", "h", "w")  # c is reduced over
    return _finished(operator, tuple(shape), element, axes, None, shape[1], dy.dtype, dtype, name)


def conv2d_grad_weight(
    x: Tensor,
    dy: Tensor,
    shape: Sequence[int],
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv2d_grad_weight",
) -> Tensor:
    """dW[o, c, r, s] = sum over n, h, w of X[n, g + c, h*stride + r*dilation - top, ...] * dY[n, o, h, w].

    The gradient of conv2d for its weight of that shape [O, C / groups, R, S], x being its input and dy [N, O, OH, OW]
    the gradient of its result; the rest as conv2d. Raises TeError where they do not fit.
    """
    operator = "conv2d_grad_weight"
    check_rank(operator, x, 4, _IMAGE[2])
    check_rank(operator, dy, 4, "N, O, OH, OW")
    strides, dilations = pair(operator, "stride", stride, 1), pair(operator, "dilation", dilation, 1)
    before, after = _check_fit(operator, dy, x.shape, shape, strides, padding, dilations, groups)
    n, h, v = (reduce_axis(dy.shape[d], label) for d, label in ((0, "n"), (2, "h"), (3, "w")))
    source: Any = x.padded(0) if any((*before, *after)) else x
    share, depth, sums = shape[0] // groups, shape[1], accumulator(x.dtype)

    def element(o: Any, c: Any, r: Any, s: Any) -> Expr:
        channel = c if groups == 1 else (o // share) * depth + c
        rows = h * strides[0] + r * dilations[0] - before[0]
        columns = v * strides[1] + s * dilations[1] - before[1]
        return e.sum(product(source[n, channel, rows, columns], dy[n, o, h, v], sums), axis=(n, h, v))

    return _finished(operator, tuple(shape), element, ("o", "c", "r", "s"), None, shape[0], x.dtype, dtype, name)


def _check_fit(
    operator: str,
    dy: Tensor,
    image: Any,
    weight: Any,
    strides: Sequence[int],
    padding: Any,
    dilations: Sequence[int],
    groups: Any,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The borders, where a conv2d of these shapes has a result of dy's."""
    for shape in (image, weight):
        if (
            not isinstance(shape, tuple | list)
            or len(shape) != 4
            or any(not isinstance(n, int) or n < 1 for n in shape)
        ):
            raise TeError(f"{operator}: the shape {shape!r} is not four positive integers")
    before, after = borders_of(operator, padding, 2)
    _check_groups(operator, groups, image[1], weight[0])
    check_equal(operator, "the channels of a group and of the weight", image[1] // groups, weight[1])
    out = [
        window_size(operator, image[2 + d], weight[2 + d], strides[d], dilations[d], before[d] + after[d])
        for d in range(2)
    ]
    if dy.shape != (image[0], weight[0], *out):
        raise TeError(f"{operator}: '{dy.name}' has shape {dy.shape}, expected {(image[0], weight[0], *out)}")
    return before, after
