"""Resize of images, reflection and replication padding."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from compiler.frontends.torch.table import Call, operator
from compiler.te import nn
from compiler.te.nn.interpolation import slopes
from compiler.te.nn.resizing import select_positions
from compiler.te.tensor import Tensor

Scales: TypeAlias = Sequence[float | None] | None


def _register_nearest(name: str, exact: bool) -> None:
    def by_scales(call: Call, x: Tensor, size: Sequence[int] | None, scales: Scales = None) -> Tensor:
        all_scales = scales or [None] * (x.rank - 2)
        steps = {d: step(x, call.shape[d], d, scale) for d, scale in enumerate(all_scales, 2)}
        picks = {d: nearest_pixels(x, call.shape[d], d, distance, exact) for d, distance in steps.items()}
        return select_positions(x, picks, call.name)

    def by_size(call: Call, x: Tensor, size: Sequence[int], *scales: float | None) -> Tensor:
        return by_scales(call, x, size, scales)

    operator(f"{name}.vec")(by_scales)
    operator(name)(by_size)


def step(x: Tensor, size: int, d: int, scale: float | None) -> float:
    """Return the distance of adjacent output pixels in pixels of x along dimension d: the extents' ratio, or 1 / scale,
    rounded to f32 except for f64 tensors."""
    ratio = x.shape[d] / size if scale is None else 1 / scale
    return ratio if x.dtype == "f64" else float(np.float32(ratio))


def nearest_pixels(x: Tensor, size: int, d: int, distance: float, exact: bool) -> tuple[list[int], list[Fraction]]:
    """Return the nearest source pixel along dimension d of each of `size` output pixels, by index or by centre
    (`exact`), rounded as in torch's CPU loops, and candidate slopes of an affine access; `distance` is from `step`."""
    coordinates: Any = np.arange(size)
    if exact:
        centre = (coordinates + 0.5) * distance - 0.5
        centre = centre if x.dtype == "f64" else centre.astype(np.float32).astype(np.float64)
        coordinates = np.maximum(centre, 0) + 0.5
    else:
        coordinates = coordinates * distance
    pixels = np.minimum(np.floor(coordinates.astype(np.float32)), x.shape[d] - 1)
    return [int(pixel) for pixel in pixels], slopes(x.shape[d], size, distance)


for _rank in (1, 2, 3):
    _register_nearest(f"upsample_nearest{_rank}d", exact=False)
    _register_nearest(f"_upsample_nearest_exact{_rank}d", exact=True)


@operator("upsample_bilinear2d.vec")
def bilinear(call: Call, x: Tensor, size: Sequence[int] | None, align_corners: bool, scales: Scales = None) -> Tensor:
    """Bilinear interpolation of images [N, C, H, W] to the call's extents; scales replace the ratios of extents, except
    with `align_corners`, where the outermost elements coincide. `size` is not read."""
    sizes = call.shape[2:]
    ratios = [m / n if s is None else s for n, m, s in zip(x.shape[2:], sizes, scales or (None, None), strict=True)]
    if align_corners or all(n * ratio == m for n, m, ratio in zip(x.shape[2:], sizes, ratios, strict=True)):
        return nn.resize_bilinear(x, (call.shape[2], call.shape[3]), align_corners, call.name)
    return nn.resize(x, sizes, ratios, (2, 3), "linear", name=call.name)


@operator("upsample_bilinear2d")
def bilinear_sized(call: Call, x: Tensor, size: Sequence[int], align_corners: bool, *scales: float | None) -> Tensor:
    """Bilinear interpolation of images to the call's extents, as by `bilinear` with a list of these scales, none for
    the ratios of extents. `size` is not read."""
    return bilinear(call, x, size, align_corners, scales)


def _register_pad(name: str, mode: str) -> None:
    """Register `{name}1d` to `{name}3d` for a mode of nn.pad; torch lists the last dimension's widths first."""

    def convert(call: Call, x: Tensor, padding: Sequence[int]) -> Tensor:
        widths = [(0, 0)] * x.rank
        for n in range(len(padding) // 2):
            widths[x.rank - 1 - n] = (padding[2 * n], padding[2 * n + 1])
        return nn.pad(x, widths, mode=mode, name=call.name)

    operator(*(f"{name}{rank}d" for rank in (1, 2, 3)))(convert)


_register_pad("reflection_pad", "reflect")
_register_pad("replication_pad", "edge")
