"""Pooling over windows that a size of the result gives: adaptive pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.te import scalar as e
from compiler.te.combiner import combiner, reduce
from compiler.te.compute import compute
from compiler.te.expr import Expr, Number, Reduce
from compiler.te.index import Condition, Index
from compiler.te.nn.common import Sizes, accumulator, check_float, several
from compiler.te.nn.selection import LAST, best, worst
from compiler.te.nn.window import SPATIAL, TAPS, image_rank, row_major
from compiler.te.tensor import Tensor, reduce_axis


def adaptive_avg_pool(x: Tensor, size: Sizes, name: str = "adaptive_avg_pool") -> Tensor:
    """Y[n, c, at] = the mean of X[n, c, at*X // Y to (at + 1)*X // Y, rounded up], X and Y being extents.

    x is [N, C, and an image of one to three dimensions] of a float dtype, size the extents of the result's image.
    Raises TeError. Elsewhere: torch adaptive_avg_pool2d.
    """
    wide = accumulator(check_float("adaptive_avg_pool", x).dtype)
    sizes = _sizes("adaptive_avg_pool", x, size)
    total = _pooled(x, sizes, e.sum, 0, wide, f"{name}.sum")
    even = all(n % size == 0 for n, size in zip(x.shape[2:], sizes, strict=True))
    share = 1.0 / math.prod(n // size for n, size in zip(x.shape[2:], sizes, strict=True)) if even else 1.0

    def element(*i: Index) -> Expr:
        if even:
            return e.cast(total[i] * share, x.dtype)
        count: Expr | None = None
        for at, n, size in zip(i[2:], x.shape[2:], sizes, strict=True):
            length = e.cast(_end(at, n, size) - _start(at, n, size), wide)
            count = length if count is None else count * length
        return e.cast(total[i] / e.cast(count, wide) if count is not None else total[i], x.dtype)

    return compute(total.shape, element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))


def adaptive_max_pool(x: Tensor, size: Sizes, name: str = "adaptive_max_pool") -> Tensor:
    """Y[n, c, at] = the maximum of X[n, c, at*X // Y to (at + 1)*X // Y, rounded up], X and Y being extents.

    As adaptive_avg_pool, of any dtype of numbers. Raises TeError. Elsewhere: torch adaptive_max_pool2d.
    """
    sizes = _sizes("adaptive_max_pool", x, size)
    return _pooled(x, sizes, e.max, worst(x.dtype, lowest=True), x.dtype, name)


def adaptive_max_pool_with_places(x: Tensor, size: Sizes, name: str = "adaptive_max_pool") -> tuple[Tensor, Tensor]:
    """Y, P = the maximum of each window, and its place in the image of X[n, c] in row-major order, an i64.

    The windows are adaptive_max_pool's; of equal elements the first, and NaN before all others. Raises TeError.
    """
    sizes, image = _sizes("adaptive_max_pool_with_places", x, size), x.shape[2:]
    windows = _Windows(x, sizes)
    outside = worst(x.dtype, lowest=True)
    pick = combiner(best(lambda a, b: a > b, x.dtype), (outside, LAST))

    def element(n: Index, c: Index, *at: Index) -> tuple[Reduce, ...]:
        places, holds = windows.met(at)
        read, position = x[(n, c, *places)], e.cast(row_major(places, image), "i64")
        if holds:
            inside = e.all_of(*holds)
            return reduce(pick, (e.select(inside, read, outside), e.select(inside, position, LAST)), axis=windows.taps)
        return reduce(pick, (read, position), axis=windows.taps)

    values, places = compute((*x.shape[:2], *sizes), element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))
    return values, places


def _sizes(operator: str, x: Tensor, size: Sizes) -> tuple[int, ...]:
    return several(operator, "size", size, 1, image_rank(operator, x))


def _start(at: Index, extent: int, size: int) -> Index:
    """Where the window of an index begins."""
    return at * (extent // size) if extent % size == 0 else at * extent // size


def _end(at: Index, extent: int, size: int) -> Index:
    """Where the window of an index ends."""
    return ((at + 1) * extent + (size - 1)) // size


class _Windows:
    """The windows of a result's places: their axes, and what each reads."""

    def __init__(self, x: Tensor, sizes: Sequence[int]) -> None:
        self.image, self.sizes = x.shape[2:], sizes
        longest = [_longest(n, size) for n, size in zip(self.image, sizes, strict=True)]
        self.taps = tuple(reduce_axis(n, label) for n, label in zip(longest, TAPS[x.rank - 2], strict=True))

    def met(self, at: Sequence[Index]) -> tuple[list[Index], list[Condition]]:
        """The places that a window reads, and where they are within it."""
        places: list[Index] = []
        holds: list[Condition] = []
        for i, tap, extent, size in zip(at, self.taps, self.image, self.sizes, strict=True):
            places.append(_start(i, extent, size) + tap)
            holds += [places[-1] < _end(i, extent, size)] if extent % size else []
        return places, holds


def _pooled(x: Tensor, sizes: Sequence[int], combine: e.Reduction, outside: Number, dtype: str, name: str) -> Tensor:
    """The elements of each window combined, in a dtype."""
    windows = _Windows(x, sizes)

    def element(n: Index, c: Index, *at: Index) -> Reduce:
        places, holds = windows.met(at)
        read = x[(n, c, *places)]
        value = e.select(e.all_of(*holds), read, outside) if holds else read
        return combine(e.cast(value, dtype), axis=windows.taps)

    return compute((*x.shape[:2], *sizes), element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))


def _longest(extent: int, size: int) -> int:
    """The length of the longest window: that which begins at the greatest fraction of an element."""
    return -(-(extent + size - math.gcd(extent, size)) // size)
