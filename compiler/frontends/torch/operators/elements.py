"""Elementwise operators with torch's broadcasting and promotion, and helpers of all families."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.frontends.torch.table import Call, Unsupported
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Const, Expr, Scalar, as_expr
from compiler.te.index import Index
from compiler.te.nn.common import Indices, accumulator
from compiler.te.nn.elementwise import read_at
from compiler.te.tensor import Compute, Tensor
from compiler.types.dtypes import is_float, width
from compiler.types.rounding import rounded

Operand: TypeAlias = Tensor | float
"""A tensor, or a number broadcast to one."""


def wide_dtype(dtype: str) -> str:
    """Return the dtype of computations on elements of a dtype: f32 for narrower floats, i8 for i1, else itself."""
    return accumulator(dtype) if is_float(dtype) else "i8" if dtype == "i1" else dtype


def read(operand: Operand, index: Indices, dtype: str) -> Expr:
    """Read an operand at an index of a shape to which it broadcasts, and cast it to a dtype; a number, or a tensor that
    is filled with one, is a constant."""
    if not isinstance(operand, Tensor):
        return number(operand, dtype)
    value = literal(operand)
    if value is not None:
        return number(value, dtype)
    return e.cast(read_at(operand, index), dtype)


def number(value: object, dtype: str) -> Const:
    """Convert a number to a constant of a dtype: floats truncate to integers, and round to 16 bits by way of f32; as
    i1, all but 0 are true. Raises Unsupported for complex numbers, and for infinity and NaN as integers."""
    if not isinstance(value, int | float):
        raise Unsupported(f"{value!r} is not a real number")
    if dtype == "i1":
        return Const(bool(value), "i1")
    if is_float(dtype):
        return e.const(rounded(value, "f32") if width(dtype) == 16 else value, dtype)
    if not math.isfinite(value):
        raise Unsupported(f"{value!r} is no integer")
    return e.const(int(value), dtype)


def zero_of(tensor: Tensor) -> int:
    """Return zero as a number of a tensor's dtype: False for i1, else 0."""
    return False if tensor.dtype == "i1" else 0


def literal(tensor: Tensor) -> float | None:
    """Return the number that a tensor is filled with by a compute, rounded to its dtype; None for other tensors."""
    source = tensor.source
    body = source.bodies[0] if isinstance(source, Compute) and not source.reduce else None
    return round_to(body.value, tensor.dtype) if isinstance(body, Const) else None


def round_to(value: float, dtype: str) -> float:
    """Round a number to a 16-bit float dtype by way of f32, as torch does; return it unchanged for other dtypes."""
    is_narrow = is_float(dtype) and width(dtype) == 16
    return rounded(rounded(value, "f32"), dtype) if is_narrow else value


def promote(operand: Operand, dtype: str, name: str, exact: bool = False) -> Operand:
    """Round an operand to the common dtype, as torch's elementwise loops do; only f16 and bf16 have an effect.

    With `exact`, numbers and tensors without dimensions are returned unchanged.
    """
    if not isinstance(operand, Tensor):
        return operand if exact else round_to(operand, dtype)
    is_unchanged = (exact and not operand.rank) or not is_float(dtype) or width(dtype) >= 32
    return operand if is_unchanged else to_dtype(operand, dtype, name)


def pointwise(
    call: Call, formula: Callable[..., Scalar], *operands: Operand, dtype: str | None = None, name: str | None = None
) -> Tensor:
    """Apply a formula to broadcast operands cast to wide_dtype(dtype or the result's), and cast the values to the
    result's dtype. The tensor is called `name`, by default like the call."""
    calc_dtype = wide_dtype(dtype or call.dtype)

    def element(*at: Index) -> Expr:
        value = as_expr(formula(*(read(operand, at, calc_dtype) for operand in operands)), calc_dtype)
        return e.cast(value, call.dtype)

    return compute(call.shape, element, name or call.name)


def to_dtype(tensor: Tensor, dtype: str, name: str) -> Tensor:
    """Cast a tensor to a dtype; return it unchanged if it has that dtype."""
    if tensor.dtype == dtype:
        return tensor
    return compute(tensor.shape, lambda *at: e.cast(read(tensor, at, tensor.dtype), dtype), name)


def reshape(tensor: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    """Reshape a tensor in row-major order; return it unchanged if it has that shape."""
    return tensor if tensor.shape == shape else nn.reshape(tensor, shape, name)


def flatten(tensor: Tensor, name: str) -> Tensor:
    """Reshape a tensor to a vector; return a vector unchanged."""
    return reshape(tensor, (math.prod(tensor.shape),), name)


def result(call: Call, tensor: Tensor, position: int = 0) -> Tensor:
    """Reshape and cast a tensor to the shape and dtype of result number `position` of a call."""
    name = f"{call.name}.{position}"
    return to_dtype(reshape(tensor, call.shapes[position], f"{name}.shaped"), call.dtypes[position], name)


def per_dim(values: Sequence[int] | int, rank: int) -> tuple[int, ...]:
    """Return one integer for each of `rank` dimensions; a single one is repeated."""
    listed = (values,) if isinstance(values, int) else tuple(values)
    return listed if len(listed) == rank else listed * rank


def fill(shape: Sequence[int], value: float, dtype: str, name: str) -> Tensor:
    """Compute a tensor of which all elements are one value, converted to the dtype."""
    element = number(value, dtype)
    return compute(tuple(shape), lambda *at: element, name)


def dimension(axis: int, rank: int) -> int:
    """Return a dimension as non-negative: negative ones count from the end; 0 for rank 0."""
    return axis % rank if rank else 0


def dimensions(axes: int | Sequence[int] | None, rank: int) -> list[int]:
    """Return distinct dimensions, non-negative and sorted; all dimensions for None or an empty list; [] for rank 0."""
    listed = [axes] if isinstance(axes, int) else list(axes or range(rank))
    return sorted({dimension(axis, rank) for axis in listed}) if rank else []
