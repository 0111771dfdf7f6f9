"""Reductions over axes, and the normalisations made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import Any

from compiler.errors import TeError
from compiler.te import expr as e
from compiler.te.nn.common import check_axis, check_equal, check_rank, check_tensor, dims
from compiler.te.tensor import Tensor, compute, reduce_axis

Axes = int | Sequence[int] | None


def _axes(operator: str, x: Tensor, axis: Axes) -> list[int]:
    given = range(x.rank) if axis is None else [axis] if isinstance(axis, int) else axis
    found = [check_axis(operator, x, one) for one in given]
    if not found or len(set(found)) != len(found):
        raise TeError(f"{operator}: the axes {axis!r} of '{x.name}' are empty or name one twice")
    return sorted(found)


def _reduce(operator: str, scalar: Any) -> Callable[..., Tensor]:
    def build(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = operator) -> Tensor:
        check_tensor(operator, x)
        over = _axes(operator, x, axis)
        reduced = {d: reduce_axis(x.shape[d], f"k{d}") for d in over}
        kept = [d for d in range(x.rank) if d not in reduced]
        shown = list(range(x.rank)) if keepdims else kept

        def element(*i: Any) -> e.Expr:
            at = dict(zip(shown, i, strict=True))
            value: e.Expr = scalar(x[tuple(reduced.get(d, at.get(d)) for d in range(x.rank))], tuple(reduced.values()))
            return value

        shape = [1 if d in reduced else x.shape[d] for d in shown]
        result: Tensor = compute(shape, element, name, axes=[f"i{d}" for d in shown])
        return result

    build.__name__ = operator
    build.__doc__ = (
        f"The {operator} of a tensor over the given axes (all of them by default), kept with extent 1 or dropped."
    )
    return build


sum = _reduce("sum", e.sum)
prod = _reduce("prod", e.prod)
max = _reduce("max", e.max)
min = _reduce("min", e.min)


def mean(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "mean") -> Tensor:
    """The mean over the given axes: their sum, divided by the number of elements."""
    count = product(x.shape[d] for d in _axes("mean", check_tensor("mean", x), axis))
    total = sum(x, axis, keepdims, f"{name}.sum")
    result: Tensor = compute(total.shape, lambda *i: total[i] * (1.0 / count), name, axes=dims(total.rank))
    return result


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    """Y[i] = exp(X[i] - max X) / sum exp(X - max X), along one axis. Raises TeError."""
    along = check_axis("softmax", check_tensor("softmax", x), axis)
    top = max(x, along, keepdims=True, name=f"{name}.max")

    def less(i: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(0 if d == along else index for d, index in enumerate(i))

    powers: Tensor = compute(x.shape, lambda *i: e.exp(x[i] - top[less(i)]), f"{name}.exp", axes=dims(x.rank))
    total = sum(powers, along, keepdims=True, name=f"{name}.sum")
    result: Tensor = compute(x.shape, lambda *i: powers[i] / total[less(i)], name, axes=dims(x.rank))
    return result


def layer_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5, axis: int = -1, name: str = "layer_norm"
) -> Tensor:
    """Y = (X - mean) / sqrt(variance + eps) * gamma + beta, mean and variance along one axis.

    gamma and beta have one element for each position of that axis. Raises TeError.
    """
    along = check_axis("layer_norm", check_tensor("layer_norm", x), axis)
    for scale in (gamma, beta):
        check_rank("layer_norm", scale, 1, "one element a position of the axis")
        check_equal("layer_norm", f"the extents of the axis and of '{scale.name}'", x.shape[along], scale.shape[0])
    middle = mean(x, along, keepdims=True, name=f"{name}.mean")

    def less(i: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(0 if d == along else index for d, index in enumerate(i))

    centred: Tensor = compute(x.shape, lambda *i: x[i] - middle[less(i)], f"{name}.centred", axes=dims(x.rank))
    squares: Tensor = compute(x.shape, lambda *i: centred[i] * centred[i], f"{name}.square", axes=dims(x.rank))
    variance = mean(squares, along, keepdims=True, name=f"{name}.variance")

    def element(*i: Any) -> e.Expr:
        scale = e.rsqrt(variance[less(i)] + eps)
        return centred[i] * scale * gamma[i[along]] + beta[i[along]]

    result: Tensor = compute(x.shape, element, name, axes=dims(x.rank))
    return result
