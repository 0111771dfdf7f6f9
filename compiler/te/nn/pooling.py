"""Pooling over windows of images of one to three dimensions."""

from __future__ import annotations

import math
from typing import Protocol

from compiler.elements import is_float, limits
from compiler.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Number, Reduce, as_expr
from compiler.te.index import Index
from compiler.te.nn.common import Sizes, accumulator, check_flag, check_float, check_rank, check_tensor, named, several
from compiler.te.nn.reduction import mean
from compiler.te.nn.window import SPATIAL, Window, listed, window
from compiler.te.tensor import Tensor


class MaxPool(Protocol):
    """The maxima over the windows of an image."""

    def __call__(
        self, x: Tensor, kernel: Sizes, stride: Sizes | None = None, padding: Sizes = 0, name: str = ...
    ) -> Tensor: ...


class AvgPool(Protocol):
    """The means over the windows of an image."""

    def __call__(
        self,
        x: Tensor,
        kernel: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        count_include_pad: bool = True,
        name: str = ...,
    ) -> Tensor: ...


def _window(operator: str, x: Tensor, kernel: Sizes, stride: Sizes | None, padding: Sizes, rank: int) -> Window:
    check_rank(operator, x, rank + 2, f"N, C, and {rank} of the image")
    sizes = several(operator, "kernel", kernel, 1, rank)
    return window(operator, sizes, kernel if stride is None else stride, padding)


def _pooled(x: Tensor, over: Window, combine: e.Reduction, outside: Number, dtype: str, name: str) -> Tensor:
    """The values of each window combined, in a dtype."""
    shape, source = (*x.shape[:2], *over.positions(x.shape[2:])), over.source(x, outside)

    def element(n: Index, c: Index, *at: Index) -> Reduce:
        return combine(e.cast(source[(n, c, *over.places(at))], dtype), axis=over.taps)

    return compute(shape, element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))


def _counted(x: Tensor, over: Window, dtype: str, name: str) -> Tensor:
    """How many elements of each window lie inside the image."""
    image = x.shape[2:]

    def element(*at: Index) -> Reduce:
        holds = [h for p, n in zip(over.places(at), image, strict=True) for h in (p >= 0, p < n)]
        return e.sum(e.cast(as_expr(e.all_of(*holds)), dtype), axis=over.taps)

    return compute(over.positions(image), element, name, axes=SPATIAL[len(image)])


def _max_pool(rank: int) -> MaxPool:
    operator = f"max_pool{rank}d"

    @named(
        operator,
        "Y[n, c, at] = max over the window of X[n, c, at*stride + tap - before]; what is outside X never counts.\n\n"
        f"x is [N, C, {listed(SPATIAL[rank])}]; kernel, stride (the kernel where it is\n"
        "not given) and padding are integers or one for each dimension, padding also before and after. Raises TeError.",
    )
    def build(
        x: Tensor, kernel: Sizes, stride: Sizes | None = None, padding: Sizes = 0, name: str = operator
    ) -> Tensor:
        over = _window(operator, x, kernel, stride, padding, rank)
        least = -math.inf if is_float(x.dtype) else limits(x.dtype)[0]
        return _pooled(x, over, e.max, least, x.dtype, name)

    return build


def _avg_pool(rank: int) -> AvgPool:
    operator = f"avg_pool{rank}d"

    @named(
        operator,
        "Y[n, c, at] = the mean over the window of X[n, c, at*stride + tap - before]; outside X is 0 or uncounted.\n\n"
        f"x is [N, C, {listed(SPATIAL[rank])}], of a float dtype; the rest as\n"
        f"max_pool{rank}d. Sums are formed in f32 of narrower floats. Raises TeError.",
    )
    def build(
        x: Tensor,
        kernel: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        count_include_pad: bool = True,
        name: str = operator,
    ) -> Tensor:
        check_float(operator, x)
        check_flag(operator, "count_include_pad", count_include_pad)
        over, wide = _window(operator, x, kernel, stride, padding, rank), accumulator(x.dtype)
        total = _pooled(x, over, e.sum, 0, wide, f"{name}.sum")
        share = 1.0 / math.prod(over.sizes)
        everywhere = count_include_pad or not over.is_padded
        ones = None if everywhere else _counted(x, over, wide, f"{name}.count")

        def element(*i: Index) -> Expr:
            return e.cast(total[i] * share if ones is None else total[i] / ones[i[2:]], x.dtype)

        return compute(total.shape, element, name, axes=("n", "c", *SPATIAL[rank]))

    return build


max_pool1d, max_pool2d, max_pool3d = (_max_pool(rank) for rank in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(rank) for rank in (1, 2, 3))


def global_avg_pool(x: Tensor, name: str = "global_avg_pool") -> Tensor:
    """Y[n, c, 0...] = the mean of X[n, c, ...] over the image, its dimensions kept with extent 1. Raises TeError."""
    if check_tensor("global_avg_pool", x).rank < 3:
        raise TeError(f"global_avg_pool: '{x.name}' has shape {x.shape}, expected [N, C, ...]")
    return mean(x, tuple(range(2, x.rank)), keepdims=True, name=name)
