"""Sorting, top-k, medians, prefix sums and products."""

from __future__ import annotations

from collections.abc import Callable

from compiler.frontends.torch.operators.elements import dimension, fill, flatten, reshape, to_dtype, wide_dtype
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te.tensor import Tensor
from compiler.types.dtypes import is_float

MAX_SORTED = 256
"""The largest extent of a sorted axis: all pairs are compared, and for more elements torch's sort is faster."""
MAX_SCANNED = 4096
"""The largest extent of a cumulative sum's axis: for more elements torch's loop is faster."""


def _register_cumulative(name: str, scan: Callable[..., Tensor]) -> None:
    """Register an operator for `scan`, prefix sums or products along a dimension; for more than MAX_SCANNED elements it
    raises Unsupported."""

    def convert(call: Call, x: Tensor, dim: int, dtype: object = None) -> Tensor:
        if not x.rank:
            return to_dtype(x, call.dtype, call.name)
        axis = dimension(dim, x.rank)
        if x.shape[axis] > MAX_SCANNED:
            raise Unsupported(f"an axis of {x.shape[axis]} elements; up to {MAX_SCANNED} are scanned")
        typed = to_dtype(x, wide_dtype(call.dtype), f"{call.name}.wide")
        return to_dtype(scan(typed, axis, name=f"{call.name}.scan"), call.dtype, call.name)

    operator(name)(convert)


_register_cumulative("cumsum", nn.cumsum)
_register_cumulative("cumprod", nn.cumprod)


def _topk(call: Call, x: Tensor, k: int, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    if not x.rank:
        return x, fill((), 0, "i64", f"{call.name}.place")
    axis = dimension(dim, x.rank)
    if x.shape[axis] > MAX_SORTED:
        raise Unsupported(f"an axis of {x.shape[axis]} elements; up to {MAX_SORTED} are sorted")
    return nn.topk(x, k, axis, largest, name=call.name)


@operator("topk")
def topk(
    call: Call, x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The k greatest or least elements along a dimension, and their indices; in sorted order even if `sorted` is false.
    Raises Unsupported for more than MAX_SORTED elements along it."""
    return _topk(call, x, k, dim, largest)


@operator("kthvalue")
def kthvalue(call: Call, x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th least element (k from 1) along a dimension, and its index; NaN is greatest. The call's shape decides
    whether the dimension is kept; `keepdim` is not read. Raises Unsupported for more than MAX_SORTED elements along
    it."""
    if not x.rank:
        return _topk(call, x, 1, dim, False)
    axis = dimension(dim, x.rank)
    values, indices = _topk(call, x, k, dim, False)
    return _last_element(call, values, axis, 0), _last_element(call, indices, axis, 1)


def _last_element(call: Call, x: Tensor, axis: int, position: int) -> Tensor:
    """The last slice along a dimension, in the shape of result number `position`."""
    ends = [n - 1 if d == axis else 0 for d, n in enumerate(x.shape)]
    last = nn.slice(x, ends, list(x.shape), name=f"{call.name}.{position}.last")
    return reshape(last, call.shapes[position], call.name)


@operator("median.dim")
def median_along(call: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median along a dimension and its index; NaN and its index for a row with NaNs. The call's shape decides
    whether the dimension is kept, whatever `keepdim` is. Raises Unsupported for more than MAX_SORTED elements along
    it."""
    if not x.rank:
        return _topk(call, x, 1, dim, False)
    axis = dimension(dim, x.rank)
    value, index = kthvalue(call, x, (x.shape[axis] + 1) // 2, dim, keepdim)
    if not is_float(x.dtype):
        return value, index
    top, top_index = _topk(Call(f"{call.name}.top", call.shapes, call.dtypes, call.common), x, 1, dim, True)
    greatest, nan_index = (nn.reshape(t, value.shape, f"{t.name}.shown") for t in (top, top_index))
    nan = nn.isnan(greatest, name=f"{call.name}.nan")
    return nn.where(nan, greatest, value, name=call.name), nn.where(nan, nan_index, index, name=f"{call.name}.place")


@operator("median")
def median(call: Call, x: Tensor) -> Tensor:
    """The lower median of all elements; NaN if an element is NaN. Raises Unsupported for more than MAX_SORTED
    elements."""
    value_and_index = Call(call.name, (call.shape, call.shape), (call.dtype, "i64"), call.common)
    return median_along(value_and_index, flatten(x, f"{call.name}.flat"), 0)[0]


@operator("sort", "sort.stable")
def sort(
    call: Call, x: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> tuple[Tensor, Tensor]:
    """The elements along a dimension, sorted stably, whatever `stable` is, ascending or with `descending` descending,
    and their indices. Raises Unsupported for more than MAX_SORTED elements along it."""
    return _topk(call, x, x.shape[dimension(dim, x.rank)] if x.rank else 1, dim, descending)
