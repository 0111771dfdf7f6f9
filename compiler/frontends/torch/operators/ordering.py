"""Sorting, the greatest elements, sums and products up to a place."""

from __future__ import annotations

from collections.abc import Callable

from compiler.frontends.torch.operators.elements import converted, dimension, filled, flattened, reshaped, working
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te.tensor import Tensor
from compiler.types.elements import is_float

RANKED = 256
"""The longest axis that is sorted by comparing each element with each: beyond, torch's sort is faster."""
SCANNED = 4096
"""The longest axis of a cumulative sum: beyond, torch's loop is faster."""


def _enter_cumulative(name: str, scan: Callable[..., Tensor]) -> None:
    """The sum or product of all elements up to each, along a dimension."""

    def convert(call: Call, x: Tensor, dim: int, dtype: object = None) -> Tensor:
        if not x.rank:
            return converted(x, call.dtype, call.name)
        along = dimension(dim, x.rank)
        if x.shape[along] > SCANNED:
            raise Unsupported(f"an axis of {x.shape[along]} elements; up to {SCANNED} are scanned")
        wide = converted(x, working(call.dtype), f"{call.name}.wide")
        return converted(scan(wide, along, name=f"{call.name}.scan"), call.dtype, call.name)

    operator(name)(convert)


_enter_cumulative("cumsum", nn.cumsum)
_enter_cumulative("cumprod", nn.cumprod)


def _ranked(call: Call, x: Tensor, k: int, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    if not x.rank:
        return x, filled((), 0, "i64", f"{call.name}.place")
    along = dimension(dim, x.rank)
    if x.shape[along] > RANKED:
        raise Unsupported(f"an axis of {x.shape[along]} elements; up to {RANKED} are sorted")
    return nn.topk(x, k, along, largest, name=call.name)


@operator("topk")
def topk(
    call: Call, x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The greatest or least elements along a dimension, and where they are."""
    return _ranked(call, x, k, dim, largest)


@operator("kthvalue")
def kthvalue(call: Call, x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th least element along a dimension, NaN being the greatest, and where it is."""
    if not x.rank:
        return _ranked(call, x, 1, dim, False)
    along = dimension(dim, x.rank)
    values, places = _ranked(call, x, k, dim, False)
    return _last(call, values, along, 0), _last(call, places, along, 1)


def _last(call: Call, x: Tensor, along: int, position: int) -> Tensor:
    """The last element along a dimension."""
    ends = [n - 1 if d == along else 0 for d, n in enumerate(x.shape)]
    only = nn.slice(x, ends, list(x.shape), name=f"{call.name}.{position}.last")
    return reshaped(only, call.shapes[position], call.name)


@operator("median.dim")
def median_of(call: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The middle element along a dimension, of two the lesser, or a NaN if there is one, and where it is."""
    if not x.rank:
        return _ranked(call, x, 1, dim, False)
    along = dimension(dim, x.rank)
    value, place = kthvalue(call, x, (x.shape[along] + 1) // 2, dim, keepdim)
    if not is_float(x.dtype):
        return value, place
    top, where = _ranked(Call(f"{call.name}.top", call.shapes, call.dtypes, call.common), x, 1, dim, True)
    greatest, at = (nn.reshape(t, value.shape, f"{t.name}.shown") for t in (top, where))
    nan = nn.isnan(greatest, name=f"{call.name}.nan")
    return nn.where(nan, greatest, value, name=call.name), nn.where(nan, at, place, name=f"{call.name}.place")


@operator("median")
def median(call: Call, x: Tensor) -> Tensor:
    """The middle of all elements, of two the lesser, or NaN if there is one."""
    both = Call(call.name, (call.shape, call.shape), (call.dtype, "i64"), call.common)
    return median_of(both, flattened(x, f"{call.name}.flat"), 0)[0]


@operator("sort", "sort.stable")
def sort(
    call: Call, x: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> tuple[Tensor, Tensor]:
    """The elements along a dimension in order, equal ones in theirs, and where they were."""
    return _ranked(call, x, x.shape[dimension(dim, x.rank)] if x.rank else 1, dim, descending)
