"""Adaptive pooling: the windows follow from the sizes of input and result."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.te import scalar as e
from compiler.te.combiner import combiner, reduce
from compiler.te.compute import compute
from compiler.te.expr import Expr, Number, Reduce
from compiler.te.index import Condition, Index
from compiler.te.nn.common import Sizes, accumulator, check_float, per_dim
from compiler.te.nn.selection import LAST_INDEX, extremum_combine, extremum_identity
from compiler.te.nn.window import SPATIAL, TAPS, image_rank, row_major
from compiler.te.tensor import Tensor, reduce_axis


def adaptive_avg_pool(x: Tensor, size: Sizes, name: str = "adaptive_avg_pool") -> Tensor:
    """Y[n, c, i] = the mean of X[n, c, floor(i*H / OH) : ceil((i + 1)*H / OH)] in each dimension.

    x is [N, C, H...] of a float dtype with one to three image dimensions H; `size` is the result's OH. Raises TeError
    for other arguments. Elsewhere: torch adaptive_avg_pool2d.
    """
    acc_dtype = accumulator(check_float("adaptive_avg_pool", x).dtype)
    sizes = _sizes("adaptive_avg_pool", x, size)
    total = _pooled(x, sizes, e.sum, 0, acc_dtype, f"{name}.sum")
    is_even = all(n % size == 0 for n, size in zip(x.shape[2:], sizes, strict=True))
    inverse_count = 1.0 / math.prod(n // size for n, size in zip(x.shape[2:], sizes, strict=True)) if is_even else 1.0

    def element(*i: Index) -> Expr:
        if is_even:
            return e.cast(total[i] * inverse_count, x.dtype)
        count: Expr | None = None
        for index, n, size in zip(i[2:], x.shape[2:], sizes, strict=True):
            length = e.cast(_end(index, n, size) - _start(index, n, size), acc_dtype)
            count = length if count is None else count * length
        return e.cast(total[i] / e.cast(count, acc_dtype) if count is not None else total[i], x.dtype)

    return compute(total.shape, element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))


def adaptive_max_pool(x: Tensor, size: Sizes, name: str = "adaptive_max_pool") -> Tensor:
    """Y[n, c, i] = the maximum of X[n, c, floor(i*H / OH) : ceil((i + 1)*H / OH)] in each dimension.

    x is [N, C, H...] of any dtype of numbers with one to three image dimensions H; `size` is the result's OH. Raises
    TeError for other arguments. Elsewhere: torch adaptive_max_pool2d.
    """
    sizes = _sizes("adaptive_max_pool", x, size)
    return _pooled(x, sizes, e.max, extremum_identity(x.dtype, lowest=True), x.dtype, name)


def adaptive_max_pool_with_places(x: Tensor, size: Sizes, name: str = "adaptive_max_pool") -> tuple[Tensor, Tensor]:
    """Y, P = the maximum of each window of adaptive_max_pool, and its row-major index in the image, an i64.

    Ties go to the first element; NaN counts as greatest. Raises TeError for other arguments.
    """
    sizes, image = _sizes("adaptive_max_pool_with_places", x, size), x.shape[2:]
    windows = _Windows(x, sizes)
    outside = extremum_identity(x.dtype, lowest=True)
    pick = combiner(extremum_combine(lambda a, b: a > b, x.dtype), (outside, LAST_INDEX))

    def element(n: Index, c: Index, *output: Index) -> tuple[Reduce, ...]:
        places, conditions = windows.elements(output)
        read, position = x[(n, c, *places)], e.cast(row_major(places, image), "i64")
        if conditions:
            inside = e.all_of(*conditions)
            return reduce(
                pick, (e.select(inside, read, outside), e.select(inside, position, LAST_INDEX)), axis=windows.taps
            )
        return reduce(pick, (read, position), axis=windows.taps)

    values, places = compute((*x.shape[:2], *sizes), element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))
    return values, places


def _sizes(operator: str, x: Tensor, size: Sizes) -> tuple[int, ...]:
    return per_dim(operator, "size", size, 1, image_rank(operator, x))


def _start(i: Index, extent: int, size: int) -> Index:
    """Return the first index of the window of result `i` in one dimension: i = 1, extent 10, size 4 -> 2."""
    return i * (extent // size) if extent % size == 0 else i * extent // size


def _end(i: Index, extent: int, size: int) -> Index:
    """Return the exclusive end of the window of result `i` in one dimension: i = 1, extent 10, size 4 -> 5."""
    return ((i + 1) * extent + (size - 1)) // size


class _Windows:
    """The windows of an adaptive pooling of x to the extents `sizes`; the axes `taps` run over the longest window."""

    def __init__(self, x: Tensor, sizes: Sequence[int]) -> None:
        self.image, self.sizes = x.shape[2:], sizes
        longest = [_longest_window(n, size) for n, size in zip(self.image, sizes, strict=True)]
        self.taps = tuple(reduce_axis(n, label) for n, label in zip(longest, TAPS[x.rank - 2], strict=True))

    def elements(self, output: Sequence[Index]) -> tuple[list[Index], list[Condition]]:
        """Return the input index of a window's taps for an output index, and the conditions that a tap is inside."""
        indices: list[Index] = []
        conditions: list[Condition] = []
        for i, tap, extent, size in zip(output, self.taps, self.image, self.sizes, strict=True):
            indices.append(_start(i, extent, size) + tap)
            conditions += [indices[-1] < _end(i, extent, size)] if extent % size else []
        return indices, conditions


def _pooled(x: Tensor, sizes: Sequence[int], combine: e.Reduction, outside: Number, dtype: str, name: str) -> Tensor:
    """Reduce each window in a dtype, to a result of image extents `sizes`; taps outside the window are `outside`."""
    windows = _Windows(x, sizes)

    def element(n: Index, c: Index, *output: Index) -> Reduce:
        indices, conditions = windows.elements(output)
        read = x[(n, c, *indices)]
        value = e.select(e.all_of(*conditions), read, outside) if conditions else read
        return combine(e.cast(value, dtype), axis=windows.taps)

    return compute((*x.shape[:2], *sizes), element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))


def _longest_window(extent: int, size: int) -> int:
    """Return the length of the longest window in one dimension: extent 10, size 4 -> 3."""
    return -(-(extent + size - math.gcd(extent, size)) // size)
