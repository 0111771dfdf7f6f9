"""What the families share: operators of elements, with torch's broadcasting and promotion."""

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
from compiler.types.elements import is_float, width
from compiler.types.rounding import rounded

Operand: TypeAlias = Tensor | float
"""A tensor, or a number that stands for one."""


def working(dtype: str) -> str:
    """The dtype in which elements of a dtype are computed: f32 of narrower floats, i8 of truth values."""
    return accumulator(dtype) if is_float(dtype) else "i8" if dtype == "i1" else dtype


def read(operand: Operand, at: Indices, dtype: str) -> Expr:
    """The element of an operand that is broadcast to an index, in a dtype."""
    if not isinstance(operand, Tensor):
        return number(operand, dtype)
    stated = literal(operand)
    if stated is not None:
        return number(stated, dtype)
    return e.cast(read_at(operand, at), dtype)


def number(value: object, dtype: str) -> Const:
    """A number of torch's in a dtype; float numbers become integers by truncation, and halves by way of f32, as in
    torch. Raises Unsupported."""
    if not isinstance(value, int | float):
        raise Unsupported(f"{value!r} is not a real number")
    if dtype == "i1":
        return Const(bool(value), "i1")
    if is_float(dtype):
        return e.const(rounded(value, "f32") if width(dtype) == 16 else value, dtype)
    if not math.isfinite(value):
        raise Unsupported(f"{value!r} is no integer")
    return e.const(int(value), dtype)


def zero(tensor: Tensor) -> int:
    """The zero of a tensor's dtype."""
    return False if tensor.dtype == "i1" else 0


def literal(tensor: Tensor) -> float | None:
    """The number that all elements of a tensor are stated to be, as its dtype holds it."""
    source = tensor.source
    body = source.bodies[0] if isinstance(source, Compute) and not source.reduce else None
    return narrowed(body.value, tensor.dtype) if isinstance(body, Const) else None


def narrowed(value: float, dtype: str) -> float:
    """A number as a dtype of narrow floats holds it, by way of f32 as in torch; itself for other dtypes."""
    narrow = is_float(dtype) and width(dtype) == 16
    return rounded(rounded(value, "f32"), dtype) if narrow else value


def promoted(operand: Operand, dtype: str, name: str, exact: bool = False) -> Operand:
    """An operand as torch's loops over elements take it: a tensor in the common dtype, a number rounded to it.

    Where torch takes numbers, and tensors without dimensions, as they are (`exact`), they stay.
    """
    if not isinstance(operand, Tensor):
        return operand if exact else narrowed(operand, dtype)
    stays = (exact and not operand.rank) or not is_float(dtype) or width(dtype) >= 32
    return operand if stays else converted(operand, dtype, name)


def pointwise(
    call: Call, formula: Callable[..., Scalar], *operands: Operand, dtype: str | None = None, name: str | None = None
) -> Tensor:
    """A formula of operands, each converted to a dtype, by default that of the result, to which it is rounded once."""
    computed_in = working(dtype or call.dtype)

    def element(*at: Index) -> Expr:
        value = as_expr(formula(*(read(operand, at, computed_in) for operand in operands)), computed_in)
        return e.cast(value, call.dtype)

    return compute(call.shape, element, name or call.name)


def converted(tensor: Tensor, dtype: str, name: str) -> Tensor:
    """A tensor as another dtype; itself where it is of that one."""
    if tensor.dtype == dtype:
        return tensor
    return compute(tensor.shape, lambda *at: e.cast(read(tensor, at, tensor.dtype), dtype), name)


def reshaped(tensor: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    """A tensor under another shape; itself where it has that one."""
    return tensor if tensor.shape == shape else nn.reshape(tensor, shape, name)


def flattened(tensor: Tensor, name: str) -> Tensor:
    """The elements of a tensor as a vector; a vector itself."""
    return reshaped(tensor, (math.prod(tensor.shape),), name)


def shaped(call: Call, tensor: Tensor, position: int = 0) -> Tensor:
    """A tensor as a result of a call: in its shape and dtype."""
    name = f"{call.name}.{position}"
    return converted(reshaped(tensor, call.shapes[position], f"{name}.shaped"), call.dtypes[position], name)


def each(values: Sequence[int] | int, rank: int) -> tuple[int, ...]:
    """One number for each dimension: torch may give one for all."""
    given = (values,) if isinstance(values, int) else tuple(values)
    return given if len(given) == rank else given * rank


def filled(shape: Sequence[int], value: float, dtype: str, name: str) -> Tensor:
    """A tensor of equal elements."""
    stated = number(value, dtype)
    return compute(tuple(shape), lambda *at: stated, name)


def dimension(axis: int, rank: int) -> int:
    """A dimension that may count from the end."""
    return axis % rank if rank else 0


def dimensions(axes: int | Sequence[int] | None, rank: int) -> list[int]:
    """Several dimensions in order; all of them for None or none."""
    given = [axes] if isinstance(axes, int) else list(axes or range(rank))
    return sorted({dimension(axis, rank) for axis in given}) if rank else []
