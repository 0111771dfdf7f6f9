"""Convolutions, and the windows that they share with pooling."""

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
    """The attributes of a node's windows; `pads` has all before, then all after."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]


def windows(node: Node, image: Sequence[int], kernel: Sequence[int], ceil: bool = False) -> Windows:
    """The windows over an image, with their padding. Raises Refused for windows without a te form."""
    over = _stated(node, image, kernel)
    auto = node.attribute("auto_pad", "NOTSET")
    if auto not in ("VALID", "NOTSET"):
        sizes = zip(image, kernel, over.strides, over.dilations, strict=True)
        total = [max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0) for n, k, s, d in sizes]
        over = replace(over, pads=_halves(total, auto))
    if any(n < 0 for n in over.pads):
        raise Refused("its padding is negative")
    return over


def _stated(node: Node, image: Sequence[int], kernel: Sequence[int]) -> Windows:
    """The windows of a node, without the padding that follows from extents."""
    rank = len(image)
    if not 1 <= rank <= 3:
        raise Refused(f"its image has {rank} dimensions; there are windows over 1 to 3")
    strides, dilations = (list(node.attribute(name) or [1] * rank) for name in ("strides", "dilations"))
    pads, is_plain = node.attribute("pads"), node.attribute("auto_pad", "NOTSET") == "NOTSET"
    return Windows(list(kernel), strides, dilations, list((is_plain and pads) or [0] * (2 * rank)))


def _halves(total: Sequence[int], auto: str) -> list[int]:
    """Padding as half before and half after, the odd one after for SAME_UPPER."""
    less, more = [n // 2 for n in total], [n - n // 2 for n in total]
    return less + more if auto == "SAME_UPPER" else more + less


@handles("Conv")
def conv(node: Node) -> Tensor:
    """A convolution over one to three dimensions."""
    x, w = node.tensor(0), node.tensor(1)
    over = windows(node, x.shape[2:], w.shape[2:])
    convolve = CONVOLUTIONS[x.rank - 2]
    groups = node.attribute("group", 1)
    return convolve(x, w, node.optional(2), over.strides, over.pads, over.dilations, groups, name=node.name)


@handles("ConvTranspose")
def conv_transpose(node: Node) -> Tensor:
    """A transposed convolution; its padding may follow from the result's extents."""
    x, w = node.tensor(0), node.tensor(1)
    rank = x.rank - 2
    over = _stated(node, x.shape[2:], w.shape[2:])
    extra = node.attribute("output_padding") or [0] * rank
    stated, pads = node.attribute("output_shape"), over.pads
    full = [
        (n - 1) * s + (k - 1) * d + 1 + o
        for n, s, k, d, o in zip(x.shape[2:], over.strides, over.kernel, over.dilations, extra, strict=True)
    ]
    same = node.attribute("auto_pad", "NOTSET")
    if same in ("SAME_UPPER", "SAME_LOWER") and not stated:
        stated = [n * s for n, s in zip(x.shape[2:], over.strides, strict=True)]
    if stated:
        pads = _halves([n - wanted for n, wanted in zip(full, stated[-rank:], strict=True)], same)
    return _placed(node, x, w, over, pads, extra)


def _placed(node: Node, x: Tensor, w: Tensor, over: Windows, pads: Sequence[int], extra: Sequence[int]) -> Tensor:
    """The transposed convolution with padding of any sign: zeros where it is negative or exceeded."""
    rank, groups = x.rank - 2, node.attribute("group", 1)
    transposed = TRANSPOSED[rank]
    before, after = pads[:rank], pads[rank:]
    ends = [o - a for o, a in zip(extra, after, strict=True)]
    inner = [max(n, 0) for n in before] + [max(-n, 0) for n in ends]
    outer = [(max(-b, 0), max(n, 0)) for b, n in zip(before, ends, strict=True)]
    bias = node.optional(2)
    if not any(n for both in outer for n in both):
        return transposed(x, w, bias, over.strides, inner, 0, over.dilations, groups, name=node.name)
    sums = transposed(x, w, None, over.strides, inner, 0, over.dilations, groups, name=f"{node.name}.inner")
    padded = nn.pad(sums, [(0, 0), (0, 0), *outer], name=node.name)
    if bias is None:
        return padded
    return nn.add(padded, nn.reshape(bias, (bias.shape[0], *[1] * rank)), name=node.name)
