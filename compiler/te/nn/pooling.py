"""Pooling over windows of images of one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from compiler.elements import is_float, limits
from compiler.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import as_expr
from compiler.te.nn.common import (
    accumulator,
    borders_of,
    check_flag,
    check_float,
    check_rank,
    check_tensor,
    several,
    window_size,
)
from compiler.te.nn.reduction import mean
from compiler.te.tensor import Tensor, reduce_axis

_SPATIAL = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}
_TAPS = {1: ("s",), 2: ("r", "s"), 3: ("q", "r", "s")}


class _Windows:
    """The windows of a pooling: where they lie, and reads of a tensor in them."""

    def __init__(self, operator: str, x: Tensor, kernel: Any, stride: Any, padding: Any, rank: int) -> None:
        self.x = check_rank(operator, x, rank + 2, f"N, C, and {rank} of the image")
        self.kernel = several(operator, "kernel", kernel, 1, rank)
        self.strides = several(operator, "stride", kernel if stride is None else stride, 1, rank)
        self.before, self.after = borders_of(operator, padding, rank)
        self.taps = [reduce_axis(size, label) for size, label in zip(self.kernel, _TAPS[rank], strict=True)]
        self.image = x.shape[2:]
        self.shape = tuple(
            window_size(operator, n, self.kernel[d], self.strides[d], 1, self.before[d] + self.after[d])
            for d, n in enumerate(self.image)
        )
        self.labels = _SPATIAL[rank]

    @property
    def is_padded(self) -> bool:
        """Whether windows reach beyond the image."""
        return any((*self.before, *self.after))

    def places(self, at: Sequence[Any]) -> list[Any]:
        """The index of each tap in the image."""
        return [i * s + t - b for i, s, t, b in zip(at, self.strides, self.taps, self.before, strict=True)]

    def pooled(self, combine: Any, outside: float, dtype: str, name: str) -> Tensor:
        """The values of each window combined, in a dtype."""
        source: Any = self.x.padded(outside) if self.is_padded else self.x

        def element(n: Any, c: Any, *at: Any) -> Any:
            return combine(e.cast(source[(n, c, *self.places(at))], dtype), axis=tuple(self.taps))

        result: Tensor = compute((*self.x.shape[:2], *self.shape), element, name, axes=("n", "c", *self.labels))
        return result

    def counted(self, dtype: str, name: str) -> Tensor:
        """How many elements of each window lie inside the image."""

        def element(*at: Any) -> Any:
            holds = [h for p, n in zip(self.places(at), self.image, strict=True) for h in (p >= 0, p < n)]
            return e.sum(e.cast(as_expr(e.all_of(*holds)), dtype), axis=tuple(self.taps))

        result: Tensor = compute(self.shape, element, name, axes=self.labels)
        return result


def _max_pool(rank: int) -> Callable[..., Tensor]:
    operator = f"max_pool{rank}d"

    def build(x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, name: str = operator) -> Tensor:
        windows = _Windows(operator, x, kernel, stride, padding, rank)
        least = -math.inf if is_float(x.dtype) else limits(x.dtype)[0]
        return windows.pooled(e.max, least, x.dtype, name)

    build.__name__ = operator
    build.__doc__ = (
        "Y[n, c, at] = max over the window of X[n, c, at*stride + tap - before]; what is outside X never counts.\n\n"
        f"x is [N, C, {', '.join(label.upper() for label in _SPATIAL[rank])}]; kernel, stride (the kernel where it is\n"
        "not given) and padding are integers or one for each dimension, padding also before and after. Raises TeError."
    )
    return build


def _avg_pool(rank: int) -> Callable[..., Tensor]:
    operator = f"avg_pool{rank}d"

    def build(
        x: Tensor,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        count_include_pad: bool = True,
        name: str = operator,
    ) -> Tensor:
        check_float(operator, x)
        check_flag(operator, "count_include_pad", count_include_pad)
        windows = _Windows(operator, x, kernel, stride, padding, rank)
        wide = accumulator(x.dtype)
        total = windows.pooled(e.sum, 0, wide, f"{name}.sum")
        share = 1.0 / math.prod(windows.kernel)
        everywhere = count_include_pad or not windows.is_padded
        ones = None if everywhere else windows.counted(wide, f"{name}.count")

        def element(*i: Any) -> Any:
            return e.cast(total[i] * share if ones is None else total[i] / ones[i[2:]], x.dtype)

        result: Tensor = compute(total.shape, element, name, axes=("n", "c", *windows.labels))
        return result

    build.__name__ = operator
    build.__doc__ = (
        "Y[n, c, at] = the mean over the window of X[n, c, at*stride + tap - before]; outside X is 0 or uncounted.\n\n"
        f"x is [N, C, {', '.join(label.upper() for label in _SPATIAL[rank])}], of a float dtype; the rest as\n"
        f"max_pool{rank}d. Sums are formed in f32 of narrower floats. Raises TeError."
    )
    return build


max_pool1d, max_pool2d, max_pool3d = (_max_pool(rank) for rank in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(rank) for rank in (1, 2, 3))


def global_avg_pool(x: Tensor, name: str = "global_avg_pool") -> Tensor:
    """Y[n, c, 0...] = the mean of X[n, c, ...] over the image, its dimensions kept with extent 1. Raises TeError."""
    if check_tensor("global_avg_pool", x).rank < 3:
        raise TeError(f"global_avg_pool: '{x.name}' has shape {x.shape}, expected [N, C, ...]")
    return mean(x, tuple(range(2, x.rank)), keepdims=True, name=name)
