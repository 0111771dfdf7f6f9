"""Thirty layers of networks, that no training record has: each is a group of one of `benchmarks.networks`."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.networks import Network
from compiler import te
from compiler.te.tensor import Tensor

Layer = Callable[[Network], Tensor]
"""Writes a layer into a network; returns its result. Inputs that are not weights have names that begin with X."""


def _convolution(
    channels: int, size: int, filters: int, kernel: int, stride: int = 1, end: str = "relu", added: bool = False
) -> Layer:
    def write(net: Network) -> Tensor:
        y = net.convolution(net.input("X", 1, channels, size, size), filters, kernel, stride)
        if added:
            y = net.nn.add(y, net.input("X2", *y.shape))
        return _ended(net, y, end)

    return write


def _depthwise(channels: int, size: int, kernel: int, stride: int, end: str = "relu6") -> Layer:
    def write(net: Network) -> Tensor:
        x, weight = net.input("X", 1, channels, size, size), net.weight("W", channels, 1, kernel, kernel)
        y = net.nn.depthwise_conv2d(x, weight, stride=stride, padding=kernel // 2)
        return _ended(net, net.nn.add(y, net.nn.reshape(net.weight("b", channels), (1, channels, 1, 1))), end)

    return write


def _ended(net: Network, x: Tensor, end: str) -> Tensor:
    if end == "relu6":
        return net.nn.clamp(x, 0, 6)
    return getattr(net.nn, end)(x) if end else x


def _volume(
    shape: tuple[int, ...], filters: int, kernel: tuple[int, ...], stride: tuple[int, ...] = (1, 1, 1)
) -> Layer:
    def write(net: Network) -> Tensor:
        x = net.input("X", 1, *shape)
        weight, bias = net.weight("W", filters, shape[0], *kernel), net.weight("b", filters)
        padding = tuple(k // 2 for k in kernel)
        return net.nn.relu(net.nn.conv3d(x, weight, bias, stride=stride, padding=padding))

    return write


def _dense(rows: int, width: int, features: int, end: str = "") -> Layer:
    return lambda net: _ended(net, net.dense(net.input("X", rows, width), features), end)


def _normed(rows: int, width: int, features: int) -> Layer:
    def write(net: Network) -> Tensor:
        x, y = net.input("X", rows, width), net.input("X2", rows, features)
        return net.norm(net.nn.add(y, net.dense(x, features)))

    return write


def _attention(tokens: int, width: int, heads: int) -> Layer:
    def write(net: Network) -> Tensor:
        nn = net.nn

        def split(t: Tensor) -> Tensor:
            return nn.transpose(nn.reshape(t, (tokens, heads, width // heads)), (1, 0, 2))

        q, k, v = (split(net.input(name, tokens, width)) for name in ("X", "X2", "X3"))
        return nn.reshape(nn.transpose(nn.attention(q, k, v), (1, 0, 2)), (tokens, width))

    return write


def _joined(channels: int, size: int, filters: int) -> Layer:
    def write(net: Network) -> Tensor:
        x, y = (net.input(name, 1, channels, size, size) for name in ("X", "X2"))
        return net.nn.relu(net.convolution(net.nn.concat([x, y], 1), filters, 3))

    return write


def _doubled(channels: int, size: int, filters: int) -> Layer:
    def write(net: Network) -> Tensor:
        x = net.input("X", 1, channels, size, size)
        return net.nn.conv2d_transpose(x, net.weight("W", channels, filters, 2, 2), stride=2)

    return write


def _pool(channels: int, size: int, *window: int) -> Layer:
    return lambda net: net.nn.max_pool2d(net.input("X", 1, channels, size, size), *window)


LAYERS: dict[str, dict[str, Layer]] = {
    "resnet50": {
        "7x7 3->64@224/2": _convolution(3, 224, 64, 7, 2),
        "max pool 64@112/2": _pool(64, 112, 3, 2, 1),
        "3x3 64->64@56": _convolution(64, 56, 64, 3),
        "1x1 64->256@56 added": _convolution(64, 56, 256, 1, added=True),
        "3x3 128->128@56/2": _convolution(128, 56, 128, 3, 2),
        "1x1 1024->256@14": _convolution(1024, 14, 256, 1),
        "3x3 512->512@7": _convolution(512, 7, 512, 3),
        "dense 2048->1000": _dense(1, 2048, 1000),
    },
    "mobilenet_v2": {
        "3x3 3->32@224/2": _convolution(3, 224, 32, 3, 2, "relu6"),
        "depthwise 3x3 32@112": _depthwise(32, 112, 3, 1),
        "1x1 24->144@56": _convolution(24, 56, 144, 1, end="relu6"),
        "depthwise 3x3 144@56/2": _depthwise(144, 56, 3, 2),
        "depthwise 3x3 384@14": _depthwise(384, 14, 3, 1),
        "1x1 320->1280@7": _convolution(320, 7, 1280, 1, end="relu6"),
    },
    "efficientnet_b0": {
        "1x1 16->96@112": _convolution(16, 112, 96, 1, end="silu"),
        "depthwise 5x5 144@56/2": _depthwise(144, 56, 5, 2, "silu"),
        "depthwise 5x5 672@14": _depthwise(672, 14, 5, 1, "silu"),
        "depthwise 3x3 480@14": _depthwise(480, 14, 3, 1, "silu"),
        "1x1 320->1280@7": _convolution(320, 7, 1280, 1, end="silu"),
    },
    "bert layer": {
        "dense 768->768": _dense(128, 768, 768),
        "attention 12x128x64": _attention(128, 768, 12),
        "dense 768->3072 gelu": _dense(128, 768, 3072, "gelu"),
        "dense 3072->768 norm": _normed(128, 3072, 768),
    },
    "unet": {
        "3x3 32->32@128": _convolution(32, 128, 32, 3),
        "3x3 128->256@16": _convolution(128, 16, 256, 3),
        "3x3 joined 128->64@64": _joined(64, 64, 64),
        "2x2 transposed 128->64@32/2": _doubled(128, 32, 64),
    },
    "video": {
        "1x7x7 3->32@8x112/2": _volume((3, 8, 112, 112), 32, (1, 7, 7), (1, 2, 2)),
        "3x1x1 32->32@8x56": _volume((32, 8, 56, 56), 32, (3, 1, 1)),
        "3x3x3 64->128@8x28/2": _volume((64, 8, 28, 28), 128, (3, 3, 3), (2, 2, 2)),
    },
}
"""By network, the layers by what they are: filters, channels, image, and after the stroke the stride."""


def layer(network: str, name: str, net: Network) -> te.Function:
    """Write the layer of a name in LAYERS into `net`, and return its te function."""
    made: Any = LAYERS[network][name](net)
    return net.function(made)
