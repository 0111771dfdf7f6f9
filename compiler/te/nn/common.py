"""Argument checks and helpers of the named operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from reprlib import repr as short
from typing import TypeAlias, TypeVar

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import IndexLike
from compiler.te.sizes import Dim, dims_text, same
from compiler.te.tensor import Tensor
from compiler.types.dtypes import check_dtype, is_float, width

Sizes: TypeAlias = int | Sequence[int]
"""An integer for all dimensions, or one for each."""
Pair: TypeAlias = tuple[int, int]
Indices: TypeAlias = tuple[IndexLike, ...]
"""The index of an element, one component a dimension."""


F = TypeVar("F", bound=Callable[..., Tensor])


def named(name: str, doc: str) -> Callable[[F], F]:
    """Return a decorator that sets the name and the docstring of an operator made by a factory."""

    def decorate(operator: F) -> F:
        operator.__name__ = operator.__qualname__ = name
        operator.__doc__ = doc
        return operator

    return decorate


def _no_tensor(operator: str, argument: object) -> TeError:
    """Return a TeError for an argument that is not a tensor; its message omits the elements of arrays."""
    if hasattr(argument, "shape"):
        kind = f"an array ({type(argument).__name__})"
        return TeError(f"{operator}: {kind} is not a tensor: te.placeholder is an input, te.constant has an array")
    return TeError(f"{operator}: {short(argument)} is not a tensor")


def check_rank(operator: str, tensor: object, rank: int, layout: str) -> Tensor:
    """Raise TeError, with `layout` such as "N, C, H, W", unless the argument is a tensor of that rank; return it."""
    if not isinstance(tensor, Tensor):
        raise _no_tensor(operator, tensor)
    if tensor.rank != rank:
        dims = dims_text(tensor.dims)
        raise TeError(f"{operator}: '{tensor.name}' has shape {dims}, expected {rank} dimensions ({layout})")
    return tensor


def check_tensor(operator: str, tensor: object) -> Tensor:
    """Raise TeError unless the argument is a tensor; return it."""
    if not isinstance(tensor, Tensor):
        raise _no_tensor(operator, tensor)
    return tensor


def check_equal(operator: str, what: str, left: Dim, right: Dim) -> None:
    """Raise TeError, which calls the pair `what`, unless two extents are equal for all sizes."""
    if not same(left, right):
        raise TeError(f"{operator}: {what} differ: {left} and {right}")


def check_axis(operator: str, tensor: Tensor, axis: object) -> int:
    """Raise TeError unless `axis` is a dimension of the tensor; return it as non-negative."""
    if isinstance(axis, bool) or not isinstance(axis, int) or not -tensor.rank <= axis < tensor.rank:
        raise TeError(f"{operator}: '{tensor.name}' has no axis {axis!r} (it has {tensor.rank})")
    return axis % tensor.rank


def check_axes(operator: str, tensor: Tensor, axes: object) -> list[int]:
    """Return axes as non-negative, sorted dimensions; all for None. Raises TeError for repeated or unknown axes."""
    listed_axes = range(tensor.rank) if axes is None else axes if isinstance(axes, tuple | list | range) else [axes]
    dimensions = [check_axis(operator, tensor, axis) for axis in listed_axes]
    if len(set(dimensions)) != len(dimensions):
        raise TeError(f"{operator}: the axes {axes!r} of '{tensor.name}' name one twice")
    return sorted(dimensions)


def check_number(operator: str, what: str, value: object) -> float:
    """Raise TeError unless a value, called `what`, is a number of magnitude below NUMBER_BOUND; return a float."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -NUMBER_BOUND < value < NUMBER_BOUND:
        raise TeError(f"{operator}: {what} is {value!r}, expected a number")
    return float(value)


def is_count(value: object) -> bool:
    """Return whether a value is an integer of at least 0; False for bools."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_flag(operator: str, what: str, value: object) -> bool:
    """Raise TeError unless a value, called `what`, is True or False; return it."""
    if value is not True and value is not False:
        raise TeError(f"{operator}: {what} is {value!r}, expected True or False")
    return bool(value)


NUMBER_BOUND = 2**1023
"""The exclusive bound on absolute values of numeric arguments of operators; it excludes infinity and NaN."""


def accumulator(dtype: str) -> str:
    """Return the dtype of sums of a dtype: f32 for narrower floats, u32 for u16, i32 for other integers below 32 bits
    and i1; other dtypes are their own."""
    if width(dtype) >= 32:
        return dtype
    if is_float(dtype):
        return "f32"
    return "u32" if dtype == "u16" else "i32"


def check_float(operator: str, tensor: object) -> Tensor:
    """Raise TeError unless the argument is a tensor of a float dtype; return it."""
    checked = check_tensor(operator, tensor)
    if not is_float(checked.dtype):
        raise TeError(f"{operator}: '{checked.name}' is of {checked.dtype}, expected a float dtype")
    return checked


def astype(x: Tensor, dtype: str, name: str) -> Tensor:
    """Convert a tensor to a dtype by a compute called `name`; return it unchanged if it has that dtype."""
    if x.dtype == dtype:
        return x
    return compute(x.dims, lambda *i: e.cast(x[i], dtype), name)


def per_dim(operator: str, what: str, value: object, minimum: int, count: int) -> tuple[int, ...]:
    """Return an integer, or a list of `count`, as a tuple of `count`. Raises TeError, with `what` as the argument's
    name, for other values and for integers below `minimum`."""
    values = (value,) * count if isinstance(value, int) else tuple(value) if isinstance(value, tuple | list) else ()
    if len(values) != count or any(isinstance(v, bool) or not isinstance(v, int) or v < minimum for v in values):
        raise TeError(f"{operator}: {what} is {value!r}, expected an integer or {count} of them, at least {minimum}")
    return values


def result_dtype(operator: str, operand_dtype: str, dtype: str | None) -> str:
    """Return the dtype of a sum's result: `dtype`, by default a float operand's own, or an integer's accumulator.
    Raises TeError for an unknown dtype."""
    if dtype is not None:
        return check_dtype(dtype)
    return operand_dtype if is_float(operand_dtype) else accumulator(operand_dtype)


def product(left: Expr, right: Expr, dtype: str) -> Expr:
    """Multiply two scalars, cast to `dtype`, the accumulator of both. Raises TeError for incompatible dtypes."""
    if left.dtype != right.dtype and (is_float(left.dtype) or is_float(right.dtype)):
        raise TeError(f"a product of {left.dtype} and {right.dtype}: dtypes do not mix, te.cast one of them")
    if accumulator(right.dtype) != dtype:
        raise TeError(f"a product of {left.dtype} and {right.dtype}: dtypes do not mix, te.cast one of them")
    return e.cast(left, dtype) * e.cast(right, dtype)
