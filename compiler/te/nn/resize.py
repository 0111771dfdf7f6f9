"""Nearest and bilinear resize of images."""

from __future__ import annotations

from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index, IndexLike
from compiler.te.nn.common import Pair, accumulator, astype, check_flag, check_float, check_rank, per_dim
from compiler.te.tensor import Tensor
from compiler.types.dtypes import is_float


def resize_nearest(x: Tensor, size: int | Pair, name: str = "resize_nearest") -> Tensor:
    """Y[n, c, h, w] = X[n, c, h * H // OH, w * W // OW], for a size of (OH, OW).

    x is [N, C, H, W] of any dtype, the result [N, C, OH, OW]. Raises TeError for other arguments. Elsewhere: torch
    interpolate, nearest.
    """
    check_rank("resize_nearest", x, 4, "N, C, H, W")
    oh, ow = per_dim("resize_nearest", "size", size, 1, 2)
    batch, channels, height, width = x.shape

    def element(n: Index, c: Index, h: Index, w: Index) -> Expr:
        return x[n, c, h * height // oh, w * width // ow]

    return compute((batch, channels, oh, ow), element, name)


def resize_bilinear(x: Tensor, size: int | Pair, align_corners: bool = False, name: str = "resize_bilinear") -> Tensor:
    """Y[.., h, w] = X at row (h + 1/2) * H / OH - 1/2, and the column likewise, by bilinear interpolation.

    Coordinates are clamped to the image. With align_corners the row is h * (H - 1) / (OH - 1), 0 for OH = 1. x is [N,
    C, H, W] of a float dtype, the result [N, C, OH, OW] for a size of (OH, OW); rows are interpolated first, in f32 for
    narrower floats. Raises TeError for other arguments. Elsewhere: torch interpolate, bilinear.
    """
    check_float("resize_bilinear", check_rank("resize_bilinear", x, 4, "N, C, H, W"))
    oh, ow = per_dim("resize_bilinear", "size", size, 1, 2)
    check_flag("resize_bilinear", "align_corners", align_corners)
    rows = _linear(x, 2, oh, align_corners, f"{name}.rows")
    is_wide = x.dtype == accumulator(x.dtype)
    resized = _linear(rows, 3, ow, align_corners, name if is_wide else f"{name}.wide")
    return astype(resized, x.dtype, name)


def _linear(x: Tensor, dim: int, size: int, align_corners: bool, name: str) -> Tensor:
    """Interpolate dimension `dim` of x linearly to `size` elements, in the accumulator's dtype; with `align_corners`
    the outermost elements coincide."""
    extent, dtype = x.shape[dim], accumulator(x.dtype)

    def element(*i: Index) -> Expr:
        scaled, step = _coordinate(i[dim], extent, size, align_corners)  # the coordinate is scaled / step
        low = scaled // step
        fraction = e.cast(scaled % step, dtype) * (1.0 / step)

        def read(index: Index) -> Expr:
            return e.cast(_clamped_read(x, i, dim, index), dtype)

        return read(low) * (1.0 - fraction) + read(low + 1) * fraction

    shape = [size if d == dim else n for d, n in enumerate(x.shape)]
    return compute(shape, element, name, axes=("n", "c", "h", "w"))


def _coordinate(index: Index, extent: int, size: int, align_corners: bool) -> tuple[Index, int]:
    if not align_corners:
        return (index * 2 + 1) * extent - size, 2 * size
    return (index * (extent - 1), size - 1) if size > 1 else (index * 0, 1)


def _clamped_read(x: Tensor, i: tuple[Index, ...], dim: int, index: Index) -> Expr:
    """Read x at i with `index`, clamped to the bounds, along dimension `dim`."""

    def read(position: IndexLike) -> Expr:
        return x[(*i[:dim], position, *i[dim + 1 :])]

    last = x.shape[dim] - 1
    zero = 0.0 if is_float(x.dtype) else 0
    inside = e.select(e.all_of(index >= 0, index <= last), read(index), zero)
    return e.select(index < 0, read(0), e.select(index > last, read(last), inside))
