"""What the named operators share: checks that end in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.elements import check_dtype, is_float, width
from compiler.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.tensor import Tensor

Pair = tuple[int, int]


def check_rank(operator: str, tensor: Any, rank: int, layout: str) -> Tensor:
    """The tensor, if it has that rank. Raises TeError."""
    if not isinstance(tensor, Tensor):
        raise TeError(f"{operator}: {tensor!r} is not a tensor")
    if tensor.rank != rank:
        raise TeError(f"{operator}: '{tensor.name}' has shape {tensor.shape}, expected {rank} dimensions ({layout})")
    return tensor


def check_tensor(operator: str, tensor: Any) -> Tensor:
    """The tensor, if it is one. Raises TeError."""
    if not isinstance(tensor, Tensor):
        raise TeError(f"{operator}: {tensor!r} is not a tensor")
    return tensor


def check_equal(operator: str, what: str, left: int, right: int) -> None:
    """Both sizes agree. Raises TeError."""
    if left != right:
        raise TeError(f"{operator}: {what} differ: {left} and {right}")


def pair(operator: str, what: str, value: Any, least: int) -> Pair:
    """An integer or a pair of integers as a pair. Raises TeError for values below `least`."""
    values = (value, value) if isinstance(value, int) else tuple(value) if isinstance(value, Sequence) else ()
    if len(values) != 2 or any(not isinstance(v, int) or v < least for v in values):
        raise TeError(f"{operator}: {what} is {value!r}, expected an integer or a pair, at least {least}")
    return values[0], values[1]


def borders(operator: str, padding: Any) -> tuple[int, int, int, int]:
    """Padding as (top, left, bottom, right), from an integer, a pair (height, width), or the four."""
    if isinstance(padding, Sequence) and len(padding) == 4:
        if any(not isinstance(p, int) or p < 0 for p in padding):
            raise TeError(f"{operator}: padding is {padding!r}, expected integers of at least 0")
        return padding[0], padding[1], padding[2], padding[3]
    height, width = pair(operator, "padding", padding, 0)
    return height, width, height, width


def window_size(operator: str, size: int, kernel: int, stride: int, dilation: int, padding: int) -> int:
    """The number of positions of a window along one axis. Raises TeError where it does not fit once."""
    room = size + padding - dilation * (kernel - 1) - 1
    if room < 0:
        raise TeError(f"{operator}: a window of {kernel} does not fit an extent of {size} padded by {padding}")
    return room // stride + 1


def check_axis(operator: str, tensor: Tensor, axis: Any) -> int:
    """The axis as a non-negative dimension. Raises TeError."""
    if isinstance(axis, bool) or not isinstance(axis, int) or not -tensor.rank <= axis < tensor.rank:
        raise TeError(f"{operator}: '{tensor.name}' has no axis {axis!r} (it has {tensor.rank})")
    return axis % tensor.rank


def check_axes(operator: str, tensor: Tensor, axes: Any) -> list[int]:
    """One axis or several, each once, as non-negative dimensions in order; all of them for None. Raises TeError."""
    given = range(tensor.rank) if axes is None else axes if isinstance(axes, tuple | list | range) else [axes]
    found = [check_axis(operator, tensor, one) for one in given]
    if len(set(found)) != len(found):
        raise TeError(f"{operator}: the axes {axes!r} of '{tensor.name}' name one twice")
    return sorted(found)


def check_number(operator: str, what: str, value: Any) -> float:
    """A finite number. Raises TeError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MOST < value < MOST:
        raise TeError(f"{operator}: {what} is {value!r}, expected a number")
    return float(value)


def is_count(value: Any) -> bool:
    """Whether a value is an integer of at least 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_flag(operator: str, what: str, value: Any) -> bool:
    """True or False. Raises TeError for anything else."""
    if value is not True and value is not False:
        raise TeError(f"{operator}: {what} is {value!r}, expected True or False")
    return bool(value)


MOST = 2**1023
"""What no number of an operator reaches."""


def dims(rank: int) -> list[str]:
    """Names for the axes of a tensor of that rank."""
    return [f"i{d}" for d in range(rank)]


def accumulator(dtype: str) -> str:
    """The dtype in which sums of a dtype are formed: f32 of narrower floats, i32 of narrower integers."""
    if is_float(dtype):
        return "f32" if width(dtype) < 32 else dtype
    return "i32" if width(dtype) < 32 else dtype


def check_float(operator: str, tensor: Any) -> Tensor:
    """The tensor, if it is of a float dtype. Raises TeError."""
    found = check_tensor(operator, tensor)
    if not is_float(found.dtype):
        raise TeError(f"{operator}: '{found.name}' is of {found.dtype}, expected a float dtype")
    return found


def rounded(x: Tensor, dtype: str, name: str) -> Tensor:
    """The tensor converted to a dtype by a compute of its own; itself where it is of that dtype."""
    if x.dtype == dtype:
        return x
    result: Tensor = compute(x.shape, lambda *i: e.cast(x[i], dtype), name, axes=dims(x.rank))
    return result


def several(operator: str, what: str, value: Any, least: int, count: int) -> tuple[int, ...]:
    """An integer, or one for each dimension, as a tuple. Raises TeError for values below `least`."""
    values = (value,) * count if isinstance(value, int) else tuple(value) if isinstance(value, tuple | list) else ()
    if len(values) != count or any(isinstance(v, bool) or not isinstance(v, int) or v < least for v in values):
        raise TeError(f"{operator}: {what} is {value!r}, expected an integer or {count} of them, at least {least}")
    return values


def borders_of(operator: str, padding: Any, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding before and after each dimension, from an integer, one for each dimension, or all of both."""
    if isinstance(padding, tuple | list) and len(padding) == 2 * rank:
        both = several(operator, "padding", padding, 0, 2 * rank)
        return both[:rank], both[rank:]
    each = several(operator, "padding", padding, 0, rank)
    return each, each


def result_dtype(operator: str, own: str, dtype: str | None) -> str:
    """The dtype of a result of sums: the given one, or a float's own, or that in which integers are summed."""
    if dtype is not None:
        return check_dtype(dtype)
    return own if is_float(own) else accumulator(own)


def product(left: Expr, right: Expr, dtype: str) -> Expr:
    """The product of two values in a dtype that holds it. Raises TeError where one is a float and the other is not."""
    if left.dtype != right.dtype and (is_float(left.dtype) or is_float(right.dtype)):
        raise TeError(f"a product of {left.dtype} and {right.dtype}: dtypes do not mix, te.cast one of them")
    if accumulator(right.dtype) != dtype:
        raise TeError(f"a product of {left.dtype} and {right.dtype}: dtypes do not mix, te.cast one of them")
    return e.cast(left, dtype) * e.cast(right, dtype)
