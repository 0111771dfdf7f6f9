"""Pooling over windows of images of one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.combiner import combiner, reduce
from compiler.te.compute import compute
from compiler.te.expr import Expr, Number, Reduce, as_expr
from compiler.te.index import Index
from compiler.te.nn import formulas
from compiler.te.nn.common import (
    Sizes,
    accumulator,
    check_flag,
    check_float,
    check_number,
    check_rank,
    check_tensor,
    several,
)
from compiler.te.nn.reduction import mean
from compiler.te.nn.selection import LAST, best, worst
from compiler.te.nn.window import SPATIAL, Window, image_rank, of_rank, row_major, window
from compiler.te.tensor import Tensor


def _window(
    operator: str, x: Tensor, kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil: bool
) -> Window:
    sizes = several(operator, "kernel", kernel, 1, image_rank(operator, x))
    check_flag(operator, "ceil_mode", ceil)
    return window(operator, sizes, kernel if stride is None else stride, padding, dilation, ceil)


def _pooled(
    x: Tensor,
    over: Window,
    combine: e.Reduction,
    outside: Number,
    dtype: str,
    name: str,
    value: Callable[[Expr], Expr] = lambda read: read,
) -> Tensor:
    """Values of the elements of each window combined, in a dtype."""
    shape, source = (*x.shape[:2], *over.positions(x.shape[2:])), over.source(x, outside)

    def element(n: Index, c: Index, *at: Index) -> Reduce:
        return combine(value(e.cast(source[(n, c, *over.places(at))], dtype)), axis=over.taps)

    return compute(shape, element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))


def _counted(x: Tensor, over: Window, include_pad: bool, dtype: str, name: str) -> Tensor:
    """How many elements of each window lie inside the image, or inside its padding."""
    image = x.shape[2:]
    before, after = (over.before, over.after) if include_pad else ((0,) * len(image),) * 2

    def element(*at: Index) -> Reduce:
        sides = zip(over.places(at), image, before, after, strict=True)
        holds = [h for p, n, low, high in sides for h in (p >= -low, p < n + high)]
        return e.sum(e.cast(as_expr(e.all_of(*holds)), dtype), axis=over.taps)

    return compute(over.positions(image), element, name, axes=SPATIAL[len(image)])


def _max_pool(
    rank: int,
    x: Tensor,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    name: str = "max_pool{rank}d",
) -> Tensor:
    """Y[n, c, at] = max over the window of X[n, c, at*stride + tap - before]; what is outside X never counts.

    x is [N, C, {HW}]; kernel, stride (the kernel where it is
    not given), dilation and padding are integers or one for each dimension, padding also before and after. With
    ceil_mode a last window may reach beyond the padding, if it does not begin there. Raises TeError.
    """
    operator = f"max_pool{rank}d"
    check_rank(operator, x, rank + 2, f"N, C, and {rank} of the image")
    over = _window(operator, x, kernel, stride, padding, dilation, ceil_mode)
    return _pooled(x, over, e.max, worst(x.dtype, lowest=True), x.dtype, name)


def _avg_pool(
    rank: int,
    x: Tensor,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    count_include_pad: bool = True,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    divisor: int | None = None,
    name: str = "avg_pool{rank}d",
) -> Tensor:
    """Y[n, c, at] = the mean over the window of X[n, c, at*stride + tap - before]; outside X is 0 or uncounted.

    x is [N, C, {HW}], of a float dtype; the rest as
    max_pool{rank}d. What a last window has beyond the padding does not count; sums are divided by `divisor`
    where it is given. They are formed in f32 of narrower floats. Raises TeError.
    """
    operator = f"avg_pool{rank}d"
    check_float(operator, check_rank(operator, x, rank + 2, f"N, C, and {rank} of the image"))
    check_flag(operator, "count_include_pad", count_include_pad)
    over, wide = _window(operator, x, kernel, stride, padding, dilation, ceil_mode), accumulator(x.dtype)
    count = math.prod(over.sizes) if divisor is None else several(operator, "divisor", divisor, 1, 1)[0]
    total = _pooled(x, over, e.sum, 0, wide, f"{name}.sum")
    counts = over.overshoots(x.shape[2:]) if count_include_pad else over.is_padded
    divisors = None
    if counts and divisor is None:
        divisors = _counted(x, over, count_include_pad, wide, f"{name}.count")

    def element(*i: Index) -> Expr:
        return e.cast(total[i] * (1.0 / count) if divisors is None else total[i] / divisors[i[2:]], x.dtype)

    return compute(total.shape, element, name, axes=("n", "c", *SPATIAL[rank]))


max_pool1d, max_pool2d, max_pool3d = (of_rank(_max_pool, rank) for rank in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (of_rank(_avg_pool, rank) for rank in (1, 2, 3))


def max_pool_with_places(
    x: Tensor,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    name: str = "max_pool",
) -> tuple[Tensor, Tensor]:
    """Y, P = the maximum of each window, and its place in the image of X[n, c] in row-major order, an i64.

    Of equal elements the first, and NaN before all others; a window without an element of X has place 2^63 - 1.
    The rest as max_pool2d, for images of one to three dimensions. Raises TeError.
    Elsewhere: torch max_pool2d with return_indices.
    """
    over = _window("max_pool_with_places", x, kernel, stride, padding, dilation, ceil_mode)
    image, source = x.shape[2:], over.source(x, worst(x.dtype, lowest=True))
    pick = combiner(best(lambda a, b: a > b, x.dtype), (worst(x.dtype, lowest=True), LAST))

    def element(n: Index, c: Index, *at: Index) -> tuple[Reduce, ...]:
        places = over.places(at)
        position = e.cast(row_major(places, image), "i64")
        if over.is_padded:
            inside = e.all_of(*(h for p, size in zip(places, image, strict=True) for h in (p >= 0, p < size)))
            position = e.select(inside, position, LAST)
        return reduce(pick, (source[(n, c, *places)], position), axis=over.taps)

    shape = (*x.shape[:2], *over.positions(image))
    values, places = compute(shape, element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))
    return values, places


def lp_pool(
    x: Tensor,
    kernel: Sizes,
    p: float = 2,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    name: str = "lp_pool",
) -> Tensor:
    """Y[n, c, at] = (the sum over the window of |X[n, c, at*stride + tap - before]|^p)^(1/p); outside X is 0.

    p is above 0; x is of a float dtype; the rest as max_pool2d, for images of one to three dimensions. Raises TeError.
    Elsewhere: ONNX LpPool; torch lp_pool2d, for elements that are not negative.
    """
    power = check_number("lp_pool", "p", p)
    if power <= 0:
        raise TeError(f"lp_pool: p is {p}, expected a number above 0")
    over = _window("lp_pool", check_float("lp_pool", x), kernel, stride, padding, dilation, ceil_mode)
    wide = accumulator(x.dtype)
    total = _pooled(x, over, e.sum, 0, wide, f"{name}.sum", lambda read: formulas.power(e.abs(read), power))

    def root(*i: Index) -> Expr:
        return e.cast(formulas.root(total[i], power), x.dtype)

    return compute(total.shape, root, name, axes=("n", "c", *SPATIAL[x.rank - 2]))


def global_avg_pool(x: Tensor, name: str = "global_avg_pool") -> Tensor:
    """Y[n, c, 0...] = the mean of X[n, c, ...] over the image, its dimensions kept with extent 1. Raises TeError."""
    if check_tensor("global_avg_pool", x).rank < 3:
        raise TeError(f"global_avg_pool: '{x.name}' has shape {x.shape}, expected [N, C, ...]")
    return mean(x, tuple(range(2, x.rank)), keepdims=True, name=name)
