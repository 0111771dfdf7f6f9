"""Pooling."""

from __future__ import annotations

from math import prod

from compiler.frontends.onnx.operators.convolution import Windows, windows
from compiler.frontends.onnx.table import Node, Refused, enter, handles, plain
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor

MAXIMA = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
MEANS = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}


def _over(node: Node, x: Tensor) -> tuple[Windows, bool]:
    """The windows of a node over its image, and whether the last may reach beyond the padding."""
    automatic = node.attribute("auto_pad", "NOTSET") != "NOTSET"
    ceil = bool(node.attribute("ceil_mode", 0)) and not automatic
    return windows(node, x.shape[2:], node.attribute("kernel_shape")), ceil


@handles("MaxPool")
def max_pool(node: Node) -> list[Tensor]:
    """The maxima of windows, and their places in the tensor."""
    x = node.tensor(0)
    over, ceil = _over(node, x)
    if not node.uses(1):
        pool = MAXIMA[x.rank - 2]
        return [pool(x, over.kernel, over.strides, over.pads, over.dilations, ceil, name=node.name)]
    maxima, places = nn.max_pool_with_places(
        x, over.kernel, over.strides, over.pads, over.dilations, ceil, name=node.name
    )
    return [maxima, _flat(x, places, bool(node.attribute("storage_order", 0)), f"{node.name}.places")]


def _flat(x: Tensor, places: Tensor, by_columns: bool, name: str) -> Tensor:
    """Places in images as places in the whole tensor; by columns, those within an image count so."""
    image = x.shape[2:]
    size = prod(image)

    def element(n: Index, c: Index, *at: Index) -> Expr:
        place: Expr = places[(n, c, *at)]
        if by_columns and len(image) > 1:
            turned: Expr | None = None
            stride, left = size, place
            for extent in reversed(image):
                stride //= extent
                digit = (left % extent) * stride
                left = left // extent
                turned = digit if turned is None else turned + digit
            assert turned is not None
            place = turned
        return place + e.cast((n * x.shape[1] + c) * size, "i64")

    return compute(places.shape, element, name, axes=["n", "c", *(f"i{d}" for d in range(len(image)))])


@handles("AveragePool")
def average_pool(node: Node) -> Tensor:
    """The means of windows, of the padding too where it counts."""
    x = node.tensor(0)
    over, ceil = _over(node, x)
    counts = bool(node.attribute("count_include_pad", 0))
    pool = MEANS[x.rank - 2]
    return pool(x, over.kernel, over.strides, over.pads, counts, over.dilations, ceil, name=node.name)


@handles("LpPool")
def lp_pool(node: Node) -> Tensor:
    """The p-norms of windows."""
    x = node.tensor(0)
    over, ceil = _over(node, x)
    p = node.attribute("p", 2)
    return nn.lp_pool(x, over.kernel, p, over.strides, over.pads, over.dilations, ceil, name=node.name)


enter(__name__, {"GlobalAveragePool": plain(nn.global_avg_pool)})


@handles("GlobalMaxPool")
def global_max_pool(node: Node) -> Tensor:
    """The maximum of each image."""
    x = node.tensor(0)
    if x.rank < 3:
        raise Refused("its input is no image")
    return nn.max(x, tuple(range(2, x.rank)), keepdims=True, name=node.name)


@handles("GlobalLpPool")
def global_lp_pool(node: Node) -> Tensor:
    """The p-norm of each image."""
    return nn.lp_pool(node.tensor(0), node.tensor(0).shape[2:], node.attribute("p", 2), name=node.name)
