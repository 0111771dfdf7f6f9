"""Convolutions of one to three dimensions, transposed ones, and the gradients of conv2d."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Axis, Condition, Index, compared
from compiler.te.nn.common import (
    Sizes,
    accumulator,
    check_equal,
    check_rank,
    product,
    result_dtype,
    rounded,
    several,
)
from compiler.te.nn.window import SPATIAL, TAPS, Window, borders, listed, of_rank, window
from compiler.te.tensor import Tensor, reduce_axis


@dataclass(frozen=True)
class _Result:
    """What all of them say of their result."""

    operator: str
    bias: Tensor | None
    dtype: str | None
    name: str

    def of(self, shape: Sequence[int], element: Callable[..., Expr], axes: Sequence[str], operand_dtype: str) -> Tensor:
        """The sums of elements of a dtype, with the bias of each filter, in the dtype of the result."""
        wanted = result_dtype(self.operator, operand_dtype, self.dtype)
        label = self.name if wanted == accumulator(operand_dtype) else f"{self.name}.sum"
        sums, bias = compute(shape, element, label, axes=axes), self.bias
        if bias is None:
            return rounded(sums, wanted, self.name)
        if not isinstance(bias, Tensor):
            raise TeError(
                f"{self.operator}: {bias!r} stands in the place of the bias, the third argument; the order is x, w, "
                "bias, stride, padding, dilation: give stride=, padding= by name"
            )
        check_rank(self.operator, bias, 1, "O")
        check_equal(self.operator, f"the filters and '{bias.name}'", shape[1], bias.shape[0])

        def biased(*i: Index) -> Expr:
            return e.cast(sums[i] + e.cast(bias[i[1]], sums.dtype), wanted)

        return compute(shape, biased, f"{self.name}.bias", axes=axes)


def _conv(
    rank: int,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv{rank}d",
) -> Tensor:
    """Y[n, o, {hw}] = sum over c, {rs} of X[n, g + c, {h}*stride + {r}*dilation - before, ...] * W[o, c, {rs}].

    x is [N, C, {HW}], w is [O, C / groups, {RS}], bias is [O]; padding is an integer,
    one for each dimension, or all before and then all after, of zeros. Output channel o reads the channels of
    its group. Sums are formed in f32 of narrower floats and in i32 of narrower integers (u32 of u16); `dtype`
    is that of the result: x's of floats, that of the sums of integers. Raises TeError.
    """
    return _convolved(rank, x, w, stride, padding, dilation, groups, _Result(f"conv{rank}d", bias, dtype, name))


conv1d, conv2d, conv3d = (of_rank(_conv, rank) for rank in (1, 2, 3))


def depthwise_conv2d(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    dtype: str | None = None,
    name: str = "depthwise_conv2d",
) -> Tensor:
    """Y[n, o, h, w] = sum over r, s of X[n, o // M, h*stride + r*dilation - top, ...] * W[o, 0, r, s].

    x is [N, C, H, W], w [C * M, 1, R, S] for M filters a channel, bias [C * M]; the rest as conv2d with C groups.
    Raises TeError.
    """
    channels = check_rank("depthwise_conv2d", x, 4, "N, C, H, W").shape[1]
    return _convolved(2, x, w, stride, padding, dilation, channels, _Result("depthwise_conv2d", bias, dtype, name))


def _convolved(
    rank: int, x: Tensor, w: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, output: _Result
) -> Tensor:
    operator = output.operator
    check_rank(operator, x, rank + 2, f"N, C, {listed(SPATIAL[rank])}")
    check_rank(operator, w, rank + 2, f"O, C / groups, {listed(TAPS[rank])}")
    over = window(operator, w.shape[2:], stride, padding, dilation)
    _check_channels(operator, groups, x.shape[1], w.shape, w.name)
    shape = (x.shape[0], w.shape[0], *over.positions(x.shape[2:]))
    c, source = reduce_axis(w.shape[1], "c"), over.source(x, 0)
    share, sums = w.shape[0] // groups, accumulator(x.dtype)

    def element(n: Index, o: Index, *at: Index) -> Reduce:
        channel = c if groups == 1 else (o // share) * w.shape[1] + c
        read = source[(n, channel, *over.places(at))]
        return e.sum(product(read, w[(o, c, *over.taps)], sums), axis=(c, *over.taps))

    return output.of(shape, element, ("n", "o", *SPATIAL[rank]), x.dtype)


def _check_groups(operator: str, groups: int, channels: int, filters: int) -> None:
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1 or channels % groups or filters % groups:
        raise TeError(f"{operator}: {groups!r} groups do not divide {channels} channels and {filters} filters")


def _check_channels(operator: str, groups: int, channels: int, weight: Sequence[int], name: str | None) -> None:
    """A weight [O, C / groups, ...], of a name if it is a tensor, fits an image of some channels."""
    _check_groups(operator, groups, channels, weight[0])
    what = "the weight" if name is None else f"'{name}'"
    check_equal(operator, f"the channels of a group and of {what}", channels // groups, weight[1])


def _transpose(
    rank: int,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv{rank}d_transpose",
) -> Tensor:
    """Y[n, o, {hw}] = sum over c, {rs} of X[n, g + c, ({h} + before - {r}*dilation) / stride, ...] * W[g + c, o, {rs}].

    Only where the quotients are whole. x is [N, C, {HW}], w [C, O / groups, {RS}],
    bias [O]; each dimension of the result has (image - 1) * stride - before - after + dilation * (window - 1) +
    output_padding + 1 places; the rest as conv{rank}d. Raises TeError.
    Elsewhere: torch conv_transpose{rank}d.
    """
    operator, image = f"conv{rank}d_transpose", SPATIAL[rank]
    check_rank(operator, x, rank + 2, f"N, C, {listed(image)}")
    check_rank(operator, w, rank + 2, "C, O / groups, and the window")
    over = window(operator, w.shape[2:], stride, padding, dilation)
    extra = several(operator, "output_padding", output_padding, 0, rank)
    filters = w.shape[1] * groups if isinstance(groups, int) else 0
    _check_groups(operator, groups, x.shape[1], max(filters, 1))
    check_equal(operator, f"the channels of '{x.name}' and '{w.name}'", x.shape[1], w.shape[0])
    shape = (x.shape[0], filters, *_extents(over, x.shape[2:], extra))
    output = _Result(operator, bias, dtype, name)
    return output.of(shape, _spread(x, w, over, groups), ("n", "o", *image), x.dtype)


conv1d_transpose, conv2d_transpose, conv3d_transpose = (of_rank(_transpose, rank) for rank in (1, 2, 3))


def _extents(over: Window, image: Sequence[int], extra: Sequence[int]) -> list[int]:
    """The extents of the result of a transposed convolution. Raises TeError."""
    extents = []
    for d, span in enumerate(over.spans()):
        before, after = over.before[d], over.after[d]
        if extra[d] >= max(over.strides[d], over.dilations[d]):
            raise TeError(f"{over.operator}: output_padding {extra[d]} is not below the stride or the dilation")
        extents.append((image[d] - 1) * over.strides[d] - before - after + span + extra[d])
        if extents[d] < 1:
            raise TeError(f"{over.operator}: a padding of {before} and {after} leaves nothing of the result")
    return extents


@dataclass(frozen=True)
class _Meeting:
    """Which tap an output meets which input with, and under which conditions."""

    place: Index
    tap: Index
    holds: Sequence[Condition]


@dataclass(frozen=True)
class _Dimension:
    """One dimension of a transposed convolution. An output at i meets those of the `taps` that are (i + before) modulo
    the stride; without dilation `tap` counts only these, and the last one may be beyond the end."""

    tap: Axis
    taps: int
    before: int
    stride: int
    dilation: int

    @property
    def by_phase(self) -> bool:
        """Whether the taps that an output does not meet are left out."""
        return self.stride > 1 and self.dilation == 1

    @property
    def overruns(self) -> bool:
        """Whether the last round has fewer taps than the stride."""
        return self.by_phase and self.taps % self.stride > 0

    def met(self, i: Index) -> _Meeting:
        """What an output meets."""
        at = i + self.before
        if self.by_phase:
            return _Meeting(at // self.stride - self.tap, at % self.stride + self.tap * self.stride, ())
        at = at - self.tap * self.dilation
        holds = [compared(at % self.stride, "==", 0)] if self.stride > 1 else []
        return _Meeting(at // self.stride, self.tap, holds)


def _dimension(over: Window, d: int, taps: int) -> _Dimension:
    made = _Dimension(over.taps[d], taps, over.before[d], over.strides[d], over.dilations[d])
    if not made.by_phase:
        return made
    return replace(made, tap=reduce_axis(-(-taps // made.stride), over.taps[d].name))


def _spread(x: Tensor, w: Tensor, over: Window, groups: int) -> Callable[..., Reduce]:
    """The element of a transposed convolution, which is also the gradient of a convolution for its data."""
    depth, share, sums = x.shape[1] // groups, w.shape[1], accumulator(x.dtype)
    c, dims = reduce_axis(depth, "c"), [_dimension(over, d, w.shape[2 + d]) for d in range(len(over.taps))]

    def element(n: Index, o: Index, *at: Index) -> Reduce:
        channel = c if groups == 1 else (o // share) * depth + c
        filter = o if groups == 1 else o % share
        meets = [dim.met(i) for dim, i in zip(dims, at, strict=True)]
        holds = [hold for meet in meets for hold in meet.holds]
        for meet, size in zip(meets, x.shape[2:], strict=True):
            holds += [meet.place >= 0, meet.place <= size - 1]
        value = e.select(e.all_of(*holds), x[(n, channel, *(meet.place for meet in meets))], 0)
        weight: Expr = w[(channel, filter, *(meet.tap for meet in meets))]
        exists = [
            meet.tap <= size - 1 for meet, dim, size in zip(meets, dims, w.shape[2:], strict=True) if dim.overruns
        ]
        if exists:
            weight = e.select(e.all_of(*exists), weight, 0)
        return e.sum(product(value, weight, sums), axis=(c, *(dim.tap for dim in dims)))

    return element


def conv2d_grad_data(
    dy: Tensor,
    w: Tensor,
    shape: Sequence[int],
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
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
    check_rank(operator, w, 4, "O, C / groups, R, S")
    over = _fitting(operator, dy, shape, w.shape, stride, padding, dilation, groups)
    axes = ("n", "i", "h", "w")  # c is reduced over
    return _Result(operator, None, dtype, name).of(tuple(shape), _spread(dy, w, over, groups), axes, dy.dtype)


def conv2d_grad_weight(
    x: Tensor,
    dy: Tensor,
    shape: Sequence[int],
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    dtype: str | None = None,
    name: str = "conv2d_grad_weight",
) -> Tensor:
    """dW[o, c, r, s] = sum over n, h, w of X[n, g + c, h*stride + r*dilation - top, ...] * dY[n, o, h, w].

    The gradient of conv2d for its weight of that shape [O, C / groups, R, S], x being its input and dy [N, O, OH, OW]
    the gradient of its result; the rest as conv2d. Raises TeError where they do not fit.
    """
    operator = "conv2d_grad_weight"
    check_rank(operator, x, 4, "N, C, H, W")
    check_rank(operator, dy, 4, "N, O, OH, OW")
    over = _fitting(operator, dy, x.shape, shape, stride, padding, dilation, groups)
    n, *places = (reduce_axis(dy.shape[d], label) for d, label in ((0, "n"), (2, "h"), (3, "w")))
    share, depth, sums, source = shape[0] // groups, shape[1], accumulator(x.dtype), over.source(x, 0)

    def element(o: Index, c: Index, *taps: Index) -> Reduce:
        channel = c if groups == 1 else (o // share) * depth + c
        steps = zip(places, over.strides, taps, over.dilations, over.before, strict=True)
        at = [place * stride + tap * dilation - before for place, stride, tap, dilation, before in steps]
        return e.sum(product(source[(n, channel, *at)], dy[(n, o, *places)], sums), axis=(n, *places))

    return _Result(operator, None, dtype, name).of(tuple(shape), element, ("o", "c", "r", "s"), x.dtype)


def _fitting(
    operator: str,
    dy: Tensor,
    image: Sequence[int],
    weight: Sequence[int],
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Window:
    """The window of a conv2d of these shapes, where its result has dy's."""
    strides, dilations = several(operator, "stride", stride, 1, 2), several(operator, "dilation", dilation, 1, 2)
    for shape in (image, weight):
        is_sequence = isinstance(shape, tuple | list) and len(shape) == 4
        if not is_sequence or any(not isinstance(n, int) or n < 1 for n in shape):
            raise TeError(f"{operator}: the shape {shape!r} is not four positive integers")
    over = Window(operator, tuple(weight[2:]), strides, dilations, *borders(operator, padding, 2))
    _check_channels(operator, groups, image[1], weight, None)
    expected = (image[0], weight[0], *over.positions(image[2:]))
    if dy.shape != expected:
        raise TeError(f"{operator}: '{dy.name}' has shape {dy.shape}, expected {expected}")
    return over
