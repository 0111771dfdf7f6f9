"""Discrete Fourier transforms, as products with a matrix of roots of unity."""

from __future__ import annotations

import numpy as np

from compiler.frontends.onnx.operators.shape import axis_of
from compiler.frontends.onnx.table import Array, Node, Refused, handles
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Reduce
from compiler.te.index import Index
from compiler.te.nn.common import accumulator, astype, check_float
from compiler.te.tensor import Tensor, reduce_axis

MAX_ROOTS = 1 << 22
"""The maximal number of elements of the matrix of roots."""


@handles("DFT")
def dft(node: Node) -> Tensor:
    """The discrete Fourier transform along an axis, or its inverse. The last dimension has the real and the imaginary
    part, or the real part only. With `onesided` the spectrum has its first length // 2 + 1 elements, and the inverse is
    real. Raises Refused for a last dimension above 2 or as the axis, an axis out of range, an axis or a length that the
    model computes, a length below 1, and a matrix of more than MAX_ROOTS elements; TeError for integers."""
    x = check_float("DFT", node.tensor(0))
    axis = node.attribute("axis", 1) if node.opset < 20 else node.integers(2, "the axis")[0] if node.has(2) else -2
    axis, inverse = axis_of(node, axis, x.rank), bool(node.attribute("inverse", 0))
    one_sided = node.attribute("onesided", 0)
    if axis == x.rank - 1 or x.shape[-1] > 2:
        raise Refused("its last dimension holds no real or complex numbers")
    default_length = 2 * (x.shape[axis] - 1) if inverse and one_sided else x.shape[axis]
    length = node.integers(1, "the length")[0] if node.has(1) else default_length
    used_extent = min(x.shape[axis], length // 2 + 1 if inverse and one_sided else length)
    if not 1 <= length <= MAX_ROOTS // (4 * used_extent):
        raise Refused(f"its matrix for the length {length} would be empty, or too large")
    matrix = _roots(used_extent, length, inverse, bool(one_sided))[:, :, : x.shape[-1]]
    roots = node.as_tensor(np.ascontiguousarray(matrix.astype(np.float64 if x.dtype == "f64" else np.float32)))
    time, part, sum_dtype = reduce_axis(used_extent, "t"), reduce_axis(x.shape[-1], "c"), accumulator(x.dtype)

    def element(*i: Index) -> Reduce:
        position = (*i[:axis], time, *i[axis + 1 : -1], part)
        return e.sum(e.cast(x[position], sum_dtype) * roots[time, i[axis], part, i[-1]], axis=(time, part))

    shape = (*x.shape[:axis], matrix.shape[1], *x.shape[axis + 1 : -1], matrix.shape[3])
    return astype(compute(shape, element, node.name), x.dtype, node.name)


def _roots(used_extent: int, length: int, inverse: bool, one_sided: bool) -> Array:
    """Return a transform's factors [input position, input part, output position, output part], parts real, imaginary.
    `used_extent`: the number of input positions; `length`: of the two-sided transform. An `inverse` is divided by it;
    `one_sided`: the spectrum has its first half."""
    count = length // 2 + 1 if one_sided and not inverse else length
    angle = 2 * np.pi * (np.outer(np.arange(used_extent), np.arange(count)) % length) / length
    real, imaginary = np.cos(angle), np.sin(angle) * (1 if inverse else -1)
    roots = np.stack([np.stack([real, imaginary], -1), np.stack([-imaginary, real], -1)], 2)
    if not inverse:
        return roots
    multiplicity = np.array([1.0 if 2 * t % length == 0 else 2.0 for t in range(used_extent)]).reshape(-1, 1, 1, 1)
    return (roots * multiplicity)[..., :1] / length if one_sided else roots / length
