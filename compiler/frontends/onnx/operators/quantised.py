"""Quantised tensors, and products of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from compiler.frontends.onnx.operators.convolution import CONVOLUTIONS, windows
from compiler.frontends.onnx.table import Node, Refused, handles
from compiler.frontends.onnx.types import DTYPE_OF, type_name
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.contraction import broadcast_matmul
from compiler.te.nn.elementwise import read_at
from compiler.te.tensor import Tensor
from compiler.types.elements import DTYPES, is_float, limits


@dataclass(frozen=True)
class Along:
    """A scale or zero point: of the whole tensor, of each place of an axis, or broadcast as numpy does."""

    tensor: Tensor
    axis: int

    def at(self, i: tuple[Index, ...], dtype: str = "f32") -> Expr:
        """The one of an element of the result."""
        t = self.tensor
        if math.prod(t.shape) == 1:
            return e.cast(t[(0,) * t.rank], dtype)
        return e.cast(t[i[self.axis]] if t.rank == 1 else read_at(t, i), dtype)


def _scaled(x: Tensor, scale: Tensor, axis: int, block: int, i: tuple[Index, ...]) -> Expr:
    """The scale, or zero point, of an element: of the tensor, of its place along an axis, or of its block."""
    if scale.rank == 0 or (scale.shape == (1,) and x.rank != 1):
        return scale[(0,) * scale.rank]
    if scale.rank == 1:
        return scale[i[axis] if scale.shape[0] > 1 else 0]
    return scale[tuple(place // block if d == axis and block else place for d, place in enumerate(i))]


def _axis(node: Node, x: Tensor) -> int:
    return int(node.attribute("axis", 1)) % x.rank if x.rank else 0


@handles("QuantizeLinear")
def quantize(node: Node) -> Tensor:
    """round(x / scale) + zero point, within the limits of the dtype."""
    x, scale, zero = node.tensor(0), node.tensor(1), node.optional(2)
    stated = node.attribute("output_dtype", 0)
    dtype = zero.dtype if zero is not None else DTYPE_OF.get(stated, "") if stated else "u8"
    if not dtype or is_float(dtype):
        raise Refused(f"it gives {type_name(stated) if stated else dtype}, which is no dtype of integers of te")
    axis, block = _axis(node, x), node.attribute("block_size", 0)
    low, high = limits(dtype)
    wide = "f64" if DTYPES[dtype].bits > 16 else "f32"

    def element(*i: Index) -> Expr:
        by = e.cast(_scaled(x, scale, axis, block, i), wide)
        value = e.round(e.cast(x[i], wide) / by)
        if zero is not None:
            value = value + e.cast(_scaled(x, zero, axis, block, i), wide)
        return e.cast(e.minimum(e.maximum(value, float(low)), float(high)), dtype)

    return compute(x.shape, element, node.name)


@handles("DynamicQuantizeLinear")
def dynamic_quantize(node: Node) -> list[Tensor]:
    """Quantised as u8 by the range of the elements and 0; with it, the scale, 1 for an empty range, and the zero."""
    x, name = node.tensor(0), node.name
    low, high = (limit(bound(x), 0.0) for limit, bound in ((nn.minimum, nn.min), (nn.maximum, nn.max)))
    share = nn.div(nn.sub(high, low), 255.0)
    scale = compute((), lambda: e.select(e.equal(share[()], 0.0), 1.0, share[()]), f"{name}.scale")
    zero = nn.clamp(nn.round(nn.neg(nn.div(low, scale))), 0.0, 255.0)
    quantised = nn.clamp(nn.add(nn.round(nn.div(x, scale)), zero), 0.0, 255.0)
    return [nn.cast(quantised, "u8", name=name), scale, nn.cast(zero, "u8", name=f"{name}.zero")]


@handles("DequantizeLinear")
def dequantize(node: Node) -> Tensor:
    """(x - zero point) * scale."""
    x, scale, zero = node.tensor(0), node.tensor(1), node.optional(2)
    axis, block = _axis(node, x), node.attribute("block_size", 0)
    dtype = DTYPE_OF.get(node.attribute("output_dtype", 0), scale.dtype)

    def element(*i: Index) -> Expr:
        value = e.cast(x[i], "f32") if DTYPES[x.dtype].bits < 32 else e.cast(x[i], "f64")
        if zero is not None:
            value = value - e.cast(_scaled(x, zero, axis, block, i), value.dtype)
        return e.cast(value * e.cast(_scaled(x, scale, axis, block, i), value.dtype), dtype)

    return compute(x.shape, element, node.name)


def shifted(x: Tensor, zero: Tensor | None, axis: int, name: str) -> Tensor:
    """x minus its zero point, in 32 bits; a zero point along an axis has one for each place."""
    if zero is None:
        return nn.cast(x, "i32", name=name)
    subtracted = Along(zero, axis)
    return compute(x.shape, lambda *i: e.cast(x[i], "i32") - subtracted.at(i, "i32"), name)


@handles("MatMulInteger")
def matmul_integer(node: Node) -> Tensor:
    """The product of matrices of integers without their zero points, in 32 bits."""
    a = shifted(node.tensor(0), node.optional(2), node.tensor(0).rank - 2, f"{node.name}.a")
    b = shifted(node.tensor(1), node.optional(3), node.tensor(1).rank - 1, f"{node.name}.b")
    return broadcast_matmul(a, b, node.name)


@handles("ConvInteger")
def conv_integer(node: Node) -> Tensor:
    """The convolution of integers without their zero points, in 32 bits."""
    return _convolved(node, node.tensor(0), node.optional(2), node.tensor(1), node.optional(3), node.name)


def _convolved(node: Node, x: Tensor, x_zero: Tensor | None, w: Tensor, w_zero: Tensor | None, name: str) -> Tensor:
    over = windows(node, x.shape[2:], w.shape[2:])
    image, weight = shifted(x, x_zero, 1, f"{name}.x"), shifted(w, w_zero, 0, f"{name}.w")
    convolve, groups = CONVOLUTIONS[x.rank - 2], node.attribute("group", 1)
    return convolve(image, weight, None, over.strides, over.pads, over.dilations, groups, name=name)


def _requantised(sums: Tensor, scales: tuple[Along, Along, Along], zero: Along, name: str) -> Tensor:
    """Sums of products, times both scales and divided by that of the result, in its dtype."""
    dtype = zero.tensor.dtype
    low, high = limits(dtype)
    left, right, by = scales

    def element(*i: Index) -> Expr:
        value = e.cast(sums[i], "f32") * (left.at(i) * right.at(i) / by.at(i))
        return e.cast(e.minimum(e.maximum(e.round(value) + zero.at(i), float(low)), float(high)), dtype)

    return compute(sums.shape, element, name)


@handles("QLinearMatMul")
def qlinear_matmul(node: Node) -> Tensor:
    """The product of quantised matrices, quantised: the first and the result also by rows, the second by columns."""
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = node.tensors()
    left, right = shifted(a, a_zero, a.rank - 2, f"{node.name}.a"), shifted(b, b_zero, b.rank - 1, f"{node.name}.b")
    sums = broadcast_matmul(left, right, f"{node.name}.sums")
    row, column = sums.rank - 2, sums.rank - 1
    return _requantised(
        sums, (Along(a_scale, row), Along(b_scale, column), Along(scale, row)), Along(zero, row), node.name
    )


@handles("QLinearConv")
def qlinear_conv(node: Node) -> Tensor:
    """The convolution of quantised tensors, quantised; the weight also by channels."""
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero = (node.tensor(position) for position in range(8))
    sums = _convolved(node, x, x_zero, w, w_zero, f"{node.name}.sums")
    bias = node.optional(8)
    if bias is not None:
        sums = nn.add(sums, nn.reshape(bias, (bias.shape[0], *[1] * (x.rank - 2))), name=f"{node.name}.biased")
    return _requantised(sums, (Along(x_scale, 1), Along(w_scale, 1), Along(scale, 1)), Along(zero, 1), node.name)
