"""Convolutions of one to three dimensions, transposed ones, and the gradients of conv2d."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Axis, Condition, Index, compared
from compiler.te.nn.common import Sizes, accumulator, astype, check_equal, check_rank, per_dim, product, result_dtype
from compiler.te.nn.window import SPATIAL, TAPS, Window, for_rank, layout, split_padding, window
from compiler.te.tensor import Tensor, reduce_axis


@dataclass(frozen=True)
class _Result:
    """The bias, the dtype (None: by default) and the name of the result of a convolution `operator`."""

    operator: str
    bias: Tensor | None
    dtype: str | None
    name: str

    def build(self, shape: Sequence[int], element: Callable[..., Expr], axes: Sequence[str], in_dtype: str) -> Tensor:
        """Compute element(axes), sums over operands of in_dtype, add the bias at axis 1, cast to the result's dtype.
        Raises TeError for a bias that is no vector of shape[1] elements."""
        out_dtype = result_dtype(self.operator, in_dtype, self.dtype)
        label = self.name if out_dtype == accumulator(in_dtype) else f"{self.name}.sum"
        sums, bias = compute(shape, element, label, axes=axes), self.bias
        if bias is None:
            return astype(sums, out_dtype, self.name)
        if not isinstance(bias, Tensor):
            raise TeError(
                f"{self.operator}: {bias!r} stands in the place of the bias, the third argument; the order is x, w, "
                "bias, stride, padding, dilation: give stride=, padding= by name"
            )
        check_rank(self.operator, bias, 1, "O")
        check_equal(self.operator, f"the filters and '{bias.name}'", shape[1], bias.shape[0])

        def biased(*i: Index) -> Expr:
            return e.cast(sums[i] + e.cast(bias[i[1]], sums.dtype), out_dtype)

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

    x is [N, C, {HW}], w is [O, C / groups, {RS}], bias is [O]; padding with zeros is an integer, one for each
    dimension, or all before and then all after. Output channel o reads the channels from g, its group's first. Sums are
    in f32 for narrower floats and in i32 for narrower integers (u32 for u16). The default `dtype` of the result is x's
    for floats, that of the sums for integers. Raises TeError for other arguments.
    """
    return _convolved(rank, x, w, stride, padding, dilation, groups, _Result(f"conv{rank}d", bias, dtype, name))


conv1d, conv2d, conv3d = (for_rank(_conv, rank) for rank in (1, 2, 3))


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
    Raises TeError for other arguments.
    """
    channels = check_rank("depthwise_conv2d", x, 4, "N, C, H, W").shape[1]
    return _convolved(2, x, w, stride, padding, dilation, channels, _Result("depthwise_conv2d", bias, dtype, name))


def _convolved(
    rank: int, x: Tensor, w: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, result: _Result
) -> Tensor:
    operator = result.operator
    check_rank(operator, x, rank + 2, f"N, C, {layout(SPATIAL[rank])}")
    check_rank(operator, w, rank + 2, f"O, C / groups, {layout(TAPS[rank])}")
    windows = window(operator, w.shape[2:], stride, padding, dilation)
    _check_channels(operator, groups, x.shape[1], w.shape, w.name)
    shape = (x.shape[0], w.shape[0], *windows.output_extents(x.shape[2:]))
    c, padded = reduce_axis(w.shape[1], "c"), windows.padded_input(x, 0)
    group_size, acc_dtype = w.shape[0] // groups, accumulator(x.dtype)

    def element(n: Index, o: Index, *output: Index) -> Reduce:
        channel = c if groups == 1 else (o // group_size) * w.shape[1] + c
        read = padded[(n, channel, *windows.input_indices(output))]
        return e.sum(product(read, w[(o, c, *windows.taps)], acc_dtype), axis=(c, *windows.taps))

    return result.build(shape, element, ("n", "o", *SPATIAL[rank]), x.dtype)


def _check_groups(operator: str, groups: int, channels: int, filters: int) -> None:
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1 or channels % groups or filters % groups:
        raise TeError(f"{operator}: {groups!r} groups do not divide {channels} channels and {filters} filters")


def _check_channels(operator: str, groups: int, channels: int, weight: Sequence[int], name: str | None) -> None:
    """Raise TeError unless a weight of shape [O, C / groups, ...] fits `channels`, C, and groups divide C and O."""
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

    The sum is over the taps for which the quotients are integers. x is [N, C, {HW}], w [C, O / groups, {RS}], bias [O];
    each extent of the result is (image - 1) * stride - before - after + dilation * (window - 1) + output_padding + 1;
    the rest as conv{rank}d. Raises TeError for other arguments. Elsewhere: torch conv_transpose{rank}d.
    """
    operator, image = f"conv{rank}d_transpose", SPATIAL[rank]
    check_rank(operator, x, rank + 2, f"N, C, {layout(image)}")
    check_rank(operator, w, rank + 2, "C, O / groups, and the window")
    windows = window(operator, w.shape[2:], stride, padding, dilation)
    extra = per_dim(operator, "output_padding", output_padding, 0, rank)
    filters = w.shape[1] * groups if isinstance(groups, int) else 0
    _check_groups(operator, groups, x.shape[1], max(filters, 1))
    check_equal(operator, f"the channels of '{x.name}' and '{w.name}'", x.shape[1], w.shape[0])
    shape = (x.shape[0], filters, *_extents(windows, x.shape[2:], extra))
    result = _Result(operator, bias, dtype, name)
    return result.build(shape, _transposed_element(x, w, windows, groups), ("n", "o", *image), x.dtype)


