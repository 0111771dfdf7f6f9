"""Sums of products: dot_general and convolution."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from compiler.dialects.upstream.stablehlo.attributes import ConvAttr, DotAttr
from compiler.lowering.stablehlo_to_te.call import HloCall
from compiler.lowering.stablehlo_to_te.operators.elementwise import convert_to
from compiler.lowering.stablehlo_to_te.table import handles
from compiler.lowering.stablehlo_to_te.windows import DimWindow, read_window
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Axis, Index, IndexLike
from compiler.te.nn.common import accumulator
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.dtypes import is_float, width


class DotDims(NamedTuple):
    """The batching and the contracting dimensions of both operands of a dot_general; those of the two sides correspond
    by position."""

    lhs_batch: list[int]
    rhs_batch: list[int]
    lhs_contract: list[int]
    rhs_contract: list[int]


def _accumulator(call: HloCall) -> str:
    """Return the dtype of a contraction's sums: f32 for floats narrower than f32, f64 for f64, the integer accumulator
    of i1 for i1, else the dtype of the result."""
    dtype = call.dtype
    return accumulator(dtype) if is_float(dtype) or dtype == "i1" else dtype


def _product(call: HloCall, left: Expr, right: Expr, dtype: str) -> Expr:
    if is_float(left.dtype) and width(left.dtype) > width(dtype):
        raise call.refused(f"sums products of {left.dtype} to {dtype}")
    return e.cast(left, dtype) * e.cast(right, dtype)


@handles("dot_general")
def _dot_general(call: HloCall) -> Tensor:
    lhs, rhs = call.operands
    numbers = call.attribute("dot_dimension_numbers")
    lists = numbers.lists() if isinstance(numbers, DotAttr) else {}
    dims = DotDims(
        *(
            call.check_dims(f"{side} {kind} dimensions", lists.get(f"{side}_{kind}_dimensions", []), tensor.rank)
            for kind in ("batching", "contracting")
            for side, tensor in (("lhs", lhs), ("rhs", rhs))
        )
    )
    pairs = [*zip(dims.lhs_batch, dims.rhs_batch, strict=True), *zip(dims.lhs_contract, dims.rhs_contract, strict=True)]
    if any(lhs.shape[a] != rhs.shape[b] for a, b in pairs):
        raise call.refused(f"has operands of shapes {lhs.shape} and {rhs.shape}, which do not fit {numbers}")
    product = _dot(call, lhs, rhs, dims)
    call.conversion.swapped[product] = lambda: _swapped(call, lhs, rhs, dims)
    return product


def _swapped(call: HloCall, lhs: Tensor, rhs: Tensor, dims: DotDims) -> tuple[Tensor, list[int]]:
    """Return the product with its operands exchanged, and for each dimension of the stated product the dimension of the
    new one. An einsum of JAX may state the product transposed, with a transpose behind it. lhs, rhs, dims: of the
    stated product."""
    exchanged = DotDims(dims.rhs_batch, dims.lhs_batch, dims.rhs_contract, dims.lhs_contract)
    batch = len(dims.lhs_batch)
    lhs_count, rhs_count = (len(_free(x, *used)) for x, used in ((lhs, dims[::2]), (rhs, dims[1::2])))
    behind = [batch + rhs_count + n for n in range(lhs_count)]
    return _dot(call, rhs, lhs, exchanged), [*range(batch), *behind, *(batch + n for n in range(rhs_count))]


@handles("dot")
def _plain_dot(call: HloCall) -> Tensor:
    lhs, rhs = call.operands
    return _dot(call, lhs, rhs, DotDims([], [], [lhs.rank - 1], [0]))


def _dot(call: HloCall, lhs: Tensor, rhs: Tensor, dims: DotDims) -> Tensor:
    """Return the product of a dot_general. If lhs has no batch and is summed over its last dimension, its other
    dimensions are flattened to rows, and the result is reshaped."""
    lhs_free, rhs_free = _free(lhs, dims.lhs_batch, dims.lhs_contract), _free(rhs, dims.rhs_batch, dims.rhs_contract)
    if not dims.lhs_batch and dims.lhs_contract == [lhs.rank - 1] and len(lhs_free) > 1:
        rows = nn.reshape(lhs, (prod(lhs.shape[:-1]), lhs.shape[-1]), f"{call.name}.rows")
        product = _sum_of_products(call, rows, rhs, DotDims([], [], [1], dims.rhs_contract), f"{call.name}.product")
        columns = [rhs.shape[d] for d in rhs_free]
        return nn.reshape(product, (*lhs.shape[:-1], *columns), call.name)
    return _sum_of_products(call, lhs, rhs, dims, call.name)


def _free(x: Tensor, *others: list[int]) -> list[int]:
    return [d for d in range(x.rank) if all(d not in listed for listed in others)]


def _sum_of_products(call: HloCall, lhs: Tensor, rhs: Tensor, dims: DotDims, name: str) -> Tensor:
    lhs_free, rhs_free = _free(lhs, dims.lhs_batch, dims.lhs_contract), _free(rhs, dims.rhs_batch, dims.rhs_contract)
    batch = len(dims.lhs_batch)
    shape = [lhs.shape[d] for d in (*dims.lhs_batch, *lhs_free)] + [rhs.shape[d] for d in rhs_free]
    dtype = _accumulator(call)
    taps = [reduce_axis(lhs.shape[d], f"k{n}") for n, d in enumerate(dims.lhs_contract)]

    def element(*i: Index) -> Expr:
        left: dict[int, IndexLike] = dict(zip(dims.lhs_batch, i[:batch], strict=True))
        right: dict[int, IndexLike] = dict(zip(dims.rhs_batch, i[:batch], strict=True))
        left |= zip(lhs_free, i[batch : batch + len(lhs_free)], strict=True)
        right |= zip(rhs_free, i[batch + len(lhs_free) :], strict=True)
        left |= zip(dims.lhs_contract, taps, strict=True)
        right |= zip(dims.rhs_contract, taps, strict=True)
        product = _product(
            call,
            call.at(lhs, *(left[d] for d in range(lhs.rank))),
            call.at(rhs, *(right[d] for d in range(rhs.rank))),
            dtype,
        )
        return e.sum(product, axis=taps) if taps else product

    label = name if dtype == call.dtype else f"{name}.sum"
    return convert_to(compute(shape, element, label), call.dtype, name)


class ConvDims(NamedTuple):
    """The dimensions of a convolution's image, kernel and result, each as two dimensions (batch and feature; of the
    kernel output and input feature) and the list of spatial ones."""

    image: tuple[int, int, list[int]]
    kernel: tuple[int, int, list[int]]
    result: tuple[int, int, list[int]]


def _layout(call: HloCall) -> ConvDims:
    numbers = call.attribute("dimension_numbers")
    if not isinstance(numbers, ConvAttr):
        raise call.refused("has no dimension_numbers")
    layouts = []
    for names, (first, second) in zip(numbers.data, (("b", "f"), ("o", "i"), ("b", "f")), strict=True):
        space = [names.index(str(d)) for d in range(len(names) - 2)]
        layouts.append((names.index(first), names.index(second), space))
    return ConvDims(*layouts)


@handles("convolution")
def _convolution(call: HloCall) -> Tensor:
    x, w = call.operands
    dims = _layout(call)
    rank = len(dims.image[2])
    if any(call.integers("window_reversal", [0] * rank)):
        w = nn.flip(w, [dims.kernel[2][n] for n, flag in enumerate(call.integers("window_reversal")) if flag])
    windows = _windows(call, w, dims.kernel[2])
    (groups,), (batches,) = (call.positive(f"{name}_group_count", 1) for name in ("feature", "batch"))
    features, outputs = w.shape[dims.kernel[1]], w.shape[dims.kernel[0]]
    if (
        x.shape[dims.image[1]] != features * groups
        or outputs % groups
        or outputs % batches
        or x.shape[dims.image[0]] % batches
    ):
        raise call.refused(f"has an image of shape {x.shape} and a kernel of {w.shape} for {groups} groups of features")
    extents = [window.count(x.shape[d]) for window, d in zip(windows, dims.image[2], strict=True)]
    shape = dict(zip(dims.result[2], extents, strict=True))
    shape |= {dims.result[0]: x.shape[dims.image[0]] // batches, dims.result[1]: outputs}
    conv = HloConvolution(call, x, w, dims, windows, (groups, batches))
    dtype = _accumulator(call)
    label = call.name if dtype == call.dtype else f"{call.name}.sum"
    summed = compute([shape[d] for d in range(rank + 2)], conv.element, label)
    return convert_to(summed, call.dtype, call.name)


def _windows(call: HloCall, w: Tensor, space: list[int]) -> list[DimWindow]:
    rank = len(space)
    strides, base, dilations = (
        call.positive(name, rank) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    padding = call.pairs("padding", rank)
    return [DimWindow(w.shape[d], strides[n], dilations[n], base[n], *padding[n]) for n, d in enumerate(space)]


class HloConvolution:
    """A convolution of x with the kernel w, whose result is computed element by element. dims: the dimension numbers.
    windows: one for each spatial dimension. groups: the numbers of feature groups and of batch groups. dtype: of the
    sum. features: the input features of a group. channel, taps: the reduce axes over these features, none for one
    feature, and over each window."""

    def __init__(
        self, call: HloCall, x: Tensor, w: Tensor, dims: ConvDims, windows: list[DimWindow], groups: tuple[int, int]
    ) -> None:
        self.call, self.x, self.w, self.dims, self.windows, self.groups = call, x, w, dims, windows, groups
        self.dtype = _accumulator(call)
        self.features = w.shape[dims.kernel[1]]
        self.channel = [reduce_axis(self.features, "c")] if self.features > 1 else []
        self.taps = [reduce_axis(window.size, f"r{n}") for n, window in enumerate(windows)]

    def element(self, *i: Index) -> Expr:
        """Return the result's element at index i: a sum over the window and the input features of a group."""
        (image_batch, image_feature, image_space) = self.dims.image
        (out_batch, out_feature, out_space) = self.dims.result
        feature, batch = i[out_feature], i[out_batch]
        group, position = self._group(feature, batch)
        channel: IndexLike = self.channel[0] if self.channel else 0
        read: list[IndexLike] = [0] * self.x.rank
        read[image_batch] = position
        read[image_feature] = channel if group is None else group * self.features + channel
        windows = [
            (image_space[n], window, window.position(i[out_space[n]], tap))
            for n, (window, tap) in enumerate(zip(self.windows, self.taps, strict=True))
        ]
        kernel: dict[int, IndexLike] = {self.dims.kernel[0]: feature, self.dims.kernel[1]: channel}
        kernel |= zip(self.dims.kernel[2], self.taps, strict=True)
        product = _product(
            self.call,
            read_window(self.x, read, windows, 0),
            self.call.at(self.w, *(kernel[d] for d in range(self.w.rank))),
            self.dtype,
        )
        axes: list[Axis] = [*self.channel, *self.taps]
        return e.sum(product, axis=axes) if axes else product

    def _group(self, feature: Index, batch: Index) -> tuple[Index | None, Index]:
        """Return an output feature's group, None if there is one group only, and the index in x's batch dimension."""
        groups, batches = self.groups
        outputs = self.w.shape[self.dims.kernel[0]]
        images = self.x.shape[self.dims.image[0]] // batches
        group = None if groups == 1 else feature // (outputs // groups) if outputs != groups else feature
        return group, batch if batches == 1 else feature // (outputs // batches) * images + batch
