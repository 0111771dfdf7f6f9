"""Pooling over windows of images."""

from __future__ import annotations

import math
from typing import Any

from compiler.te import expr as e
from compiler.te.nn.common import borders, check_rank, pair, window_size
from compiler.te.tensor import Tensor, compute, reduce_axis


def max_pool2d(x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, name: str = "max_pool2d") -> Tensor:
    """Y[n, c, h, w] = max over r, s of X[n, c, h*stride + r - top, w*stride + s - left]; outside X is -inf.

    x is [N, C, H, W]; stride is the kernel where it is not given. Raises TeError.
    """
    pooled, _ = _pool("max_pool2d", x, kernel, stride, padding, -math.inf, e.max, name)
    return pooled


def avg_pool2d(
    x: Tensor,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    count_include_pad: bool = True,
    name: str = "avg_pool2d",
) -> Tensor:
    """Y[n, c, h, w] = the mean of X over the window; elements outside X are 0, counted or not. Raises TeError."""
    total, (kh, kw) = _pool("avg_pool2d", x, kernel, stride, padding, 0, e.sum, f"{name}.sum")
    if count_include_pad or not any(borders("avg_pool2d", padding)):
        result: Tensor = compute(total.shape, lambda n, c, h, w: total[n, c, h, w] * (1.0 / (kh * kw)), name)
        return result
    ones = _count(x, kernel, stride, padding, f"{name}.count")
    result = compute(total.shape, lambda n, c, h, w: total[n, c, h, w] / ones[h, w], name)
    return result


def _pool(
    operator: str, x: Tensor, kernel: Any, stride: Any, padding: Any, outside: float, reduce: Any, name: str
) -> tuple[Tensor, tuple[int, int]]:
    check_rank(operator, x, 4, "N, C, H, W")
    kh, kw = pair(operator, "kernel", kernel, 1)
    sh, sw = pair(operator, "stride", kernel if stride is None else stride, 1)
    top, left, bottom, right = borders(operator, padding)
    oh = window_size(operator, x.shape[2], kh, sh, 1, top + bottom)
    ow = window_size(operator, x.shape[3], kw, sw, 1, left + right)
    r, s = reduce_axis(kh, "r"), reduce_axis(kw, "s")
    source: Any = x.padded(outside) if any((top, left, bottom, right)) else x

    def element(n: Any, c: Any, h: Any, w: Any) -> e.Expr:
        pooled: e.Expr = reduce(source[n, c, h * sh + r - top, w * sw + s - left], axis=(r, s))
        return pooled

    return compute((*x.shape[:2], oh, ow), element, name), (kh, kw)


def _count(x: Tensor, kernel: Any, stride: Any, padding: Any, name: str) -> Tensor:
    """How many elements of each window lie inside the image, as x's dtype."""
    kh, kw = pair("avg_pool2d", "kernel", kernel, 1)
    sh, sw = pair("avg_pool2d", "stride", kernel if stride is None else stride, 1)
    top, left, bottom, right = borders("avg_pool2d", padding)
    height, width = x.shape[2:]
    oh = window_size("avg_pool2d", height, kh, sh, 1, top + bottom)
    ow = window_size("avg_pool2d", width, kw, sw, 1, left + right)
    r, s = reduce_axis(kh, "r"), reduce_axis(kw, "s")

    def element(h: Any, w: Any) -> e.Expr:
        y, z = h * sh + r - top, w * sw + s - left
        inside = e.all_of(y >= 0, y < height, z >= 0, z < width)
        return e.sum(e.cast(e.as_expr(inside), x.dtype), axis=(r, s))

    result: Tensor = compute((oh, ow), element, name)
    return result
