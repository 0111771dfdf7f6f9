"""Tensors of numbers and ranges, and copies."""

from __future__ import annotations

from typing import Any

from compiler.frontends.torch.operators.elements import filled, working
from compiler.frontends.torch.table import Call, operator
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor


@operator("full", "full_like", "new_full", "fill.Scalar", "scalar_tensor", moves=True)
def full(call: Call, *given: Any, **named: object) -> Tensor:
    """A tensor of equal elements: of the last argument."""
    return filled(call.shape, given[-1], call.dtype, call.name)


@operator(
    "zeros", "zeros_like", "empty.memory_format", "empty_permuted", "empty_like", "new_zeros", "new_empty", moves=True
)
def zeros(call: Call, *given: object, **named: object) -> Tensor:
    """Zeros, also for uninitialised elements."""
    return filled(call.shape, 0, call.dtype, call.name)


@operator("ones", "ones_like", "new_ones", moves=True)
def ones(call: Call, *given: object, **named: object) -> Tensor:
    """Ones."""
    return filled(call.shape, 1, call.dtype, call.name)


@operator("arange.start_step", moves=True)
def arange(call: Call, start: float, end: float, step: float = 1, **named: object) -> Tensor:
    """start, start + step, and so on."""
    computed_in = working(call.dtype)

    def element(i: Index) -> Expr:
        if isinstance(start, int) and isinstance(step, int):  # truth values are numbers to torch
            return e.cast(e.cast(i * int(step) + int(start), computed_in), call.dtype)
        return e.cast(e.cast(i, computed_in) * step + start, call.dtype)

    return compute(call.shape, element, call.name)


@operator("alias", "detach", "clone", "lift_fresh_copy", "lift", "contiguous", moves=True)
def same(call: Call, x: Tensor, *options: object, **named: object) -> Tensor:
    """The tensor itself: what te computes is never written to."""
    return x
