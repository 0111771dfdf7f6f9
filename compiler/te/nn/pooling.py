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
    per_dim,
)
from compiler.te.nn.reduction import mean
from compiler.te.nn.selection import LAST_INDEX, extremum_combine, extremum_identity
from compiler.te.nn.window import SPATIAL, Window, for_rank, image_rank, row_major, window
from compiler.te.tensor import Tensor


def _window(
    operator: str, x: Tensor, kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil: bool
) -> Window:
    sizes = per_dim(operator, "kernel", kernel, 1, image_rank(operator, x))
    check_flag(operator, "ceil_mode", ceil)
    return window(operator, sizes, kernel if stride is None else stride, padding, dilation, ceil)


def _pooled(
    x: Tensor,
    windows: Window,
    combine: e.Reduction,
    outside: Number,
    dtype: str,
    name: str,
    value: Callable[[Expr], Expr] = lambda read: read,
) -> Tensor:
    """Reduce value(element), with elements cast to a dtype, over each window; elements of the padding are `outside`."""
    shape, source = (*x.shape[:2], *windows.output_extents(x.shape[2:])), windows.padded_input(x, outside)

    def element(n: Index, c: Index, *output: Index) -> Reduce:
        return combine(value(e.cast(source[(n, c, *windows.input_indices(output))], dtype)), axis=windows.taps)

    return compute(shape, element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))


def _counted(x: Tensor, windows: Window, include_pad: bool, dtype: str, name: str) -> Tensor:
    """Count each window's elements inside the image, or with `include_pad` inside the padded image, as a `dtype`."""
    image = x.shape[2:]
    before, after = (windows.before, windows.after) if include_pad else ((0,) * len(image),) * 2

    def element(*output: Index) -> Reduce:
        bounds = zip(windows.input_indices(output), image, before, after, strict=True)
        conditions = [condition for p, n, low, high in bounds for condition in (p >= -low, p < n + high)]
        return e.sum(e.cast(as_expr(e.all_of(*conditions)), dtype), axis=windows.taps)

    return compute(windows.output_extents(image), element, name, axes=SPATIAL[len(image)])


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
    """Y[n, c, i] = max over the window of X[n, c, i*stride + tap*dilation - before]; padding never wins.

    x is [N, C, {HW}] of any dtype of numbers; kernel, stride (the kernel by default), dilation and padding are integers
    or one for each dimension, padding also all before and then all after. A window of padding alone is -infinity, or an
    integer dtype's least value. With ceil_mode a last window may exceed the padding, unless it begins beyond X and its
    padding before. Raises TeError for other arguments.
    """
    operator = f"max_pool{rank}d"
    check_rank(operator, x, rank + 2, f"N, C, and {rank} of the image")
    windows = _window(operator, x, kernel, stride, padding, dilation, ceil_mode)
    return _pooled(x, windows, e.max, extremum_identity(x.dtype, lowest=True), x.dtype, name)


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
    """Y[n, c, i] = mean over the window of X[n, c, i*stride + tap*dilation - before]; padding is 0, or not counted.

    x is [N, C, {HW}] of a float dtype; the rest as max_pool{rank}d. Elements of a last window beyond the padding are
    not counted; `divisor` replaces the count; a window without counted elements is NaN. Sums are in f32 for narrower
    floats. Raises TeError for other arguments.
    """
    operator = f"avg_pool{rank}d"
    check_float(operator, check_rank(operator, x, rank + 2, f"N, C, and {rank} of the image"))
    check_flag(operator, "count_include_pad", count_include_pad)
    windows, acc_dtype = _window(operator, x, kernel, stride, padding, dilation, ceil_mode), accumulator(x.dtype)
    count = math.prod(windows.sizes) if divisor is None else per_dim(operator, "divisor", divisor, 1, 1)[0]
    total = _pooled(x, windows, e.sum, 0, acc_dtype, f"{name}.sum")
    has_varying_count = windows.overshoots(x.shape[2:]) if count_include_pad else windows.is_padded
    divisors = None
    if has_varying_count and divisor is None:
        divisors = _counted(x, windows, count_include_pad, acc_dtype, f"{name}.count")

    def element(*i: Index) -> Expr:
        return e.cast(total[i] * (1.0 / count) if divisors is None else total[i] / divisors[i[2:]], x.dtype)

    return compute(total.shape, element, name, axes=("n", "c", *SPATIAL[rank]))


max_pool1d, max_pool2d, max_pool3d = (for_rank(_max_pool, rank) for rank in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (for_rank(_avg_pool, rank) for rank in (1, 2, 3))


def max_pool_with_places(
    x: Tensor,
    kernel: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    name: str = "max_pool",
) -> tuple[Tensor, Tensor]:
    """Y, P = the maximum of each window, and its row-major index in the image of X[n, c], an i64.

    Ties go to the first element; NaN counts as greatest; a window without elements of X has index 2^63 - 1. The rest as
    max_pool2d, for images of one to three dimensions. Raises TeError for other arguments. Elsewhere: torch max_pool2d
    with return_indices.
    """
    windows = _window("max_pool_with_places", x, kernel, stride, padding, dilation, ceil_mode)
    image, lowest = x.shape[2:], extremum_identity(x.dtype, lowest=True)
    padded = windows.padded_input(x, lowest)
    pick = combiner(extremum_combine(lambda a, b: a > b, x.dtype), (lowest, LAST_INDEX))

    def element(n: Index, c: Index, *output: Index) -> tuple[Reduce, ...]:
        indices = windows.input_indices(output)
        position = e.cast(row_major(indices, image), "i64")
        if windows.is_padded:
            inside = e.all_of(*(c for p, size in zip(indices, image, strict=True) for c in (p >= 0, p < size)))
            position = e.select(inside, position, LAST_INDEX)
        return reduce(pick, (padded[(n, c, *indices)], position), axis=windows.taps)

    shape = (*x.shape[:2], *windows.output_extents(image))
    values, indices = compute(shape, element, name, axes=("n", "c", *SPATIAL[x.rank - 2]))
    return values, indices


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
    """Y[n, c, i] = (sum over the window of |X[n, c, i*stride + tap*dilation - before]|^p)^(1/p); padding is 0.

    p is above 0; x is of a float dtype; the rest as max_pool2d, for images of one to three dimensions. Raises TeError
    for other arguments. Elsewhere: ONNX LpPool; torch lp_pool2d, for non-negative elements.
    """
    power = check_number("lp_pool", "p", p)
    if power <= 0:
        raise TeError(f"lp_pool: p is {p}, expected a number above 0")
    windows = _window("lp_pool", check_float("lp_pool", x), kernel, stride, padding, dilation, ceil_mode)
    acc_dtype = accumulator(x.dtype)
    total = _pooled(x, windows, e.sum, 0, acc_dtype, f"{name}.sum", lambda read: formulas.power(e.abs(read), power))

    def root(*i: Index) -> Expr:
        return e.cast(formulas.root(total[i], power), x.dtype)

    return compute(total.shape, root, name, axes=("n", "c", *SPATIAL[x.rank - 2]))


def global_avg_pool(x: Tensor, name: str = "global_avg_pool") -> Tensor:
    """Y[n, c, 0...] = mean of X[n, c, ...] over the image, kept with extent 1. Raises TeError for a rank below 3, and
    for a dtype that is no float."""
    if check_tensor("global_avg_pool", x).rank < 3:
        raise TeError(f"global_avg_pool: '{x.name}' has shape {x.shape}, expected [N, C, ...]")
    return mean(x, tuple(range(2, x.rank)), keepdims=True, name=name)
