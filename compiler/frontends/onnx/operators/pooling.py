"""Pooling."""

from __future__ import annotations

from math import prod

from compiler.frontends.onnx.operators.convolution import Windows, windows
from compiler.frontends.onnx.table import Node, Refused, handler, handles, register
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor

MAXIMA = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
MEANS = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}


def _pool_windows(node: Node, x: Tensor) -> tuple[Windows, bool]:
    """Return the windows of a node over the image of x, and its ceil_mode; that is False with automatic padding."""
    automatic = node.attribute("auto_pad", "NOTSET") != "NOTSET"
    ceil = bool(node.attribute("ceil_mode", 0)) and not automatic
    return windows(node, x.shape[2:], node.attribute("kernel_shape")), ceil


@handles("MaxPool")
def max_pool(node: Node) -> list[Tensor]:
    """The maximum of each window, and if used its index in the flat tensor. Raises Refused for an image of other than
    one to three dimensions, and for negative padding."""
    x = node.tensor(0)
    geometry, ceil = _pool_windows(node, x)
    if not node.uses(1):
        pool = MAXIMA[x.rank - 2]
        return [pool(x, geometry.kernel, geometry.strides, geometry.pads, geometry.dilations, ceil, name=node.name)]
    maxima, indices = nn.max_pool_with_places(
        x, geometry.kernel, geometry.strides, geometry.pads, geometry.dilations, ceil, name=node.name
    )
    return [maxima, _flat_indices(x, indices, bool(node.attribute("storage_order", 0)), f"{node.name}.places")]


def _flat_indices(x: Tensor, image_indices: Tensor, by_columns: bool, name: str) -> Tensor:
    """Convert row-major indices in an image of x, [N, C, ...], to indices in flat x; with `by_columns`, to column-major
    ones within each image."""
    image = x.shape[2:]
    size = prod(image)

    def element(n: Index, c: Index, *at: Index) -> Expr:
        index: Expr = image_indices[(n, c, *at)]
        if by_columns and len(image) > 1:
            column_major: Expr | None = None
            stride, remainder = size, index
            for extent in reversed(image):
                stride //= extent
                digit = (remainder % extent) * stride
                remainder = remainder // extent
                column_major = digit if column_major is None else column_major + digit
            assert column_major is not None
            index = column_major
        return index + e.cast((n * x.shape[1] + c) * size, "i64")

    return compute(image_indices.shape, element, name, axes=["n", "c", *(f"i{d}" for d in range(len(image)))])


@handles("AveragePool")
def average_pool(node: Node) -> Tensor:
    """The mean of each window; `count_include_pad` counts the padding. Raises Refused for an image of other than one to
    three dimensions, and for negative padding."""
    x = node.tensor(0)
    over, ceil = _pool_windows(node, x)
    include_pad = bool(node.attribute("count_include_pad", 0))
    pool = MEANS[x.rank - 2]
    return pool(x, over.kernel, over.strides, over.pads, include_pad, over.dilations, ceil, name=node.name)


@handles("LpPool")
def lp_pool(node: Node) -> Tensor:
    """The p-norm of each window. Raises Refused for an image of other than one to three dimensions, and for negative
    padding."""
    x = node.tensor(0)
    geometry, ceil = _pool_windows(node, x)
    p = node.attribute("p", 2)
    return nn.lp_pool(x, geometry.kernel, p, geometry.strides, geometry.pads, geometry.dilations, ceil, name=node.name)


register(__name__, {"GlobalAveragePool": handler(nn.global_avg_pool)})


@handles("GlobalMaxPool")
def global_max_pool(node: Node) -> Tensor:
    """The maximum of each channel's image; image dimensions keep extent 1. Raises Refused for a rank below 3."""
    x = node.tensor(0)
    if x.rank < 3:
        raise Refused("its input is no image")
    return nn.max(x, tuple(range(2, x.rank)), keepdims=True, name=node.name)


@handles("GlobalLpPool")
def global_lp_pool(node: Node) -> Tensor:
    """The p-norm of each channel's image; image dimensions keep extent 1."""
    return nn.lp_pool(node.tensor(0), node.tensor(0).shape[2:], node.attribute("p", 2), name=node.name)
