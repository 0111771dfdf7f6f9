"""Indices of windows: an image read at positions with strides, dilations and padding, zero or a value outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.te import scalar as e
from compiler.te.expr import Expr
from compiler.te.index import Condition, Index, IndexLike
from compiler.te.tensor import Tensor


@dataclass(frozen=True)
class DimWindow:
    """A window in one dimension of an image. size: elements of the window; stride: between windows; dilation: between
    the window's elements. base: the distance of the image's elements in the dilated image. before, after: elements of
    padding; a negative number crops."""

    size: int
    stride: int = 1
    dilation: int = 1
    base: int = 1
    before: int = 0
    after: int = 0

    def count(self, extent: int) -> int:
        """Return the number of windows over `extent` elements; 0 if the padded, dilated image is smaller than a window.
        Requires an extent of at least 1."""
        padded = (extent - 1) * self.base + 1 + self.before + self.after
        span = (self.size - 1) * self.dilation + 1
        return 0 if padded < span else (padded - span) // self.stride + 1

    def position(self, output: Index, tap: Index | int) -> Index:
        """Return the position in the dilated image, negative in the padding before it, of the window element number
        `tap` for the result index `output`."""
        moved = output if self.stride == 1 else output * self.stride
        total = moved + (tap if self.dilation == 1 else tap * self.dilation)
        return total - self.before if self.before else total

    def bounds(self, extent: int) -> tuple[int, int]:
        """Return the least and the greatest position that `position` takes over an image of `extent` elements, which
        must have a window."""
        last = (self.count(extent) - 1) * self.stride + (self.size - 1) * self.dilation
        return -self.before, last - self.before


def read_window(
    x: Tensor,
    index: Sequence[IndexLike],
    windows: Sequence[tuple[int, DimWindow, Index]],
    outside: float,
) -> Expr:
    """Return the element of x at an index. windows: a dimension, its window and a position in the dilated image, at
    which that dimension is read instead of at `index`; in the padding and the gaps the element is `outside`."""
    position = list(index)
    conditions: list[Condition] = []
    for dim, window, at in windows:
        extent = x.shape[dim]
        low, high = window.bounds(extent)
        conditions += [at >= 0] if low < 0 else []
        conditions += [at <= (extent - 1) * window.base] if high > (extent - 1) * window.base else []
        conditions += [e.equal(at % window.base, 0)] if window.base != 1 else []
        position[dim] = at if window.base == 1 else at // window.base
    read = x[tuple(position)]
    return e.select(e.all_of(*conditions), read, outside) if conditions else read
