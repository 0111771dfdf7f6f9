"""Reductions over axes: sums and means in f32 of narrower floats, rounded once; the rest in their own dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import Any

from compiler.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.nn.common import (
    accumulator,
    check_axes,
    check_flag,
    check_float,
    check_tensor,
    dims,
    result_dtype,
    rounded,
)
from compiler.te.tensor import Tensor, reduce_axis

Axes = int | Sequence[int] | None


def axes_of(operator: str, x: Tensor, axis: Axes) -> list[int]:
    """The axes as non-negative dimensions, in order; all of them for None. Raises TeError."""
    found = check_axes(operator, x, axis)
    if not found:
        raise TeError(f"{operator}: '{x.name}' is reduced over no axis")
    return found


def _reduce(operator: str, combine: Any, sums: bool) -> Callable[..., Tensor]:
    def build(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = operator) -> Tensor:
        check_tensor(operator, x)
        check_flag(operator, "keepdims", keepdims)
        wide = accumulator(x.dtype) if sums else x.dtype
        reduced = {d: reduce_axis(x.shape[d], f"k{d}") for d in axes_of(operator, x, axis)}
        shown = [d for d in range(x.rank) if keepdims or d not in reduced]

        def element(*i: Any) -> Any:
            at = dict(zip(shown, i, strict=True)) | reduced
            return combine(e.cast(x[tuple(at[d] for d in range(x.rank))], wide), axis=tuple(reduced.values()))

        shape = [1 if d in reduced else x.shape[d] for d in shown]
        wanted = result_dtype(operator, x.dtype, None) if sums else x.dtype
        label = name if wanted == wide else f"{name}.wide"
        result: Tensor = compute(shape, element, label, axes=[f"i{d}" for d in shown])
        return rounded(result, wanted, name)

    build.__name__ = operator
    build.__doc__ = (
        f"The {operator} of a tensor over the given axes (all of them by default), kept with extent 1 or dropped."
        + (" Formed in f32 of narrower floats and rounded once; an i32 of narrower integers." if sums else "")
    )
    return build


sum = _reduce("sum", e.sum, sums=True)
prod = _reduce("prod", e.prod, sums=True)
max = _reduce("max", e.max, sums=False)
min = _reduce("min", e.min, sums=False)


def mean(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "mean") -> Tensor:
    """The mean over the given axes: their sum, divided by the number of elements; in f32 of narrower floats."""
    over = axes_of("mean", check_float("mean", x), axis)
    check_flag("mean", "keepdims", keepdims)
    reduced = {d: reduce_axis(x.shape[d], f"k{d}") for d in over}
    shown = [d for d in range(x.rank) if keepdims or d not in reduced]

    def element(*i: Any) -> Any:
        at = dict(zip(shown, i, strict=True)) | reduced
        return e.sum(e.cast(x[tuple(at[d] for d in range(x.rank))], accumulator(x.dtype)), axis=tuple(reduced.values()))

    shape = [1 if d in reduced else x.shape[d] for d in shown]
    total: Tensor = compute(shape, element, f"{name}.sum", axes=[f"i{d}" for d in shown])
    share = 1.0 / product(x.shape[d] for d in over)
    result: Tensor = compute(shape, lambda *i: e.cast(total[i] * share, x.dtype), name, axes=dims(total.rank))
    return result
