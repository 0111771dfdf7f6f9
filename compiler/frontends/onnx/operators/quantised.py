"""Quantisation, and products of quantised tensors."""

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
from compiler.types.dtypes import DTYPES, is_float, limits


@dataclass(frozen=True)
class Quant:
    """A scale or zero point of a result: of one element, a vector along `axis`, or of a shape that broadcasts."""

    tensor: Tensor
    axis: int

    def element(self, i: tuple[Index, ...], dtype: str = "f32") -> Expr:
        """Return the parameter for the result's element at index i, cast to a dtype."""
        t = self.tensor
        if math.prod(t.shape) == 1:
            return e.cast(t[(0,) * t.rank], dtype)
        return e.cast(t[i[self.axis]] if t.rank == 1 else read_at(t, i), dtype)


def _parameter(x: Tensor, parameter: Tensor, axis: int, block: int, i: tuple[Index, ...]) -> Expr:
    """Return the scale or zero point of x's element at i: one per tensor, per index of an axis, or per `block` of
    indices of an axis."""
    if parameter.rank == 0 or (parameter.shape == (1,) and x.rank != 1):
        return parameter[(0,) * parameter.rank]
    if parameter.rank == 1:
        return parameter[i[axis] if parameter.shape[0] > 1 else 0]
    return parameter[tuple(index // block if d == axis and block else index for d, index in enumerate(i))]


def _axis(node: Node, x: Tensor) -> int:
    return int(node.attribute("axis", 1)) % x.rank if x.rank else 0


@handles("QuantizeLinear")
def quantize(node: Node) -> Tensor:
    """round(x / scale) + zero point, saturated to the zero point's dtype, or to `output_dtype` (default: u8). Raises
    Refused unless that is an integer dtype of te."""
    x, scale, zero = node.tensor(0), node.tensor(1), node.optional(2)
    type_id = node.attribute("output_dtype", 0)
    dtype = zero.dtype if zero is not None else DTYPE_OF.get(type_id, "") if type_id else "u8"
    if not dtype or is_float(dtype):
        raise Refused(f"it gives {type_name(type_id) if type_id else dtype}, which is no dtype of integers of te")
    axis, block = _axis(node, x), node.attribute("block_size", 0)
    low, high = limits(dtype)
    calc_dtype = "f64" if DTYPES[dtype].bits > 16 else "f32"

    def element(*i: Index) -> Expr:
        divisor = e.cast(_parameter(x, scale, axis, block, i), calc_dtype)
        value = e.round(e.cast(x[i], calc_dtype) / divisor)
        if zero is not None:
            value = value + e.cast(_parameter(x, zero, axis, block, i), calc_dtype)
        return e.cast(e.minimum(e.maximum(value, float(low)), float(high)), dtype)

    return compute(x.shape, element, node.name)


@handles("DynamicQuantizeLinear")
def dynamic_quantize(node: Node) -> list[Tensor]:
    """Map the range of x's elements and 0 to 0 ... 255, a u8; also the scale, 1 for an empty range, and zero point."""
    x, name = node.tensor(0), node.name
    low, high = (limit(bound(x), 0.0) for limit, bound in ((nn.minimum, nn.min), (nn.maximum, nn.max)))
    step = nn.div(nn.sub(high, low), 255.0)
    scale = compute((), lambda: e.select(e.equal(step[()], 0.0), 1.0, step[()]), f"{name}.scale")
    zero = nn.clamp(nn.round(nn.neg(nn.div(low, scale))), 0.0, 255.0)
    quantised = nn.clamp(nn.add(nn.round(nn.div(x, scale)), zero), 0.0, 255.0)
    return [nn.cast(quantised, "u8", name=name), scale, nn.cast(zero, "u8", name=f"{name}.zero")]


@handles("DequantizeLinear")
def dequantize(node: Node) -> Tensor:
    """(x - zero point) * scale, of `output_dtype`; by default, or if te lacks that, of the scale's dtype."""
    x, scale, zero = node.tensor(0), node.tensor(1), node.optional(2)
    axis, block = _axis(node, x), node.attribute("block_size", 0)
    dtype = DTYPE_OF.get(node.attribute("output_dtype", 0), scale.dtype)

    def element(*i: Index) -> Expr:
        value = e.cast(x[i], "f32") if DTYPES[x.dtype].bits < 32 else e.cast(x[i], "f64")
        if zero is not None:
            value = value - e.cast(_parameter(x, zero, axis, block, i), value.dtype)
        return e.cast(value * e.cast(_parameter(x, scale, axis, block, i), value.dtype), dtype)

    return compute(x.shape, element, node.name)


def less_zero(x: Tensor, zero: Tensor | None, axis: int, name: str) -> Tensor:
    """Subtract a zero point, one per tensor or per index of `axis`, from x, as i32; without a zero point (None) only
    cast x."""
    if zero is None:
        return nn.cast(x, "i32", name=name)
    parameter = Quant(zero, axis)
    return compute(x.shape, lambda *i: e.cast(x[i], "i32") - parameter.element(i, "i32"), name)


@handles("MatMulInteger")
def matmul_integer(node: Node) -> Tensor:
    """(A - zero point of A) (B - zero point of B), as i32; zero points per tensor, per row of A or per column of B."""
    a = less_zero(node.tensor(0), node.optional(2), node.tensor(0).rank - 2, f"{node.name}.a")
    b = less_zero(node.tensor(1), node.optional(3), node.tensor(1).rank - 1, f"{node.name}.b")
    return broadcast_matmul(a, b, node.name)


@handles("ConvInteger")
def conv_integer(node: Node) -> Tensor:
    """The convolution of x - zero point of x with w - zero point of w, as i32. Raises Refused for an image of other
    than one to three dimensions, and for negative padding."""
    return _convolve(node, node.tensor(0), node.optional(2), node.tensor(1), node.optional(3), node.name)


def _convolve(node: Node, x: Tensor, x_zero: Tensor | None, w: Tensor, w_zero: Tensor | None, name: str) -> Tensor:
    geometry = windows(node, x.shape[2:], w.shape[2:])
    image, weight = less_zero(x, x_zero, 1, f"{name}.x"), less_zero(w, w_zero, 0, f"{name}.w")
    convolve, groups = CONVOLUTIONS[x.rank - 2], node.attribute("group", 1)
    return convolve(image, weight, None, geometry.strides, geometry.pads, geometry.dilations, groups, name=name)


def _requantise(sums: Tensor, scales: tuple[Quant, Quant, Quant], zero: Quant, name: str) -> Tensor:
    """round(sums * left scale * right scale / result scale) + zero point, saturated to the zero point's dtype."""
    dtype = zero.tensor.dtype
    low, high = limits(dtype)
    left, right, result_scale = scales

    def element(*i: Index) -> Expr:
        value = e.cast(sums[i], "f32") * (left.element(i) * right.element(i) / result_scale.element(i))
        return e.cast(e.minimum(e.maximum(e.round(value) + zero.element(i), float(low)), float(high)), dtype)

    return compute(sums.shape, element, name)


@handles("QLinearMatMul")
def qlinear_matmul(node: Node) -> Tensor:
    """The quantised product of quantised matrices; scales and zero points of a and the result may be per row, of b per
    column."""
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = node.tensors()
    left, right = less_zero(a, a_zero, a.rank - 2, f"{node.name}.a"), less_zero(b, b_zero, b.rank - 1, f"{node.name}.b")
    sums = broadcast_matmul(left, right, f"{node.name}.sums")
    row, column = sums.rank - 2, sums.rank - 1
    return _requantise(
        sums, (Quant(a_scale, row), Quant(b_scale, column), Quant(scale, row)), Quant(zero, row), node.name
    )


@handles("QLinearConv")
def qlinear_conv(node: Node) -> Tensor:
    """The quantised convolution of quantised tensors, plus a bias of i32 if there is one; the weight's scale and zero
    point may be per output channel. Raises Refused for an image of other than one to three dimensions, and for negative
    padding."""
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero = (node.tensor(position) for position in range(8))
    sums = _convolve(node, x, x_zero, w, w_zero, f"{node.name}.sums")
    bias = node.optional(8)
    if bias is not None:
        sums = nn.add(sums, nn.reshape(bias, (bias.shape[0], *[1] * (x.rank - 2))), name=f"{node.name}.biased")
    return _requantise(sums, (Quant(x_scale, 1), Quant(w_scale, 1), Quant(scale, 1)), Quant(zero, 1), node.name)
