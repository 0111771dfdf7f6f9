"""Discrete Fourier transforms, as products with a matrix of roots of unity."""

from __future__ import annotations

import numpy as np

from compiler.frontends.onnx.operators.shape import axis_of
from compiler.frontends.onnx.table import Node, Refused, handles
from compiler.frontends.onnx.types import Array
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Reduce
from compiler.te.index import Index
from compiler.te.nn.common import accumulator, astype, check_float
from compiler.te.tensor import Tensor, reduce_axis

MOST_ROOTS = 1 << 22
"""The most elements of the matrix."""


@handles("DFT")
def dft(node: Node) -> Tensor:
    """The transform along an axis, or its inverse; one-sided, of real numbers, or back to these."""
    x = check_float("DFT", node.tensor(0))
    axis = node.attribute("axis", 1) if node.opset < 20 else node.integers(2, "the axis")[0] if node.has(2) else -2
    axis, inverse, half = axis_of(node, axis, x.rank), bool(node.attribute("inverse", 0)), node.attribute("onesided", 0)
    if axis == x.rank - 1 or x.shape[-1] > 2:
        raise Refused("its last dimension holds no real or complex numbers")
    usual = 2 * (x.shape[axis] - 1) if inverse and half else x.shape[axis]
    length = node.integers(1, "the length")[0] if node.has(1) else usual
    taken = min(x.shape[axis], length // 2 + 1 if inverse and half else length)
    if not 1 <= length <= MOST_ROOTS // (4 * taken):
        raise Refused(f"its matrix for the length {length} would be empty, or too large")
    matrix = _roots(taken, length, inverse, bool(half))[:, :, : x.shape[-1]]
    roots = node.as_tensor(np.ascontiguousarray(matrix.astype(np.float64 if x.dtype == "f64" else np.float32)))
    place, part, wide = reduce_axis(taken, "t"), reduce_axis(x.shape[-1], "c"), accumulator(x.dtype)

    def element(*i: Index) -> Reduce:
        at = (*i[:axis], place, *i[axis + 1 : -1], part)
        return e.sum(e.cast(x[at], wide) * roots[place, i[axis], part, i[-1]], axis=(place, part))

    shape = (*x.shape[:axis], matrix.shape[1], *x.shape[axis + 1 : -1], matrix.shape[3])
    return astype(compute(shape, element, node.name), x.dtype, node.name)


def _roots(taken: int, length: int, inverse: bool, half: bool) -> Array:
    """The factors of the real and imaginary part of each place in those of each frequency."""
    count = length // 2 + 1 if half and not inverse else length
    angle = 2 * np.pi * (np.outer(np.arange(taken), np.arange(count)) % length) / length
    real, imaginary = np.cos(angle), np.sin(angle) * (1 if inverse else -1)
    roots = np.stack([np.stack([real, imaginary], -1), np.stack([-imaginary, real], -1)], 2)
    if not inverse:
        return roots
    mirrored = np.array([1.0 if 2 * t % length == 0 else 2.0 for t in range(taken)]).reshape(-1, 1, 1, 1)
    return (roots * mirrored)[..., :1] / length if half else roots / length
