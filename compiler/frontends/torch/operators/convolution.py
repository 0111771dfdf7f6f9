"""Convolutions of one to three dimensions, also transposed."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.frontends.torch.operators.elements import per_dim, to_dtype
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te.tensor import Tensor

_DIRECT = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
_TRANSPOSED = {1: nn.conv1d_transpose, 2: nn.conv2d_transpose, 3: nn.conv3d_transpose}


@operator("convolution")
def convolution(
    call: Call,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """A convolution over one to three dimensions, or with `transposed` a transposed one, plus the bias. Raises
    Unsupported for an image without a batch dimension."""
    rank = weight.rank - 2
    if x.rank != weight.rank:
        raise Unsupported("an image without a batch dimension")
    steps, pads, dilations = (per_dim(values, rank) for values in (stride, padding, dilation))
    if transposed:
        extra = per_dim(output_padding, rank)
        build = _TRANSPOSED[rank]
        convolved = build(x, weight, bias, steps, pads, extra, dilations, groups, name=call.name)
    elif rank == 2 and groups == x.shape[1] > 1:
        convolved = nn.depthwise_conv2d(x, weight, bias, steps, pads, dilations, name=call.name)
    else:
        convolved = _DIRECT[rank](x, weight, bias, steps, pads, dilations, groups, name=call.name)
    return to_dtype(convolved, call.dtype, call.name)
