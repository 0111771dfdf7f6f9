"""Operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.errors import TeError
from compiler.te import expr as e
from compiler.te.nn.common import check_tensor, dims
from compiler.te.tensor import Tensor, compute


def transpose(x: Tensor, perm: Sequence[int] | None = None, name: str = "transpose") -> Tensor:
    """Y[..., i, ...] = X permuted: dimension d of Y is dimension perm[d] of X (reversed by default)."""
    check_tensor("transpose", x)
    order = list(perm) if perm is not None else list(range(x.rank))[::-1]
    if sorted(order) != list(range(x.rank)):
        raise TeError(f"transpose: {perm!r} is not a permutation of the {x.rank} dimensions of '{x.name}'")

    def element(*i: Any) -> e.Expr:
        return x[tuple(i[order.index(d)] for d in range(x.rank))]

    result: Tensor = compute([x.shape[d] for d in order], element, name, axes=dims(x.rank))
    return result


def pad(x: Tensor, widths: Sequence[tuple[int, int]], value: float = 0, name: str = "pad") -> Tensor:
    """X surrounded by a value: widths has (before, after) for each dimension. Raises TeError."""
    check_tensor("pad", x)
    pairs = [tuple(w) for w in widths] if isinstance(widths, Sequence) else []
    if len(pairs) != x.rank or any(len(w) != 2 or min(w) < 0 for w in pairs):
        raise TeError(f"pad: the widths {widths!r} are not (before, after) for each dimension of '{x.name}'")
    source = x.padded(value)
    shape = [size + before + after for size, (before, after) in zip(x.shape, pairs, strict=True)]

    def element(*i: Any) -> e.Expr:
        return source[tuple(index - before for index, (before, _) in zip(i, pairs, strict=True))]

    result: Tensor = compute(shape, element, name, axes=dims(x.rank))
    return result
