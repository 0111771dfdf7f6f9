"""Images at another size, and pads that repeat elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
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


def _padded(call: Call, x: Tensor, pad: Sequence[int], reflect: bool) -> Tensor:
    """Dimension by dimension, the last ones first: what is outside is read from inside."""
    found = x
    for n in range(len(pad) // 2):
        before, after = pad[2 * n], pad[2 * n + 1]
        if before < 0 or after < 0:
            raise Unsupported("a pad that cuts")
        if before or after:
            found = _along(found, x.rank - 1 - n, before, after, reflect, f"{call.name}.{n}")
    return found


def _along(x: Tensor, dim: int, before: int, after: int, reflect: bool, name: str) -> Tensor:
    size = x.shape[dim]
    shape = [n + before + after if d == dim else n for d, n in enumerate(x.shape)]

    def element(*i: Index) -> Expr:
        at, last = i[dim] - before, size - 1
        low, high = (at * -1, at * -1 + 2 * last) if reflect else (at * 0, at * 0 + last)

        def inside(place: Index) -> Expr:
            condition = e.all_of(place >= 0, place <= last)
            return e.select(condition, x[(*i[:dim], place, *i[dim + 1 :])], False if x.dtype == "i1" else 0)

        return e.select(at < 0, inside(low), e.select(at > last, inside(high), inside(at)))

    return compute(shape, element, name)


@operator("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(call: Call, x: Tensor, padding: Sequence[int]) -> Tensor:
    """A border that mirrors the image, the outermost pixels once."""
    return _padded(call, x, padding, reflect=True)


@operator("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(call: Call, x: Tensor, padding: Sequence[int]) -> Tensor:
    """A border that repeats the outermost pixels."""
    return _padded(call, x, padding, reflect=False)
