"""The arguments that a kernel expects, and the checks of given arrays, each with its sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.ir import Attribute

from compiler.dialects.numbers import dtype_of
from compiler.support import display
from compiler.support.errors import TargetError
from compiler.targets.address import address
from compiler.targets.arena import arena
from compiler.targets.foreign import as_numpy

Array: TypeAlias = np.ndarray
Passed: TypeAlias = int | float
"""What native code is passed: the address of an array, or a scalar."""


def argument_dtype(element: Attribute, unsigned: bool) -> np.dtype:
    """The dtype of a buffer's elements; index is int64. Raises InputError for bf16 without its package."""
    signed = dtype_of(element)
    return np.dtype(f"u{signed.itemsize}") if unsigned else signed


@dataclass(frozen=True)
class Argument:
    """A name, a shape and a dtype; a scalar may be passed by value instead of as a buffer of rank 0.

    alignment: a divisor of its first element's address, in bytes; at most that of an arena.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    by_value: bool = False
    alignment: int = 1

    @cached_property
    def size(self) -> int:
        """Bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape) if not self.by_value else ''}"


def arguments_html(caption: str, arguments: Sequence[Argument], outputs: int) -> str:
    """The arguments of a kernel as a table of a notebook, the last `outputs` of them results."""
    first = len(arguments) - outputs
    rows = [(a.name, a.dtype, list(a.shape), "input" if n < first else "output") for n, a in enumerate(arguments)]
    return display.table(caption, ("argument", "dtype", "shape", "is"), rows)


def are_apart(starts: Iterable[Passed], sizes: Iterable[int], written: Iterable[bool]) -> bool:
    """Whether no stretch of memory that is written overlaps another one.

    In the order of their starts, a written array must begin behind the ends of all before it, any other array behind
    the ends of the written ones.
    """
    end: Passed = 0
    end_of_written: Passed = 0
    for start, size, is_written in sorted(zip(starts, sizes, written, strict=True)):
        if start < (end if is_written else end_of_written):
            return False
        end = max(end, start + size)
        if is_written:
            end_of_written = max(end_of_written, start + size)
    return True


def rooms(expected: Argument) -> Callable[[], Array]:
    """A function that makes new arrays for an argument, uninitialised."""
    return partial(np.empty if _numpy_aligns(expected) else _from_arena, expected.shape, expected.dtype)


def room(expected: Argument) -> Array:
    """A new array for an argument, its elements not set."""
    return rooms(expected)()


def copied(expected: Argument, array: Array) -> Array:
    """A new array for an argument with the elements of another."""
    if _numpy_aligns(expected):
        return array.astype(expected.dtype, "C")
    new = _from_arena(expected.shape, expected.dtype)
    new[...] = array
    return new


def in_native_order(expected: Argument, array: Array) -> Array | None:
    """A copy of an array that does not fit for its byte order alone; None for others."""
    fits = type(array) is np.ndarray and array.shape == expected.shape
    return copied(expected, array) if fits and array.dtype.newbyteorder("=") == expected.dtype else None


def _numpy_aligns(expected: Argument) -> bool:
    return expected.alignment <= expected.dtype.alignment


def _from_arena(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    size = prod(shape) * dtype.itemsize
    new: Array = arena(size)[:size].view(dtype).reshape(shape)
    return new


def _is_aligned(expected: Argument, array: Array) -> bool:
    stated = expected.alignment
    return bool(array.flags.aligned) and (stated <= array.dtype.alignment or address(array) % stated == 0)


def check_input(kernel: str, expected: Argument, given: object) -> Array:
    """An input as native code can read it: itself, or a copy if it is not contiguous, aligned and native."""
    array = _matching(kernel, expected, given)
    readable = array.dtype.isnative and array.flags.c_contiguous and _is_aligned(expected, array)
    return array if readable else copied(expected, array)


def check_target(kernel: str, expected: Argument, given: object) -> Array:
    """An array that native code may write to as it is."""
    array = _matching(kernel, expected, given)
    for fault, holds in (
        ("not contiguous", not array.flags.c_contiguous),
        ("read-only", not array.flags.writeable),
        ("not aligned to its elements", not array.flags.aligned),
        (f"not aligned to {expected.alignment} bytes", not _is_aligned(expected, array)),
        ("not in the machine's byte order", not array.dtype.isnative),
    ):
        if holds:
            raise TargetError(f"{kernel}: '{expected.name}' is written, but is {fault}")
    return array


def _matching(kernel: str, expected: Argument, given: object) -> Array:
    where = f"{kernel}: argument '{expected.name}'"
    array = as_numpy(where, given)
    if array.shape != expected.shape:
        raise TargetError(f"{where} has shape {array.shape}, expected {expected.shape}")
    if array.dtype != expected.dtype and array.dtype.newbyteorder("=") != expected.dtype:
        raise TargetError(f"{where} has dtype {array.dtype}, expected {expected.dtype}")
    return array


def check_apart(kernel: str, arguments: Sequence[Argument], arrays: Sequence[Array], written: Sequence[bool]) -> None:
    """No array that is written overlaps another one: native code relies on it."""
    for i, target in enumerate(arrays):
        for j, source in enumerate(arrays if written[i] else ()):
            if i != j and np.may_share_memory(target, source) and np.shares_memory(target, source):
                written_name, name = arguments[i].name, arguments[j].name
                raise TargetError(f"{kernel}: '{written_name}' is written, but shares memory with '{name}'")
