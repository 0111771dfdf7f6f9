"""The arguments of a kernel, and the checks of a caller's arrays; `kernel` is the kernel's name in refusals."""

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
NativeValue: TypeAlias = int | float
"""A value in a native call: the address of an array, or a scalar."""


def argument_dtype(element: Attribute, unsigned: bool) -> np.dtype:
    """Return the numpy dtype of a buffer's elements; index is int64. `unsigned`, for integers only, selects the
    unsigned integer of the same width. Raises InputError for bf16 without the package ml_dtypes."""
    signed = dtype_of(element)
    return np.dtype(f"u{signed.itemsize}") if unsigned else signed


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel: name, shape and dtype; with `by_value` it is a scalar, not a buffer of rank 0.

    alignment: a divisor of the address of the first element, in bytes; at most that of an arena.

    >>> argument = strata.targets.Argument("A", (2, 3), np.dtype("float32"))
    >>> str(argument), argument.size
    ('A: float32[2, 3]', 24)
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    by_value: bool = False
    alignment: int = 1

    @cached_property
    def size(self) -> int:
        """The size in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape) if not self.by_value else ''}"


def arguments_html(caption: str, arguments: Sequence[Argument], outputs: int) -> str:
    """Render the arguments of a kernel as an HTML table for notebooks, with the text `caption` above it; the last
    `outputs` are results."""
    first = len(arguments) - outputs
    rows = [(a.name, a.dtype, list(a.shape), "input" if n < first else "output") for n, a in enumerate(arguments)]
    return display.table(caption, ("argument", "dtype", "shape", "is"), rows)


def are_disjoint(starts: Iterable[NativeValue], sizes: Iterable[int], written: Iterable[bool]) -> bool:
    """Return whether no written array overlaps another one; sizes are in bytes, starts are addresses, and the three
    lists are parallel. In the order of starts, a written array must begin after the ends of all arrays before it, a
    read one after the ends of the written ones. So an empty array that is written overlaps too if it begins inside
    another one."""
    end: NativeValue = 0
    end_of_written: NativeValue = 0
    for start, size, is_written in sorted(zip(starts, sizes, written, strict=True)):
        if start < (end if is_written else end_of_written):
            return False
        end = max(end, start + size)
        if is_written:
            end_of_written = max(end_of_written, start + size)
    return True


def array_factory(expected: Argument) -> Callable[[], Array]:
    """Return a function that allocates a new uninitialised array of an argument's shape, dtype and alignment at each
    call."""
    return partial(np.empty if _numpy_aligns(expected) else _from_arena, expected.shape, expected.dtype)


def new_array(expected: Argument) -> Array:
    """Allocate an uninitialised array of an argument's shape, dtype and alignment."""
    return array_factory(expected)()


def aligned_copy(expected: Argument, array: Array) -> Array:
    """Copy an array, of the shape of an argument, into a new contiguous one with the argument's dtype and alignment;
    other dtypes are cast."""
    if _numpy_aligns(expected):
        return array.astype(expected.dtype, "C")
    copy = _from_arena(expected.shape, expected.dtype)
    copy[...] = array
    return copy


def native_order_copy(expected: Argument, array: Array) -> Array | None:
    """Copy a numpy array of an argument's shape, and of its dtype in any byte order, to a new array in native order;
    return None for any other array."""
    fits = type(array) is np.ndarray and array.shape == expected.shape
    return aligned_copy(expected, array) if fits and array.dtype.newbyteorder("=") == expected.dtype else None


def _numpy_aligns(expected: Argument) -> bool:
    return expected.alignment <= expected.dtype.alignment


def _from_arena(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    size = prod(shape) * dtype.itemsize
    array: Array = arena(size)[:size].view(dtype).reshape(shape)
    return array


def _is_aligned(expected: Argument, array: Array) -> bool:
    alignment = expected.alignment
    return bool(array.flags.aligned) and (alignment <= array.dtype.alignment or address(array) % alignment == 0)


def check_input(kernel: str, expected: Argument, value: object) -> Array:
    """Return `value` as a numpy array: on the same memory if it is contiguous, aligned and in native byte order, else a
    copy. Raises TargetError for a value that is no array in the memory of the CPU, that requires a gradient, or is of a
    subclass that may have a mask or a unit, and for another shape or dtype, whatever the byte order."""
    array = _matching(kernel, expected, value)
    readable = array.dtype.isnative and array.flags.c_contiguous and _is_aligned(expected, array)
    return array if readable else aligned_copy(expected, array)


def check_output(kernel: str, expected: Argument, value: object) -> Array:
    """Return a numpy array on the memory of `value`, for native code to write. Raises TargetError for a value that is
    no array in the memory of the CPU, that requires a gradient, or is of a subclass that may have a mask or a unit, for
    another shape or dtype, and for an array that is not contiguous, writable, aligned and in native byte order."""
    array = _matching(kernel, expected, value)
    for fault, has_fault in (
        ("not contiguous", not array.flags.c_contiguous),
        ("read-only", not array.flags.writeable),
        ("not aligned to its elements", not array.flags.aligned),
        (f"not aligned to {expected.alignment} bytes", not _is_aligned(expected, array)),
        ("not in the machine's byte order", not array.dtype.isnative),
    ):
        if has_fault:
            raise TargetError(f"{kernel}: '{expected.name}' is written, but is {fault}")
    return array


def _matching(kernel: str, expected: Argument, value: object) -> Array:
    label = f"{kernel}: argument '{expected.name}'"
    array = as_numpy(label, value)
    if array.shape != expected.shape:
        raise TargetError(f"{label} has shape {array.shape}, expected {expected.shape}")
    if array.dtype != expected.dtype and array.dtype.newbyteorder("=") != expected.dtype:
        raise TargetError(f"{label} has dtype {array.dtype}, expected {expected.dtype}")
    return array


def check_disjoint(
    kernel: str, arguments: Sequence[Argument], arrays: Sequence[Array], written: Sequence[bool]
) -> None:
    """Raise TargetError if a written array shares memory with another one: native code assumes that none does.
    `arguments` name the arrays in the message; `written`: for each array, whether the kernel writes it."""
    for i, written_array in enumerate(arrays):
        for j, array in enumerate(arrays if written[i] else ()):
            if i != j and np.may_share_memory(written_array, array) and np.shares_memory(written_array, array):
                written_name, name = arguments[i].name, arguments[j].name
                raise TargetError(f"{kernel}: '{written_name}' is written, but shares memory with '{name}'")
