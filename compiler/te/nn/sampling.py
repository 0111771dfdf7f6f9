"""`grid_sample`: an image read at places that another tensor holds."""

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
"""The coefficient of the cubic kernel, as torch and ONNX have it."""


def grid_sample(
    x: Tensor,
    grid: Tensor,
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
    name: str = "grid_sample",
) -> Tensor:
    """Y[n, c, at] = X[n, c] at the place G[n, at, :]: the nearest element, or those around it mixed.

    x is [N, C, and an image of two or three dimensions], the grid [N, the image of the result, coordinates], the last
    dimension first; -1 and 1 are the ends of the image, or with align_corners the middles of its outermost elements.
    Outside are zeros, the outermost elements, or the image mirrored. In f32 of narrower floats. Raises TeError.
    Source: Jaderberg et al., Spatial Transformer Networks, 2015; as torch's grid_sample.
    """
    wide, rank = _check(x, grid, mode, padding), x.rank - 2
    check_flag("grid_sample", "align_corners", align_corners)
    ends = [_Ends(n, padding, align_corners) for n in x.shape[2:]]
    places = []
    for d, end in enumerate(ends):

        def place(*i: Index, d: int = d, end: _Ends = end) -> Expr:
            place_in_image = end.place(e.cast(grid[(*i, rank - 1 - d)], wide))
            return place_in_image if mode == "cubic" else end.bounded(place_in_image)

        places.append(compute(grid.shape[:-1], place, f"{name}.place{d}"))
    taps: dict[str, range] = {"nearest": range(1), "linear": range(2), "cubic": range(-1, 3)}
    reads, shape = [], (*x.shape[:2], *grid.shape[1:-1])
    for number, offsets in enumerate(product(taps[mode], repeat=rank)):
        at = [_tap(places[d], ends[d], offset, mode, f"{name}.at{number}_{d}") for d, offset in enumerate(offsets)]
        reads.append((offsets, _read(x, at, shape, f"{name}.tap{number}")))

    def element(n: Index, c: Index, *i: Index) -> Expr:
        shares = [_shares(places[d][(n, *i)], mode) for d in range(rank)]
        total: Expr | None = None
        for offsets, read in reads:
            value = e.cast(read[(n, c, *i)], wide)
            for share, offset in zip(shares, offsets, strict=True):
                value = value if mode == "nearest" else value * share(offset)
            total = value if total is None else total + value
        assert total is not None
        return e.cast(total, x.dtype)

    return compute(shape, element, name, axes=("n", "c", *(f"i{d}" for d in range(rank))))


def _check(x: Tensor, grid: Tensor, mode: str, padding: str) -> str:
    """The dtype of the sums. Raises TeError."""
    operator = "grid_sample"
    if check_float(operator, x).rank not in (4, 5):
        raise TeError(f"{operator}: '{x.name}' has shape {x.shape}, expected [N, C, and an image of 2 or 3 dimensions]")
    check_float(operator, check_rank(operator, grid, x.rank, "N, the image of the result, coordinates"))
    check_equal(operator, f"the batches of '{x.name}' and '{grid.name}'", x.shape[0], grid.shape[0])
    check_equal(operator, "the image's dimensions and the coordinates", x.rank - 2, grid.shape[-1])
    for what, given, there in (("mode", mode, MODES), ("padding", padding, PADDINGS)):
        if not isinstance(given, str) or given not in there:
            raise TeError(f"{operator}: unknown {what} {given!r} (there are {', '.join(there)})")
    if mode == "cubic" and x.rank != 4:
        raise TeError(f"{operator}: cubic is of images of two dimensions, '{x.name}' has shape {x.shape}")
    return accumulator(x.dtype)


class _Ends:
    """The ends of a dimension, and the treatment of coordinates beyond."""

    def __init__(self, extent: int, padding: str, align: bool) -> None:
        self.extent, self.padding, self.align = extent, padding, align

    def place(self, at: Expr) -> Expr:
        """The place of a coordinate, which is -1 at one end and 1 at the other."""
        if self.align:
            return (at + 1.0) * ((self.extent - 1) / 2)
        return ((at + 1.0) * float(self.extent) - 1.0) * 0.5

    def bounded(self, at: Expr) -> Expr:
        """A place within the image, unless there are zeros outside."""
        if self.padding == "zeros":
            return at
        if self.padding == "reflection":
            at = self._mirrored(at)
        return e.minimum(e.maximum(at, 0.0), float(self.extent - 1))

    def _mirrored(self, at: Expr) -> Expr:
        low, span = (0.0, self.extent - 1) if self.align else (-0.5, self.extent)
        if span == 0:
            return at * 0.0
        gap = e.abs(at - low)
        turns = e.floor(gap * (1.0 / span))
        beyond = gap - turns * float(span)
        odd = e.not_equal(turns, e.floor(turns * 0.5) * 2.0)
        return e.select(odd, float(span) - beyond, beyond) + low


def _tap(places: Tensor, ends: _Ends, offset: int, mode: str, name: str) -> Tensor:
    """The index of one element around each place, along one dimension."""

    def element(*i: Index) -> Expr:
        if mode == "nearest":
            return e.cast(e.round(places[i]), "i64")
        low = e.floor(places[i]) + float(offset)
        return e.cast(ends.bounded(low) if mode == "cubic" else low, "i64")

    return compute(places.shape, element, name)


def _read(x: Tensor, at: Sequence[Tensor], shape: Sequence[int], name: str) -> Tensor:
    """The elements at indices, zero outside."""
    return gather(shape, lambda n, c, *i: x.at(n, c, *(index[(n, *i)] for index in at)), name)


def _shares(place: Expr, mode: str) -> Callable[[int], Expr]:
    """The share of the element so many after the one below a place."""
    part = place - e.floor(place)

    def cubic(offset: int) -> Expr:
        gap = e.abs(part - float(offset))
        if offset in (0, 1):
            return ((gap * (CUBIC + 2) - (CUBIC + 3)) * gap) * gap + 1.0
        return ((gap * CUBIC - 5 * CUBIC) * gap + 8 * CUBIC) * gap - 4 * CUBIC

    def linear(offset: int) -> Expr:
        return part if offset else 1.0 - part

    return cubic if mode == "cubic" else linear
