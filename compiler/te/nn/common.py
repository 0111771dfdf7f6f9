"""What the named operators share: checks that end in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.errors import TeError
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


def dims(rank: int) -> list[str]:
    """Names for the axes of a tensor of that rank."""
    return [f"i{d}" for d in range(rank)]
