"""What the named operators share: checks that end in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from reprlib import repr as short
from typing import TypeAlias, TypeVar

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import IndexLike
from compiler.te.tensor import Tensor
from compiler.types.elements import check_dtype, is_float, width

Sizes: TypeAlias = int | Sequence[int]
"""One integer for all dimensions, or one for each."""
Pair: TypeAlias = tuple[int, int]
Indices: TypeAlias = tuple[IndexLike, ...]
"""The index of an element."""


F = TypeVar("F", bound=Callable[..., Tensor])


def named(name: str, doc: str) -> Callable[[F], F]:
    """Gives an operator that a factory makes its name and its docstring."""

    def decorate(operator: F) -> F:
        operator.__name__ = operator.__qualname__ = name
        operator.__doc__ = doc
        return operator

    return decorate


def _no_tensor(operator: str, given: object) -> TeError:
    """The refusal of what is given in the place of a tensor; an array is not shown."""
    if hasattr(given, "shape"):
        kind = f"an array ({type(given).__name__})"
        return TeError(f"{operator}: {kind} is not a tensor: te.placeholder is an input, te.constant has an array")
    return TeError(f"{operator}: {short(given)} is not a tensor")


def check_rank(operator: str, tensor: object, rank: int, layout: str) -> Tensor:
    """The tensor, if it has that rank. Raises TeError."""
    if not isinstance(tensor, Tensor):
        raise _no_tensor(operator, tensor)
    if tensor.rank != rank:
        raise TeError(f"{operator}: '{tensor.name}' has shape {tensor.shape}, expected {rank} dimensions ({layout})")
    return tensor


def check_tensor(operator: str, tensor: object) -> Tensor:
    """The tensor, if it is one. Raises TeError."""
    if not isinstance(tensor, Tensor):
        raise _no_tensor(operator, tensor)
    return tensor


def check_equal(operator: str, what: str, left: int, right: int) -> None:
    """Both sizes agree. Raises TeError."""
    if left != right:
        raise TeError(f"{operator}: {what} differ: {left} and {right}")


def check_axis(operator: str, tensor: Tensor, axis: object) -> int:
    """The axis as a non-negative dimension. Raises TeError."""
    if isinstance(axis, bool) or not isinstance(axis, int) or not -tensor.rank <= axis < tensor.rank:
        raise TeError(f"{operator}: '{tensor.name}' has no axis {axis!r} (it has {tensor.rank})")
    return axis % tensor.rank


def check_axes(operator: str, tensor: Tensor, axes: object) -> list[int]:
    """One axis or several, each once, as non-negative dimensions in order; all of them for None. Raises TeError."""
    given = range(tensor.rank) if axes is None else axes if isinstance(axes, tuple | list | range) else [axes]
    dimensions = [check_axis(operator, tensor, axis) for axis in given]
    if len(set(dimensions)) != len(dimensions):
        raise TeError(f"{operator}: the axes {axes!r} of '{tensor.name}' name one twice")
    return sorted(dimensions)


def check_number(operator: str, what: str, value: object) -> float:
    """A finite number. Raises TeError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MOST < value < MOST:
        raise TeError(f"{operator}: {what} is {value!r}, expected a number")
    return float(value)


def is_count(value: object) -> bool:
    """Whether a value is an integer of at least 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_flag(operator: str, what: str, value: object) -> bool:
    """True or False. Raises TeError for anything else."""
    if value is not True and value is not False:
        raise TeError(f"{operator}: {what} is {value!r}, expected True or False")
    return bool(value)


MOST = 2**1023
"""A bound that no number of an operator reaches."""


def accumulator(dtype: str) -> str:
    """The dtype in which sums of a dtype are formed: f32 of narrower floats, i32 of narrower integers, u32 of u16."""
    if width(dtype) >= 32:
        return dtype
    if is_float(dtype):
        return "f32"
    return "u32" if dtype == "u16" else "i32"


def check_float(operator: str, tensor: object) -> Tensor:
    """The tensor, if it is of a float dtype. Raises TeError."""
    checked = check_tensor(operator, tensor)
    if not is_float(checked.dtype):
        raise TeError(f"{operator}: '{checked.name}' is of {checked.dtype}, expected a float dtype")
    return checked


def rounded(x: Tensor, dtype: str, name: str) -> Tensor:
    """The tensor converted to a dtype by a compute of its own; itself where it is of that dtype."""
    if x.dtype == dtype:
        return x
    return compute(x.shape, lambda *i: e.cast(x[i], dtype), name)


def several(operator: str, what: str, value: object, minimum: int, count: int) -> tuple[int, ...]:
    """An integer, or one for each dimension, as a tuple. Raises TeError for values below `minimum`."""
    values = (value,) * count if isinstance(value, int) else tuple(value) if isinstance(value, tuple | list) else ()
    if len(values) != count or any(isinstance(v, bool) or not isinstance(v, int) or v < minimum for v in values):
        raise TeError(f"{operator}: {what} is {value!r}, expected an integer or {count} of them, at least {minimum}")
    return values


def result_dtype(operator: str, operand_dtype: str, dtype: str | None) -> str:
    """The dtype of a result of sums: the given one, or a float's own, or that in which integers are summed."""
    if dtype is not None:
        return check_dtype(dtype)
    return operand_dtype if is_float(operand_dtype) else accumulator(operand_dtype)


def product(left: Expr, right: Expr, dtype: str) -> Expr:
    """The product of two values in a dtype that holds it. Raises TeError where one is a float and the other is not."""
    if left.dtype != right.dtype and (is_float(left.dtype) or is_float(right.dtype)):
        raise TeError(f"a product of {left.dtype} and {right.dtype}: dtypes do not mix, te.cast one of them")
    if accumulator(right.dtype) != dtype:
        raise TeError(f"a product of {left.dtype} and {right.dtype}: dtypes do not mix, te.cast one of them")
    return e.cast(left, dtype) * e.cast(right, dtype)
