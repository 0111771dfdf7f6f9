"""Filled tensors, ranges, copies."""

from __future__ import annotations

from typing import Any

from compiler.frontends.torch.operators.elements import Operand, fill, read, wide_dtype
from compiler.frontends.torch.table import Call, operator
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor
from compiler.types.dtypes import is_float


@operator("full", "full_like", "new_full", "fill.Scalar", "scalar_tensor", trivial=True)
def full(call: Call, *arguments: Any, **named: object) -> Tensor:
    """A tensor, of the call's shape and dtype, of which all elements are the last positional argument; other arguments
    are not read."""
    return fill(call.shape, arguments[-1], call.dtype, call.name)


@operator(
    "zeros", "zeros_like", "empty.memory_format", "empty_permuted", "empty_like", "new_zeros", "new_empty", trivial=True
)
def zeros(call: Call, *arguments: object, **named: object) -> Tensor:
    """A tensor of zeros, of the call's shape and dtype, also for the uninitialised tensors of `empty` operators; the
    arguments are not read."""
    return fill(call.shape, 0, call.dtype, call.name)


@operator("ones", "ones_like", "new_ones", trivial=True)
def ones(call: Call, *arguments: object, **named: object) -> Tensor:
    """A tensor of ones, of the call's shape and dtype; the arguments are not read."""
    return fill(call.shape, 1, call.dtype, call.name)


@operator("arange.start_step", trivial=True)
def arange(call: Call, start: float, end: float, step: float = 1, **named: object) -> Tensor:
    """The vector start, start + step, ... up to `end`, which is excluded, of the call's shape and dtype; `end` and
    `named`, such as a device, are not read."""
    calc_dtype = wide_dtype(call.dtype)

    def element(i: Index) -> Expr:
        if isinstance(start, int) and isinstance(step, int):  # torch takes bools as numbers
            return e.cast(e.cast(i * int(step) + int(start), calc_dtype), call.dtype)
        return e.cast(e.cast(i, calc_dtype) * step + start, call.dtype)

    return compute(call.shape, element, call.name)


@operator("linspace", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor", trivial=True)
def linspace(call: Call, start: Operand, end: Operand, steps: int, **named: object) -> Tensor:
    """The vector of `steps` equidistant numbers from start to end, each computed from the nearer end, start alone for
    one step; as in eager torch, ends and step are first rounded to the dtype, except for the step of integers. `named`,
    such as a device, is not read."""
    step_dtype = call.dtype if is_float(call.dtype) else "f64"
    calc_dtype = wide_dtype(step_dtype)

    def element(i: Index) -> Expr:
        first, last = (e.cast(read(value, (), call.dtype), calc_dtype) for value in (start, end))
        if steps == 1:
            return e.cast(first, call.dtype)
        step = e.cast(e.cast((last - first) / (steps - 1), step_dtype), calc_dtype)
        number = e.cast(i, calc_dtype)
        nearer = e.select(number < steps // 2, first + step * number, last - step * (steps - 1 - number))
        return e.cast(nearer, call.dtype)

    return compute(call.shape, element, call.name)


@operator("alias", "detach", "clone", "lift_fresh_copy", "lift", "contiguous", trivial=True)
def identity(call: Call, x: Tensor, *options: object, **named: object) -> Tensor:
    """The tensor itself, since te's tensors are immutable; further arguments, such as a memory format, have no
    effect."""
    return x
