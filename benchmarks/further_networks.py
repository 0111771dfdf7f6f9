"""Networks of further kinds, batch 1, for `benchmarks.whole`. docs/results.md has their times before any rule saw them.

resnext50, densenet121, squeezenet, shufflenet_v2, mobilenet_v3, convnext_tiny   classes of images
deit_tiny, mlp_mixer    images as sequences of patches
gpt2                    decoder layers, causal
detector                boxes at two scales, in the manner of YOLO
super_resolution        an image three times as large
wavenet                 dilated filters over time, gated
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import Callable

from benchmarks.networks import Maker, Network
from compiler import te
from compiler.te.tensor import Tensor


def _classified(net: Network, x: Tensor, classes: int = 1000) -> te.Function:
    """Return the te function of the network whose output is a dense layer to `classes` of the mean of each channel of
    x."""
    return net.function(net.dense(net.nn.flatten(net.nn.global_avg_pool(x), 1), classes))


def _weighed(net: Network, x: Tensor, squeezed: int) -> Tensor:
    """x times a weight for each channel, which two 1x1 convolutions compute from the means of all channels, as in
    squeeze-and-excite; `squeezed`: the channels between the two."""
    small = net.nn.relu(net.convolution(net.nn.global_avg_pool(x), squeezed, 1))
    return net.nn.mul(x, net.nn.hardsigmoid(net.convolution(small, x.shape[1], 1)))


def _halves(net: Network, x: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the second half of the channels of an image."""
    n, c, h, w = x.shape
    return net.nn.slice(x, (0, 0, 0, 0), (n, c // 2, h, w)), net.nn.slice(x, (0, c // 2, 0, 0), (n, c, h, w))


def _patches(net: Network, size: int, patch: int, width: int) -> Tensor:
    """Add an image of `size` x `size` as input X, and embed its patches of `patch` x `patch` pixels: [patches,
    width]."""
    weight, bias = net.weight("W", width, 3, patch, patch), net.weight("b", width)
    x = net.nn.conv2d(net.input("X", 1, 3, size, size), weight, bias, stride=patch)
    return net.nn.transpose(net.nn.reshape(x, (width, (size // patch) ** 2)), (1, 0))


def resnext50(make: Maker | None = None) -> te.Function:
    """ResNeXt-50: blocks whose 3x3 convolutions have 32 groups, of 4 to 32 channels."""
    net = (make or Network)("resnext50")
    nn = net.nn
    x = nn.max_pool2d(nn.relu(net.convolution(net.input("X", 1, 3, 224, 224), 64, 7, 2)), 3, 2, 1)
    for stage, (blocks, channels) in enumerate(((3, 128), (4, 256), (6, 512), (3, 1024))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            shortcut = x if block else net.convolution(x, 2 * channels, 1, stride)
            y = nn.relu(net.convolution(x, channels, 1))
            y = nn.relu(net.convolution(y, channels, 3, stride, groups=32))
            x = nn.relu(nn.add(net.convolution(y, 2 * channels, 1), shortcut))
    return _classified(net, x)


def densenet121(make: Maker | None = None) -> te.Function:
    """DenseNet-121: each layer reads the results of all earlier ones of its stage. Batch norms before an activation
    cannot be folded into weights: they are a product and a sum."""
    net = (make or Network)("densenet121")
    nn = net.nn

    def activated(t: Tensor) -> Tensor:
        shape = (1, t.shape[1], 1, 1)
        scaled = nn.mul(t, nn.reshape(net.weight("g", shape[1]), shape))
        return nn.relu(nn.add(scaled, nn.reshape(net.weight("h", shape[1]), shape)))

    x = nn.max_pool2d(nn.relu(net.convolution(net.input("X", 1, 3, 224, 224), 64, 7, 2)), 3, 2, 1)
    for stage, layers in enumerate((6, 12, 24, 16)):
        if stage:
            x = nn.avg_pool2d(net.convolution(activated(x), x.shape[1] // 2, 1), 2, 2)
        for _ in range(layers):
            y = nn.relu(net.convolution(activated(x), 128, 1))
            x = nn.concat([x, net.convolution(y, 32, 3)], 1)
    return _classified(net, activated(x))


def squeezenet(make: Maker | None = None) -> te.Function:
    """SqueezeNet 1.1: blocks of a 1x1 and a 3x3 convolution of the same image, concatenated."""
    net = (make or Network)("squeezenet")
    nn = net.nn
    weight, bias = net.weight("W", 64, 3, 3, 3), net.weight("b", 64)
    x = nn.relu(nn.conv2d(net.input("X", 1, 3, 224, 224), weight, bias, stride=2))
    for squeezed in (0, 16, 16, 0, 32, 32, 0, 48, 48, 64, 64):
        if not squeezed:
            x = nn.max_pool2d(x, 3, 2)
            continue
        y = nn.relu(net.convolution(x, squeezed, 1))
        x = nn.concat([nn.relu(net.convolution(y, 4 * squeezed, k)) for k in (1, 3)], 1)
    return net.function(nn.flatten(nn.global_avg_pool(nn.relu(net.convolution(x, 1000, 1))), 1))


def shufflenet_v2(make: Maker | None = None) -> te.Function:
    """ShuffleNetV2 x1: blocks that convolve half of the channels, keep the others, and interleave the two halves."""
    net = (make or Network)("shufflenet_v2")
    nn = net.nn

    def shuffled(a: Tensor, b: Tensor) -> Tensor:
        n, c, h, w = a.shape
        mixed = nn.transpose(nn.reshape(nn.concat([a, b], 1), (n, 2, c, h, w)), (0, 2, 1, 3, 4))
        return nn.reshape(mixed, (n, 2 * c, h, w))

    def branch(t: Tensor, channels: int, stride: int) -> Tensor:
        y = nn.relu(net.convolution(t, channels, 1))
        return nn.relu(net.convolution(net.depthwise(y, 3, stride), channels, 1))

    x = nn.max_pool2d(nn.relu(net.convolution(net.input("X", 1, 3, 224, 224), 24, 3, 2)), 3, 2, 1)
    for channels, blocks in ((58, 4), (116, 8), (232, 4)):
        x = shuffled(nn.relu(net.convolution(net.depthwise(x, 3, 2), channels, 1)), branch(x, channels, 2))
        for _ in range(blocks - 1):
            left, right = _halves(net, x)
            x = shuffled(left, branch(right, channels, 1))
    return _classified(net, nn.relu(net.convolution(x, 1024, 1)))


def mobilenet_v3(make: Maker | None = None) -> te.Function:
    """MobileNetV3-Large: depthwise convolutions, hardswish, and in some blocks channels weighed as in
    squeeze-and-excite."""
    net = (make or Network)("mobilenet_v3")
    nn = net.nn
    x = nn.hardswish(net.convolution(net.input("X", 1, 3, 224, 224), 16, 3, 2))
    for kernel, wide, channels, squeezed, active, stride in (
        *((3, 16, 16, 0, nn.relu, 1), (3, 64, 24, 0, nn.relu, 2), (3, 72, 24, 0, nn.relu, 1)),
        *((5, 72, 40, 24, nn.relu, 2), (5, 120, 40, 32, nn.relu, 1), (5, 120, 40, 32, nn.relu, 1)),
        *((3, 240, 80, 0, nn.hardswish, 2), (3, 200, 80, 0, nn.hardswish, 1), (3, 184, 80, 0, nn.hardswish, 1)),
        *((3, 184, 80, 0, nn.hardswish, 1), (3, 480, 112, 120, nn.hardswish, 1), (3, 672, 112, 168, nn.hardswish, 1)),
        *(
            (5, 672, 160, 168, nn.hardswish, 2),
            (5, 960, 160, 240, nn.hardswish, 1),
            (5, 960, 160, 240, nn.hardswish, 1),
        ),
    ):
        y = x if wide == x.shape[1] else active(net.convolution(x, wide, 1))
        y = active(net.depthwise(y, kernel, stride))
        y = net.convolution(_weighed(net, y, squeezed) if squeezed else y, channels, 1)
        x = nn.add(x, y) if x.shape == y.shape else y
    x = nn.flatten(nn.global_avg_pool(nn.hardswish(net.convolution(x, 960, 1))), 1)
    return net.function(net.dense(nn.hardswish(net.dense(x, 1280)), 1000))


def convnext_tiny(make: Maker | None = None) -> te.Function:
    """ConvNeXt-T: depthwise 7x7 convolutions; norms and dense layers on images as matrices of pixels by channels."""
    net = (make or Network)("convnext_tiny")
    nn = net.nn

    def rows(t: Tensor) -> Tensor:
        return nn.transpose(nn.reshape(t, (t.shape[1], t.shape[2] * t.shape[3])), (1, 0))

    def image(t: Tensor, like: Tensor) -> Tensor:
        return nn.reshape(nn.transpose(t, (1, 0)), like.shape)

    def reduced(t: Tensor, channels: int, kernel: int) -> Tensor:
        weight, bias = net.weight("W", channels, t.shape[1], kernel, kernel), net.weight("b", channels)
        return nn.conv2d(t, weight, bias, stride=kernel)

    x = reduced(net.input("X", 1, 3, 224, 224), 96, 4)
    x = image(net.norm(rows(x)), x)
    for stage, blocks in enumerate((3, 3, 9, 3)):
        if stage:
            x = reduced(image(net.norm(rows(x)), x), 96 << stage, 2)
        for _ in range(blocks):
            y = net.norm(rows(net.depthwise(x, 7)))
            y = net.dense(nn.gelu(net.dense(y, 4 * x.shape[1])), x.shape[1])
            x = nn.add(x, image(nn.mul(y, net.weight("s", x.shape[1])), x))
    pooled = net.norm(nn.flatten(nn.global_avg_pool(x), 1))
    return net.function(net.dense(pooled, 1000))


def deit_tiny(make: Maker | None = None) -> te.Function:
    """DeiT-Ti: 12 encoder layers of width 192 over 196 patches and a class token."""
    net = (make or Network)("deit_tiny")
    nn = net.nn
    x = nn.concat([net.weight("c", 1, 192), _patches(net, 224, 16, 192)], 0)
    x = nn.add(x, net.weight("p", 197, 192))
    for _ in range(12):
        x = nn.add(x, net.attention(net.norm(x), 3))
        x = nn.add(x, net.dense(nn.gelu(net.dense(net.norm(x), 768)), 192))
    return net.function(net.dense(nn.slice(net.norm(x), (0, 0), (1, 192)), 1000))


def mlp_mixer(make: Maker | None = None) -> te.Function:
    """MLP-Mixer S/16: layers with an MLP along the 196 patches, then one along the 512 channels."""
    net = (make or Network)("mlp_mixer")
    nn = net.nn

    def mixed(t: Tensor, hidden: int) -> Tensor:
        return net.dense(nn.gelu(net.dense(t, hidden)), t.shape[1])

    x = _patches(net, 224, 16, 512)
    for _ in range(8):
        x = nn.add(x, nn.transpose(mixed(nn.transpose(net.norm(x), (1, 0)), 256), (1, 0)))
        x = nn.add(x, mixed(net.norm(x), 2048))
    return net.function(net.dense(nn.reshape(nn.mean(net.norm(x), (0,)), (1, 512)), 1000))


def gpt2(layers: int = 2, tokens: int = 256, width: int = 768, make: Maker | None = None) -> te.Function:
    """Decoder layers of GPT-2 on X [tokens, width]: norms before attention and MLP; each token attends to itself and
    earlier ones."""
    net = (make or Network)("gpt2")
    nn = net.nn
    x = net.input("X", tokens, width)
    for _ in range(layers):
        x = nn.add(x, net.attention(net.norm(x), 12, causal=True))
        x = nn.add(x, net.dense(nn.gelu(net.dense(net.norm(x), 4 * width)), width))
    return net.function(net.norm(x))


def detector(size: int = 320, make: Maker | None = None) -> te.Function:
    """A detector in the manner of YOLO for an image of `size` x `size`: stages that split and concatenate channels,
    poolings of three sizes, and a head at two scales; its result is [85, boxes]."""
    net = (make or Network)("detector")
    nn = net.nn

    def convolved(t: Tensor, filters: int, kernel: int, stride: int = 1) -> Tensor:
        return nn.silu(net.convolution(t, filters, kernel, stride))

    def stage(t: Tensor, filters: int, blocks: int) -> Tensor:
        parts = list(_halves(net, convolved(t, filters, 1)))
        for _ in range(blocks):
            last = parts[-1]
            parts.append(nn.add(last, convolved(convolved(last, filters // 2, 3), filters // 2, 3)))
        return convolved(nn.concat(parts, 1), filters, 1)

    def head(t: Tensor) -> Tensor:
        t = net.convolution(convolved(convolved(t, 64, 3), 64, 3), 85, 1)
        return nn.reshape(t, (85, t.shape[2] * t.shape[3]))

    x, levels = convolved(net.input("X", 1, 3, size, size), 16, 3, 2), list[Tensor]()
    for filters, blocks in ((32, 1), (64, 2), (128, 2), (256, 1)):
        x = stage(convolved(x, filters, 3, 2), filters, blocks)
        levels.append(x)
    parts = [convolved(x, 128, 1)]
    for _ in range(3):
        parts.append(nn.max_pool2d(parts[-1], 5, 1, 2))
    deep = convolved(nn.concat(parts, 1), 256, 1)
    up = nn.resize_nearest(convolved(deep, 128, 1), levels[-2].shape[2:])
    fine = stage(nn.concat([up, levels[-2]], 1), 128, 1)
    return net.function(nn.concat([head(fine), head(deep)], 1))


def super_resolution(size: int = 224, make: Maker | None = None) -> te.Function:
    """Four convolutions of an image of one channel, and a shuffle of 9 channels to an image three times as high and
    wide."""
    net = (make or Network)("super_resolution")
    x = net.input("X", 1, 1, size, size)
    for filters, kernel in ((64, 5), (64, 3), (32, 3)):
        x = net.nn.relu(net.convolution(x, filters, kernel))
    return net.function(net.nn.depth_to_space(net.convolution(x, 9, 3), 3, "CRD"))


def wavenet(steps: int = 4096, channels: int = 64, make: Maker | None = None) -> te.Function:
    """Two stacks of 8 layers of gated, dilated, causal convolutions over time; the result is computed from the sum of a
    1x1 convolution of each layer."""
    net = (make or Network)("wavenet")
    nn = net.nn

    def filtered(t: Tensor, filters: int, taps: int, dilation: int = 1) -> Tensor:
        weight, bias = net.weight("W", filters, t.shape[1], taps), net.weight("b", filters)
        return nn.conv1d(t, weight, bias, padding=((taps - 1) * dilation, 0), dilation=dilation)

    x = filtered(net.input("X", 1, 1, steps), channels, 3)
    added: Tensor | None = None
    for n in range(16):
        gated = [filtered(x, channels, 3, 1 << n % 8) for _ in range(2)]
        y = nn.mul(nn.tanh(gated[0]), nn.sigmoid(gated[1]))
        skipped = filtered(y, 2 * channels, 1)
        added = skipped if added is None else nn.add(added, skipped)
        x = nn.add(x, filtered(y, channels, 1))
    return net.function(filtered(nn.relu(filtered(nn.relu(added), 2 * channels, 1)), 256, 1))


FURTHER: dict[str, Callable[..., te.Function]] = {
    "resnext50": resnext50,
    "densenet121": densenet121,
    "squeezenet": squeezenet,
    "shufflenet_v2": shufflenet_v2,
    "mobilenet_v3": mobilenet_v3,
    "convnext_tiny": convnext_tiny,
    "deit_tiny": deit_tiny,
    "mlp_mixer": mlp_mixer,
    "gpt2": gpt2,
    "detector": detector,
    "super_resolution": super_resolution,
    "wavenet": wavenet,
}
