"""Convolutions, and the windows of convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler.frontends.onnx.table import Node, Refused, handles
from compiler.te import nn
from compiler.te.tensor import Tensor

CONVOLUTIONS = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
TRANSPOSED = {1: nn.conv1d_transpose, 2: nn.conv2d_transpose, 3: nn.conv3d_transpose}


@dataclass(frozen=True)
class Windows:
    """The window attributes of a node, one entry a dimension; `pads` has all paddings before, then all after."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]


def windows(node: Node, image: Sequence[int], kernel: Sequence[int], ceil: bool = False) -> Windows:
    """Return a node's windows of shape `kernel` over an image, with `auto_pad` resolved to paddings; `ceil` has no
    effect. Raises Refused for an image of other than one to three dimensions and for negative padding."""
    geometry = _stated_windows(node, image, kernel)
    auto_pad = node.attribute("auto_pad", "NOTSET")
    if auto_pad not in ("VALID", "NOTSET"):
        sizes = zip(image, kernel, geometry.strides, geometry.dilations, strict=True)
        total = [max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0) for n, k, s, d in sizes]
        geometry = replace(geometry, pads=_split_padding(total, auto_pad))
    if any(n < 0 for n in geometry.pads):
        raise Refused("its padding is negative")
    return geometry


def _stated_windows(node: Node, image: Sequence[int], kernel: Sequence[int]) -> Windows:
    """Return the windows by a node's attributes; paddings are 0 if absent or if `auto_pad` is set. Raises Refused for
    an image of other than one to three dimensions."""
    rank = len(image)
    if not 1 <= rank <= 3:
        raise Refused(f"its image has {rank} dimensions; there are windows over 1 to 3")
    strides, dilations = (list(node.attribute(name) or [1] * rank) for name in ("strides", "dilations"))
    pads, is_plain = node.attribute("pads"), node.attribute("auto_pad", "NOTSET") == "NOTSET"
    return Windows(list(kernel), strides, dilations, list((is_plain and pads) or [0] * (2 * rank)))


def _split_padding(total: Sequence[int], auto_pad: str) -> list[int]:
    """Split each dimension's padding into half before and half after; an odd element goes after for SAME_UPPER, else
    before. Return all before, then all after."""
    smaller, larger = [n // 2 for n in total], [n - n // 2 for n in total]
    return smaller + larger if auto_pad == "SAME_UPPER" else larger + smaller


@handles("Conv")
def conv(node: Node) -> Tensor:
    """A convolution over one to three dimensions, plus the bias. Raises Refused for an image of other than one to three
    dimensions, and for negative padding."""
    x, w = node.tensor(0), node.tensor(1)
    geometry = windows(node, x.shape[2:], w.shape[2:])
    convolve = CONVOLUTIONS[x.rank - 2]
    groups = node.attribute("group", 1)
    return convolve(x, w, node.optional(2), geometry.strides, geometry.pads, geometry.dilations, groups, name=node.name)


@handles("ConvTranspose")
def conv_transpose(node: Node) -> Tensor:
    """A transposed convolution plus the bias; `output_shape` or `auto_pad` determine the padding if present. Raises
    Refused for an image of other than one to three dimensions."""
    x, w = node.tensor(0), node.tensor(1)
    rank = x.rank - 2
    geometry = _stated_windows(node, x.shape[2:], w.shape[2:])
    extra = node.attribute("output_padding") or [0] * rank
    output_shape, pads = node.attribute("output_shape"), geometry.pads
    full = [
        (n - 1) * s + (k - 1) * d + 1 + o
        for n, s, k, d, o in zip(x.shape[2:], geometry.strides, geometry.kernel, geometry.dilations, extra, strict=True)
    ]
    auto_pad = node.attribute("auto_pad", "NOTSET")
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and not output_shape:
        output_shape = [n * s for n, s in zip(x.shape[2:], geometry.strides, strict=True)]
    if output_shape:
        pads = _split_padding([n - target for n, target in zip(full, output_shape[-rank:], strict=True)], auto_pad)
    return _transposed(node, x, w, geometry, pads, extra)


def _transposed(node: Node, x: Tensor, w: Tensor, over: Windows, pads: Sequence[int], extra: Sequence[int]) -> Tensor:
    """A transposed convolution with padding of any sign; negative padding surrounds the sums with zeros. over: the
    strides and dilations. pads: all paddings before, then all after. extra: the output padding of each dimension."""
    rank, groups = x.rank - 2, node.attribute("group", 1)
    operator = TRANSPOSED[rank]
    before, after = pads[:rank], pads[rank:]
    ends = [o - a for o, a in zip(extra, after, strict=True)]
    inner = [max(n, 0) for n in before] + [max(-n, 0) for n in ends]
    outer = [(max(-b, 0), max(n, 0)) for b, n in zip(before, ends, strict=True)]
    bias = node.optional(2)
    if not any(n for both in outer for n in both):
        return operator(x, w, bias, over.strides, inner, 0, over.dilations, groups, name=node.name)
    sums = operator(x, w, None, over.strides, inner, 0, over.dilations, groups, name=f"{node.name}.inner")
    padded = nn.pad(sums, [(0, 0), (0, 0), *outer], name=node.name)
    if bias is None:
        return padded
    return nn.add(padded, nn.reshape(bias, (bias.shape[0], *[1] * rank)), name=node.name)
