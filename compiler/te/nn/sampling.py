"""`grid_sample`: interpolation of an image at data-dependent coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.gather import gather
from compiler.te.index import Index
from compiler.te.nn.common import accumulator, check_equal, check_flag, check_float, check_rank
from compiler.te.tensor import Tensor

MODES = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")
CUBIC = -0.75
"""The coefficient of the cubic kernel in torch and ONNX."""


def grid_sample(
    x: Tensor,
    grid: Tensor,
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
    name: str = "grid_sample",
) -> Tensor:
    """Y[n, c, i...] = X[n, c] at the coordinates G[n, i..., :], by nearest, linear or cubic interpolation.

    x is [N, C, and an image of two or three dimensions, for cubic of two], the grid [N, the image of the result,
    coordinates], the last dimension first; -1 and 1 are the ends of the image, or with align_corners the centres of its
    outermost elements. The padding is zeros, border or reflection. Computed in f32 for narrower floats. Raises TeError
    for other arguments. Source: Jaderberg et al., Spatial Transformer Networks, 2015; as torch's grid_sample.
    """
    acc_dtype, rank = _check(x, grid, mode, padding), x.rank - 2
    check_flag("grid_sample", "align_corners", align_corners)
    borders = [_Border(n, padding, align_corners) for n in x.shape[2:]]
    coordinates = []
    for d, border in enumerate(borders):

        def coordinate(*i: Index, d: int = d, border: _Border = border) -> Expr:
            unbounded = border.coordinate(e.cast(grid[(*i, rank - 1 - d)], acc_dtype))
            return unbounded if mode == "cubic" else border.bounded(unbounded)

        coordinates.append(compute(grid.shape[:-1], coordinate, f"{name}.place{d}"))
    taps: dict[str, range] = {"nearest": range(1), "linear": range(2), "cubic": range(-1, 3)}
    reads, shape = [], (*x.shape[:2], *grid.shape[1:-1])
    for number, offsets in enumerate(product(taps[mode], repeat=rank)):
        indices = [
            _tap(coordinates[d], borders[d], offset, mode, f"{name}.at{number}_{d}") for d, offset in enumerate(offsets)
        ]
        reads.append((offsets, _read(x, indices, shape, f"{name}.tap{number}")))

    def element(n: Index, c: Index, *i: Index) -> Expr:
        weights = [_weights(coordinates[d][(n, *i)], mode) for d in range(rank)]
        total: Expr | None = None
        for offsets, read in reads:
            value = e.cast(read[(n, c, *i)], acc_dtype)
            for weight, offset in zip(weights, offsets, strict=True):
                value = value if mode == "nearest" else value * weight(offset)
            total = value if total is None else total + value
        assert total is not None
        return e.cast(total, x.dtype)

    return compute(shape, element, name, axes=("n", "c", *(f"i{d}" for d in range(rank))))


def _check(x: Tensor, grid: Tensor, mode: str, padding: str) -> str:
    """Raise TeError unless image, grid and options are valid; return the dtype of the sums."""
    operator = "grid_sample"
    if check_float(operator, x).rank not in (4, 5):
        raise TeError(f"{operator}: '{x.name}' has shape {x.shape}, expected [N, C, and an image of 2 or 3 dimensions]")
    check_float(operator, check_rank(operator, grid, x.rank, "N, the image of the result, coordinates"))
    check_equal(operator, f"the batches of '{x.name}' and '{grid.name}'", x.shape[0], grid.shape[0])
    check_equal(operator, "the image's dimensions and the coordinates", x.rank - 2, grid.shape[-1])
    for what, value, choices in (("mode", mode, MODES), ("padding", padding, PADDINGS)):
        if not isinstance(value, str) or value not in choices:
            raise TeError(f"{operator}: unknown {what} {value!r} (there are {', '.join(choices)})")
    if mode == "cubic" and x.rank != 4:
        raise TeError(f"{operator}: cubic is of images of two dimensions, '{x.name}' has shape {x.shape}")
    return accumulator(x.dtype)


class _Border:
    """The extent of a dimension, the padding mode for coordinates outside it, and `align`, for align_corners."""

    def __init__(self, extent: int, padding: str, align: bool) -> None:
        self.extent, self.padding, self.align = extent, padding, align

    def coordinate(self, coordinate: Expr) -> Expr:
        """Map a grid coordinate in [-1, 1] to one in elements: extent 4, -1 -> -0.5, or with `align` -> 0."""
        if self.align:
            return (coordinate + 1.0) * ((self.extent - 1) / 2)
        return ((coordinate + 1.0) * float(self.extent) - 1.0) * 0.5

    def bounded(self, coordinate: Expr) -> Expr:
        """Clamp (border) or reflect a coordinate into the image; return it unchanged for padding with zeros."""
        if self.padding == "zeros":
            return coordinate
        if self.padding == "reflection":
            coordinate = self._mirrored(coordinate)
        return e.minimum(e.maximum(coordinate, 0.0), float(self.extent - 1))

    def _mirrored(self, coordinate: Expr) -> Expr:
        low, span = (0.0, self.extent - 1) if self.align else (-0.5, self.extent)
        if span == 0:
            return coordinate * 0.0
        distance = e.abs(coordinate - low)
        periods = e.floor(distance * (1.0 / span))
        remainder = distance - periods * float(span)
        is_reflected = e.not_equal(periods, e.floor(periods * 0.5) * 2.0)
        return e.select(is_reflected, float(span) - remainder, remainder) + low


def _tap(coordinates: Tensor, border: _Border, offset: int, mode: str, name: str) -> Tensor:
    """Compute the i64 index of a tap along one dimension: the floor of each coordinate plus an offset, bounded for
    cubic mode; for nearest mode the rounded coordinate."""

    def element(*i: Index) -> Expr:
        if mode == "nearest":
            return e.cast(e.round(coordinates[i]), "i64")
        low = e.floor(coordinates[i]) + float(offset)
        return e.cast(border.bounded(low) if mode == "cubic" else low, "i64")

    return compute(coordinates.shape, element, name)


def _read(x: Tensor, indices: Sequence[Tensor], shape: Sequence[int], name: str) -> Tensor:
    """Read images at data-dependent indices, a tensor [N, ...] for each image dimension; 0 out of bounds."""
    return gather(shape, lambda n, c, *i: x.at(n, c, *(index[(n, *i)] for index in indices)), name)


def _weights(coordinate: Expr, mode: str) -> Callable[[int], Expr]:
    """Return the weight of a coordinate's tap in linear or cubic mode, as a function of its offset from the floor."""
    fraction = coordinate - e.floor(coordinate)

    def cubic(offset: int) -> Expr:
        distance = e.abs(fraction - float(offset))
        if offset in (0, 1):
            return ((distance * (CUBIC + 2) - (CUBIC + 3)) * distance) * distance + 1.0
        return ((distance * CUBIC - 5 * CUBIC) * distance + 8 * CUBIC) * distance - 4 * CUBIC

    def linear(offset: int) -> Expr:
        return fraction if offset else 1.0 - fraction

    return cubic if mode == "cubic" else linear
