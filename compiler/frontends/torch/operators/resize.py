"""Images at another size, and pads that repeat elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te.tensor import Tensor

Scales: TypeAlias = Sequence[float | None] | None


def _check_scales(call: Call, x: Tensor, scales: Scales) -> None:
    """The scales that torch was given agree with the sizes: it places pixels by the scales."""
    rank = len(call.shape) - 2
    for n, m, scale in zip(x.shape[-rank:], call.shape[-rank:], scales or (), strict=False):
        if scale is not None and n * scale != m:
            raise Unsupported(f"a resize by {scale} of an extent of {n}, which is not whole")


@operator("upsample_nearest2d.vec")
def nearest(call: Call, x: Tensor, size: Sequence[int] | None, scales: Scales = None) -> Tensor:
    """The pixel at the place of each, scaled down."""
    _check_scales(call, x, scales)
    return nn.resize_nearest(x, (call.shape[2], call.shape[3]), call.name)


@operator("upsample_nearest2d")
def nearest_sized(call: Call, x: Tensor, size: Sequence[int], *scales: float | None) -> Tensor:
    """The pixel at the place of each, scaled down."""
    return nearest(call, x, size, scales)


@operator("upsample_bilinear2d.vec")
def bilinear(call: Call, x: Tensor, size: Sequence[int] | None, align_corners: bool, scales: Scales = None) -> Tensor:
    """Pixels interpolated between their neighbours."""
    if not align_corners:
        _check_scales(call, x, scales)
    return nn.resize_bilinear(x, (call.shape[2], call.shape[3]), align_corners, call.name)


@operator("upsample_bilinear2d")
def bilinear_sized(call: Call, x: Tensor, size: Sequence[int], align_corners: bool, *scales: float | None) -> Tensor:
    """Pixels interpolated between their neighbours."""
    return bilinear(call, x, size, align_corners, scales)


def _padded(call: Call, x: Tensor, pad: Sequence[int], mode: str) -> Tensor:
    """A border of each dimension, the last one's first in the list."""
    widths = [(0, 0)] * x.rank
    for n in range(len(pad) // 2):
        widths[x.rank - 1 - n] = (pad[2 * n], pad[2 * n + 1])
    return nn.pad(x, widths, mode=mode, name=call.name)


@operator("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(call: Call, x: Tensor, padding: Sequence[int]) -> Tensor:
    """A border that mirrors the image, the outermost pixels once."""
    return _padded(call, x, padding, "reflect")


@operator("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(call: Call, x: Tensor, padding: Sequence[int]) -> Tensor:
    """A border that repeats the outermost pixels."""
    return _padded(call, x, padding, "edge")