conv1d_transpose, conv2d_transpose, conv3d_transpose = (for_rank(_transpose, rank) for rank in (1, 2, 3))


def _extents(windows: Window, image: Sequence[int], extra: Sequence[int]) -> list[int]:
    """Return the image extents of a transposed convolution's result; `extra` is output_padding. Raises TeError for an
    extra that is not below the larger of stride and dilation, and for a result without elements."""
    extents = []
    for d, span in enumerate(windows.spans()):
        before, after = windows.before[d], windows.after[d]
        if extra[d] >= max(windows.strides[d], windows.dilations[d]):
            raise TeError(f"{windows.operator}: output_padding {extra[d]} is not below the stride or the dilation")
        extents.append((image[d] - 1) * windows.strides[d] - before - after + span + extra[d])
        if extents[d] < 1:
            raise TeError(f"{windows.operator}: a padding of {before} and {after} leaves nothing of the result")
    return extents


@dataclass(frozen=True)
class _Term:
    """A term of a transposed convolution's sum in one dimension: the input's index, the tap, and conditions on both."""

    input: Index
    tap: Index
    conditions: Sequence[Condition]


@dataclass(frozen=True)
class _Dimension:
    """A dimension of a transposed convolution by a window of `taps` taps. Output i sums the taps congruent to i +
    before modulo the stride; without dilation the axis `tap` runs over these only, and its last value may exceed the
    window.

    Example: before 0, stride 2, 3 taps. Output 4 sums taps 0 and 2, of inputs 2 and 1; output 5 sums tap 1 of input 2.
    """

    tap: Axis
    taps: int
    before: int
    stride: int
    dilation: int

    @property
    def by_phase(self) -> bool:
        """Whether `tap` runs over the taps of one residue modulo the stride only: no dilation, and a stride above 1."""
        return self.stride > 1 and self.dilation == 1

    @property
    def overruns(self) -> bool:
        """Whether residues have different numbers of taps, so that `tap` exceeds the window for some of them."""
        return self.by_phase and self.taps % self.stride > 0

    def term(self, i: Index) -> _Term:
        """Return the input and the tap of the terms that output i sums, as expressions of the axis `tap`."""
        position = i + self.before
        if self.by_phase:
            return _Term(position // self.stride - self.tap, position % self.stride + self.tap * self.stride, ())
        position = position - self.tap * self.dilation
        conditions = [compared(position % self.stride, "==", 0)] if self.stride > 1 else []
        return _Term(position // self.stride, self.tap, conditions)


def _dimension(windows: Window, d: int, taps: int) -> _Dimension:
    dimension = _Dimension(windows.taps[d], taps, windows.before[d], windows.strides[d], windows.dilations[d])
    if not dimension.by_phase:
        return dimension
    return replace(dimension, tap=reduce_axis(-(-taps // dimension.stride), windows.taps[d].name))


def _transposed_element(x: Tensor, w: Tensor, windows: Window, groups: int) -> Callable[..., Reduce]:
    """Return the element function of a transposed convolution in `groups`, or of a convolution's gradient for its
    input."""
    depth, group_size, acc_dtype = x.shape[1] // groups, w.shape[1], accumulator(x.dtype)
    c, dims = reduce_axis(depth, "c"), [_dimension(windows, d, w.shape[2 + d]) for d in range(len(windows.taps))]

    def element(n: Index, o: Index, *output: Index) -> Reduce:
        channel = c if groups == 1 else (o // group_size) * depth + c
        filter = o if groups == 1 else o % group_size
        terms = [dim.term(i) for dim, i in zip(dims, output, strict=True)]
        conditions = [condition for term in terms for condition in term.conditions]
        for term, size in zip(terms, x.shape[2:], strict=True):
            conditions += [term.input >= 0, term.input <= size - 1]
        value = e.select(e.all_of(*conditions), x[(n, channel, *(term.input for term in terms))], 0)
        weight: Expr = w[(channel, filter, *(term.tap for term in terms))]
        tap_bounds = [
            term.tap <= size - 1 for term, dim, size in zip(terms, dims, w.shape[2:], strict=True) if dim.overruns
        ]
        if tap_bounds:
            weight = e.select(e.all_of(*tap_bounds), weight, 0)
        return e.sum(product(value, weight, acc_dtype), axis=(c, *(dim.tap for dim in dims)))

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

    The gradient of conv2d for its input of `shape` [N, C, H, W]; dy [N, O, OH, OW] is that of its result, w [O, C /
    groups, R, S]. The sum is over the taps for which the quotients are integers; the rest as conv2d. Raises TeError for
    other arguments.
    """
    operator = "conv2d_grad_data"
    check_rank(operator, dy, 4, "N, O, OH, OW")
    check_rank(operator, w, 4, "O, C / groups, R, S")
    windows = _grad_window(operator, dy, shape, w.shape, stride, padding, dilation, groups)
    axes = ("n", "i", "h", "w")  # c is reduced over
    element = _transposed_element(dy, w, windows, groups)
    return _Result(operator, None, dtype, name).build(tuple(shape), element, axes, dy.dtype)


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

    The gradient of conv2d for its weight of `shape` [O, C / groups, R, S]; x is its input, dy [N, O, OH, OW] the
    gradient of its result; the rest as conv2d. Raises TeError for other arguments.
    """
    operator = "conv2d_grad_weight"
    check_rank(operator, x, 4, "N, C, H, W")
    check_rank(operator, dy, 4, "N, O, OH, OW")
    windows = _grad_window(operator, dy, x.shape, shape, stride, padding, dilation, groups)
    n, *axes = (reduce_axis(dy.shape[d], label) for d, label in ((0, "n"), (2, "h"), (3, "w")))
    group_size, depth, acc_dtype, padded = (
        shape[0] // groups,
        shape[1],
        accumulator(x.dtype),
        windows.padded_input(x, 0),
    )

    def element(o: Index, c: Index, *taps: Index) -> Reduce:
        channel = c if groups == 1 else (o // group_size) * depth + c
        steps = zip(axes, windows.strides, taps, windows.dilations, windows.before, strict=True)
        index = [axis * stride + tap * dilation - before for axis, stride, tap, dilation, before in steps]
        return e.sum(product(padded[(n, channel, *index)], dy[(n, o, *axes)], acc_dtype), axis=(n, *axes))

    return _Result(operator, None, dtype, name).build(tuple(shape), element, ("o", "c", "r", "s"), x.dtype)


def _grad_window(
    operator: str,
    dy: Tensor,
    image: Sequence[int],
    weight: Sequence[int],
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Window:
    """Return the window of a conv2d of an image by a weight of these shapes. Raises TeError unless its result has the
    shape of dy."""
    strides, dilations = per_dim(operator, "stride", stride, 1, 2), per_dim(operator, "dilation", dilation, 1, 2)
    for shape in (image, weight):
        is_sequence = isinstance(shape, tuple | list) and len(shape) == 4
        if not is_sequence or any(not isinstance(n, int) or n < 1 for n in shape):
            raise TeError(f"{operator}: the shape {shape!r} is not four positive integers")
    windows = Window(operator, tuple(weight[2:]), strides, dilations, *split_padding(operator, padding, 2))
    _check_channels(operator, groups, image[1], weight, None)
    expected = (image[0], weight[0], *windows.output_extents(image[2:]))
    if dy.shape != expected:
        raise TeError(f"{operator}: '{dy.name}' has shape {dy.shape}, expected {expected}")
    return windows
