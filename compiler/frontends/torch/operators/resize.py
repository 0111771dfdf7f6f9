"""Images at another size, and pads that repeat elements."""

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


def _enter_nearest(name: str, exact: bool) -> None:
    def by_scales(call: Call, x: Tensor, size: Sequence[int] | None, scales: Scales = None) -> Tensor:
        given = scales or [None] * (x.rank - 2)
        steps = {d: step(x, call.shape[d], d, scale) for d, scale in enumerate(given, 2)}
        picks = {d: nearest_pixels(x, call.shape[d], d, apart, exact) for d, apart in steps.items()}
        return select_positions(x, picks, call.name)

    def by_size(call: Call, x: Tensor, size: Sequence[int], *scales: float | None) -> Tensor:
        return by_scales(call, x, size, scales)

    operator(f"{name}.vec")(by_scales)
    operator(name)(by_size)


def step(x: Tensor, size: int, d: int, scale: float | None) -> float:
    """How far apart places are, in f32 but for tensors of f64."""
    ratio = x.shape[d] / size if scale is None else 1 / scale
    return ratio if x.dtype == "f64" else float(np.float32(ratio))


def nearest_pixels(x: Tensor, size: int, d: int, apart: float, exact: bool) -> tuple[list[int], list[Fraction]]:
    """The pixel at each place of a dimension, or nearest to its centre, rounded as torch's loops on the CPU do."""
    at: Any = np.arange(size)
    if exact:
        centre = (at + 0.5) * apart - 0.5
        centre = centre if x.dtype == "f64" else centre.astype(np.float32).astype(np.float64)
        at = np.maximum(centre, 0) + 0.5
    else:
        at = at * apart
    pixels = np.minimum(np.floor(at.astype(np.float32)), x.shape[d] - 1)
    return [int(pixel) for pixel in pixels], slopes(x.shape[d], size, apart)


for _rank in (1, 2, 3):
    _enter_nearest(f"upsample_nearest{_rank}d", exact=False)
    _enter_nearest(f"_upsample_nearest_exact{_rank}d", exact=True)


@operator("upsample_bilinear2d.vec")
def bilinear(call: Call, x: Tensor, size: Sequence[int] | None, align_corners: bool, scales: Scales = None) -> Tensor:
    """Pixels interpolated between their neighbours."""
    sizes = call.shape[2:]
    ratios = [m / n if s is None else s for n, m, s in zip(x.shape[2:], sizes, scales or (None, None), strict=True)]
    if align_corners or all(n * ratio == m for n, m, ratio in zip(x.shape[2:], sizes, ratios, strict=True)):
        return nn.resize_bilinear(x, (call.shape[2], call.shape[3]), align_corners, call.name)
    return nn.resize(x, sizes, ratios, (2, 3), "linear", name=call.name)


@operator("upsample_bilinear2d")
def bilinear_sized(call: Call, x: Tensor, size: Sequence[int], align_corners: bool, *scales: float | None) -> Tensor:
    """Pixels interpolated between their neighbours."""
    return bilinear(call, x, size, align_corners, scales)


def _enter_pad(name: str, mode: str) -> None:
    """A border that mirrors the image, or repeats its outermost pixels; that of the last dimension comes first."""

    def convert(call: Call, x: Tensor, padding: Sequence[int]) -> Tensor:
        widths = [(0, 0)] * x.rank
        for n in range(len(padding) // 2):
            widths[x.rank - 1 - n] = (padding[2 * n], padding[2 * n + 1])
        return nn.pad(x, widths, mode=mode, name=call.name)

    operator(*(f"{name}{rank}d" for rank in (1, 2, 3)))(convert)


_enter_pad("reflection_pad", "reflect")
_enter_pad("replication_pad", "edge")
