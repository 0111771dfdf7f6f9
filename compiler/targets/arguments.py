"""What a kernel expects at each position, and the checks of what is given, each with its sentence."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import add, le
from typing import TypeAlias

import numpy as np
from xdsl.ir import Attribute

from compiler.errors import TargetError
from compiler.interpret.numbers import dtype_of
from compiler.targets.arena import arena

Array: TypeAlias = np.ndarray
Passed: TypeAlias = int | float
"""What native code is passed: the address of an array, or a scalar."""


def argument_dtype(element: Attribute, unsigned: bool) -> np.dtype:
    """The dtype of a buffer's elements; index is int64. Raises InputError for bf16 without its package."""
    found = dtype_of(element)
    return np.dtype(f"u{found.itemsize}") if unsigned else found


@dataclass(frozen=True)
class Argument:
    """A name, a shape and a dtype; a scalar may be passed by value instead of as a buffer of rank 0.

    alignment: what its first element's address is a multiple of, in bytes; at most that of an arena.
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


def address(array: Array) -> int:
    """The address of an array's first element, in a third of the time of `ctypes.data`, which has it of any array."""
    try:
        return ctypes.addressof(_first_byte(array))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # read-only, not contiguous, empty, or of a type that is not exported
        found: int = array.ctypes.data
        return found


_first_byte = ctypes.c_char.from_buffer


def plain(expected: Sequence[Argument], given: Sequence[object]) -> list[Passed] | None:
    """The addresses of arrays that native code can read and write as they are; None where any of them is unusual.

    What is refused here may be right: `check_input` and `check_target` decide, and take their time.
    """
    found = list[Passed]()
    for argument, array in zip(expected, given, strict=True):
        if type(array) is not np.ndarray or array.shape != argument.shape or array.dtype != argument.dtype:
            return None
        if not array.flags.carray:
            return None
        start = address(array)
        if start % argument.alignment:
            return None
        found.append(start)
    return found


def are_apart(starts: Sequence[Passed], sizes: Iterable[int]) -> bool:
    """Whether no two of several stretches of memory overlap: at each start all those before it have ended."""
    ends = sorted(map(add, starts, sizes))
    return all(map(le, ends, sorted(starts)[1:]))


def room(expected: Argument) -> Array:
    """A new array for an argument, its elements not set."""
    if expected.alignment <= expected.dtype.alignment:
        return np.empty(expected.shape, expected.dtype)
    found: Array = arena(expected.size)[: expected.size].view(expected.dtype).reshape(expected.shape)
    return found


def copied(expected: Argument, array: Array) -> Array:
    """A new array for an argument with the elements of another."""
    found = room(expected)
    found[...] = array
    return found


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
    if not isinstance(given, np.ndarray):
        kind = type(given).__name__
        raise TargetError(f"{kernel}: '{expected.name}' is written, but of type {kind}, expected a numpy array")
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


_PLAIN = (np.ndarray, np.memmap)
"""The classes of arrays that mean no more than their elements; others have a mask, or a unit."""


def check_plain(where: str, given: object) -> None:
    """Raise TargetError for a numpy array of a class that gives its elements a further meaning."""
    if isinstance(given, np.ndarray) and type(given) not in _PLAIN:
        raise TargetError(f"{where} is a {type(given).__name__}: only its elements would be seen, give an ndarray")


def _matching(kernel: str, expected: Argument, given: object) -> Array:
    where = f"{kernel}: argument '{expected.name}'"
    if not isinstance(given, np.ndarray | np.generic):
        raise TargetError(f"{where} is a {type(given).__name__}, expected a numpy array")
    check_plain(where, given)
    if given.shape != expected.shape:
        raise TargetError(f"{where} has shape {given.shape}, expected {expected.shape}")
    if given.dtype.newbyteorder("=") != expected.dtype:
        raise TargetError(f"{where} has dtype {given.dtype}, expected {expected.dtype}")
    return np.asarray(given)


def check_apart(kernel: str, arguments: Sequence[Argument], arrays: Sequence[object], written: Sequence[bool]) -> None:
    """No array that is written overlaps another one: native code relies on it."""
    for i, target in enumerate(arrays):
        for j, other in enumerate(arrays):
            if written[i] and i != j and _overlap(target, other):
                name, source = arguments[i].name, arguments[j].name
                raise TargetError(f"{kernel}: '{name}' is written, but shares memory with '{source}'")


def _overlap(a: object, b: object) -> bool:
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return False
    return np.may_share_memory(a, b) and np.shares_memory(a, b)
