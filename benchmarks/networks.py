"""Whole networks as te programs, batch 1, weights as inputs: `python -m benchmarks.networks` prints their groups."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

from compiler import te
from compiler.dialects.functions import find_function
from compiler.graph.grouping import group, is_group
from compiler.graph.read import read
from compiler.graph.tree import Call, Graph
from compiler.te.tensor import Tensor


class Network:
    """A network under construction. `inputs` has the inputs and weights in the order of their creation; `nn` has the
    operators that the methods call."""

    nn: Any = te.nn

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Tensor] = []

    def input(self, name: str, *shape: int, dtype: str = "f32") -> Tensor:
        """Add an input to the network, and return its tensor."""
        tensor: Tensor = te.placeholder(shape, dtype, name)
        self.inputs.append(tensor)
        return tensor

    def weight(self, name: str, *shape: int) -> Tensor:
        """Add a weight, an f32 input, and return its tensor; its name is `name` with the number of earlier inputs
        behind it."""
        return self.input(f"{name}{len(self.inputs)}", *shape)

    def convolution(self, x: Tensor, filters: int, kernel: int, stride: int = 1, groups: int = 1) -> Tensor:
        """A 2-d convolution with new weights and a bias, padded by kernel // 2."""
        weight, bias = self.weight("W", filters, x.shape[1] // groups, kernel, kernel), self.weight("b", filters)
        return self.nn.conv2d(x, weight, bias, stride=stride, padding=kernel // 2, groups=groups)

    def depthwise(self, x: Tensor, kernel: int, stride: int = 1) -> Tensor:
        """A depthwise 2-d convolution with new weights and a bias, padded by kernel // 2."""
        channels = x.shape[1]
        made = self.nn.depthwise_conv2d(
            x, self.weight("W", channels, 1, kernel, kernel), stride=stride, padding=kernel // 2
        )
        return self.nn.add(made, self.nn.reshape(self.weight("b", channels), (1, channels, 1, 1)))

    def dense(self, x: Tensor, features: int) -> Tensor:
        """x W + b with new weights W [x.shape[1], features] and b."""
        return self.nn.add(self.nn.matmul(x, self.weight("W", x.shape[1], features)), self.weight("b", features))

    def norm(self, x: Tensor) -> Tensor:
        """A layer norm along the rows of a matrix, with a new scale and shift."""
        return self.nn.layer_norm(x, self.weight("g", x.shape[1]), self.weight("h", x.shape[1]))

    def attention(self, x: Tensor, heads: int, causal: bool = False) -> Tensor:
        """Multi-head self-attention of the rows of a matrix, with new projections before and after it; `causal`: each
        row attends to itself and earlier ones."""
        nn, (tokens, width) = self.nn, x.shape

        def split(t: Tensor) -> Tensor:
            return nn.transpose(nn.reshape(t, (tokens, heads, width // heads)), (1, 0, 2))

        q, k, v = (split(self.dense(x, width)) for _ in range(3))
        mixed = nn.attention(q, k, v, causal=True) if causal else nn.attention(q, k, v)
        joined = nn.reshape(nn.transpose(mixed, (1, 0, 2)), (tokens, width))
        return self.dense(joined, width)

    def function(self, output: Tensor) -> te.Function:
        """Return the te function of the network's inputs with this output."""
        return te.function(self.name, self.inputs, output)


Maker: TypeAlias = Callable[[str], Network]
"""What a network is written into, by its name: te functions, unless something else is given."""


def bert(
    layers: int = 12,
    tokens: int = 128,
    width: int = 768,
    heads: int = 12,
    hidden: int = 3072,
    make: Maker | None = None,
) -> te.Function:
    """The encoder layers of BERT-base, X [tokens, width]."""
    net = (make or Network)("bert")
    nn = net.nn
    x = net.input("X", tokens, width)
    for _ in range(layers):
        y = net.norm(nn.add(x, net.attention(x, heads)))
        x = net.norm(nn.add(y, net.dense(nn.gelu(net.dense(y, hidden)), width)))
    return net.function(x)


def whisper(
    layers: int = 4, frames: int = 3000, width: int = 384, heads: int = 6, make: Maker | None = None
) -> te.Function:
    """The encoder of Whisper-tiny, X [1, 80, frames]: filters over time, then layers whose norms come first."""
    net = (make or Network)("whisper")
    nn = net.nn

    def filtered(t: Tensor, stride: int) -> Tensor:
        weight, bias = net.weight("W", width, t.shape[1], 3), net.weight("b", width)
        return nn.gelu(nn.conv1d(t, weight, bias, stride=stride, padding=1))

    x = filtered(filtered(net.input("X", 1, 80, frames), 1), 2)
    x = nn.transpose(nn.reshape(x, (width, frames // 2)), (1, 0))
    x = nn.add(x, net.weight("p", frames // 2, width))
    for _ in range(layers):
        x = nn.add(x, net.attention(net.norm(x), heads))
        x = nn.add(x, net.dense(nn.gelu(net.dense(net.norm(x), 4 * width)), width))
    return net.function(net.norm(x))


def llama(
    layers: int = 4, tokens: int = 64, width: int = 512, heads: int = 8, hidden: int = 1408, make: Maker | None = None
) -> te.Function:
    """Decoder layers as of Llama: RMS norms, rotated queries and keys, a mask, a gated middle."""
    net, depth = (make or Network)("llama"), width // heads
    nn = net.nn
    x, cos, sin = net.input("X", tokens, width), net.input("cos", tokens, depth), net.input("sin", tokens, depth)
    mask = net.input("mask", tokens, tokens)

    def linear(t: Tensor, features: int) -> Tensor:
        return nn.matmul(t, net.weight("W", t.shape[1], features))

    def rotated(t: Tensor) -> Tensor:
        low = nn.slice(t, (0, 0, 0), (heads, tokens, depth // 2))
        high = nn.slice(t, (0, 0, depth // 2), (heads, tokens, depth))
        return nn.add(nn.mul(t, cos), nn.mul(nn.concat([high, low], 2), sin))

    for _ in range(layers):
        y = nn.rms_norm(x, net.weight("g", width))
        parts = (nn.reshape(linear(y, width), (tokens, heads, depth)) for _ in range(3))
        q, k, v = (nn.transpose(t, (1, 0, 2)) for t in parts)
        a = nn.transpose(nn.attention(rotated(q), rotated(k), v, mask=mask), (1, 0, 2))
        x = nn.add(x, linear(nn.reshape(a, (tokens, width)), width))
        y = nn.rms_norm(x, net.weight("g", width))
        x = nn.add(x, linear(nn.mul(nn.silu(linear(y, hidden)), linear(y, hidden)), width))
    return net.function(x)


def resnet18(size: int = 224, classes: int = 1000, make: Maker | None = None) -> te.Function:
    """ResNet-18, batch norms folded: 20 convolutions."""
    net = (make or Network)("resnet18")
    nn = net.nn
    x = nn.max_pool2d(nn.relu(net.convolution(net.input("X", 1, 3, size, size), 64, 7, 2)), 3, 2, 1)
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            shortcut = x if stride == 1 else net.convolution(x, channels, 1, stride)
            y = net.convolution(nn.relu(net.convolution(x, channels, 3, stride)), channels, 3)
            x = nn.relu(nn.add(y, shortcut))
    return net.function(net.dense(nn.flatten(nn.global_avg_pool(x), 1), classes))


def resnet50(size: int = 224, classes: int = 1000, make: Maker | None = None) -> te.Function:
    """ResNet-50 v1.5, batch norms folded: 53 convolutions."""
    net = (make or Network)("resnet50")
    nn = net.nn
    x = nn.relu(net.convolution(net.input("X", 1, 3, size, size), 64, 7, 2))
    x = nn.max_pool2d(x, 3, 2, 1)
    for stage, (blocks, channels) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            shortcut = x if block else net.convolution(x, 4 * channels, 1, stride)
            y = nn.relu(net.convolution(x, channels, 1))
            y = nn.relu(net.convolution(y, channels, 3, stride))
            x = nn.relu(nn.add(net.convolution(y, 4 * channels, 1), shortcut))
    return net.function(net.dense(nn.flatten(nn.global_avg_pool(x), 1), classes))


def mobilenet_v2(size: int = 224, classes: int = 1000, make: Maker | None = None) -> te.Function:
    """MobileNetV2, batch norms folded: 52 convolutions, of which 17 are depthwise."""
    net = (make or Network)("mobilenet_v2")
    nn = net.nn

    def relu6(t: Tensor) -> Tensor:
        return nn.clamp(t, 0, 6)

    x = relu6(net.convolution(net.input("X", 1, 3, size, size), 32, 3, 2))
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for wider, channels, blocks, first in stages:
        for stride in [first] + [1] * (blocks - 1):
            y = relu6(net.convolution(x, wider * x.shape[1], 1)) if wider > 1 else x
            y = net.convolution(relu6(net.depthwise(y, 3, stride)), channels, 1)
            x = nn.add(x, y) if x.shape == y.shape else y
    x = relu6(net.convolution(x, 1280, 1))
    return net.function(net.dense(nn.flatten(nn.global_avg_pool(x), 1), classes))


def efficientnet_b0(size: int = 224, classes: int = 1000, make: Maker | None = None) -> te.Function:
    """EfficientNet-B0, batch norms folded: blocks that widen, filter by depth, weigh channels and narrow."""
    net = (make or Network)("efficientnet_b0")
    nn = net.nn

    def weighed(t: Tensor, squeezed: int) -> Tensor:
        channels = t.shape[1]
        small = nn.silu(net.convolution(nn.global_avg_pool(t), squeezed, 1))
        return nn.mul(t, nn.sigmoid(net.convolution(small, channels, 1)))

    x = nn.silu(net.convolution(net.input("X", 1, 3, size, size), 32, 3, 2))
    stages = (
        *((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)),
        *((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)),
    )
    for wider, channels, blocks, first, kernel in stages:
        for stride in [first] + [1] * (blocks - 1):
            y = nn.silu(net.convolution(x, wider * x.shape[1], 1)) if wider > 1 else x
            y = net.convolution(weighed(nn.silu(net.depthwise(y, kernel, stride)), x.shape[1] // 4), channels, 1)
            x = nn.add(x, y) if x.shape == y.shape else y
    x = nn.silu(net.convolution(x, 1280, 1))
    return net.function(net.dense(nn.flatten(nn.global_avg_pool(x), 1), classes))


def unet(size: int = 128, width: int = 32, depth: int = 3, make: Maker | None = None) -> te.Function:
    """A U-Net: two convolutions a level, halved by a maximum, doubled by a transposed convolution, joined."""
    net = (make or Network)("unet")
    nn = net.nn

    def twice(t: Tensor, filters: int) -> Tensor:
        return nn.relu(net.convolution(nn.relu(net.convolution(t, filters, 3)), filters, 3))

    x, left = net.input("X", 1, 3, size, size), list[Tensor]()
    for level in range(depth):
        x = twice(x, width << level)
        left.append(x)
        x = nn.max_pool2d(x, 2, 2)
    x = twice(x, width << depth)
    for level in reversed(range(depth)):
        filters = width << level
        up = nn.conv2d_transpose(x, net.weight("W", x.shape[1], filters, 2, 2), stride=2)
        x = twice(nn.concat([left[level], up], 1), filters)
    return net.function(net.convolution(x, 4, 1))


def video(frames: int = 8, size: int = 56, width: int = 32, make: Maker | None = None) -> te.Function:
    """A video network in the manner of R(2+1)D: filters over the image, then over time; 3x3x3 ones at the end."""
    net = (make or Network)("video")
    nn = net.nn

    def convolution(t: Tensor, filters: int, kernel: tuple[int, ...], stride: tuple[int, ...] = (1, 1, 1)) -> Tensor:
        weight, bias = net.weight("W", filters, t.shape[1], *kernel), net.weight("b", filters)
        return nn.conv3d(t, weight, bias, stride=stride, padding=tuple(k // 2 for k in kernel))

    x = nn.relu(convolution(net.input("X", 1, 3, frames, 2 * size, 2 * size), width, (1, 7, 7), (1, 2, 2)))
    x = nn.relu(convolution(x, width, (3, 1, 1)))
    for filters, stride in ((width, 1), (2 * width, 2)):
        y = nn.relu(convolution(x, filters, (1, 3, 3), (1, stride, stride)))
        y = convolution(y, filters, (3, 1, 1))
        shortcut = x if stride == 1 else convolution(x, filters, (1, 1, 1), (1, stride, stride))
        x = nn.relu(nn.add(y, shortcut))
    x = nn.relu(convolution(x, 4 * width, (3, 3, 3), (2, 2, 2)))
    x = nn.max_pool3d(x, 2, 2)
    pooled = nn.mean(x, (2, 3, 4))
    return net.function(net.dense(pooled, 400))


NETWORKS: dict[str, Callable[[], te.Function]] = {
    "bert layer": lambda: bert(1),
    "bert": bert,
    "whisper": whisper,
    "llama": llama,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "unet": unet,
    "video": video,
}


def table(function: te.Function) -> str:
    """The groups of a function as text: the calls of each, its computes, and the shapes of its results."""
    module = group(function.module)
    graphs = {f.sym_name.data: read(f) for f in module.ops if is_group(f)}
    calls = [node for node in read(find_function(module)).nodes if isinstance(node, Call)]
    rows = [_row(graphs[name], count) for name, count in Counter(call.callee for call in calls).items()]
    return "\n".join([f"{len(graphs)} groups, {len(calls)} calls", *rows])


def _row(graph: Graph, count: int) -> str:
    shapes = " ".join("x".join(map(str, graph.values[name].shape)) for name in graph.results)
    return f"{graph.name:>10} x {count:<3} {shapes:<18} {' '.join(node.results[0].name for node in graph.nodes)}"


if __name__ == "__main__":
    for name, make in NETWORKS.items():
        print(f"{name}: {table(make())}\n")
