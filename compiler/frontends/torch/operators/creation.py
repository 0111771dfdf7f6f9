"""Tensors of numbers and ranges, and copies."""

from __future__ import annotations

from typing import Any

from compiler.frontends.torch.operators.elements import Operand, filled, read, working
from compiler.frontends.torch.table import Call, operator
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor
from compiler.types.elements import is_float


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


@operator("linspace", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor", moves=True)
def linspace(call: Call, start: Operand, end: Operand, steps: int, **named: object) -> Tensor:
    """Numbers at equal distances, counted from the nearer end; ends and step are first rounded to the dtype, as eager
    torch does, but the step between integers."""
    between = call.dtype if is_float(call.dtype) else "f64"
    computed_in = working(between)

    def element(i: Index) -> Expr:
        first, last = (e.cast(read(value, (), call.dtype), computed_in) for value in (start, end))
        if steps == 1:
            return e.cast(first, call.dtype)
        step = e.cast(e.cast((last - first) / (steps - 1), between), computed_in)
        number = e.cast(i, computed_in)
        nearer = e.select(number < steps // 2, first + step * number, last - step * (steps - 1 - number))
        return e.cast(nearer, call.dtype)

    return compute(call.shape, element, call.name)


@operator("alias", "detach", "clone", "lift_fresh_copy", "lift", "contiguous", moves=True)
def same(call: Call, x: Tensor, *options: object, **named: object) -> Tensor:
    """The tensor itself: what te computes is never written to."""
    return x
