"""`constant`: tensors whose elements the program states."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType

from compiler.dialects.dense import Dense
from compiler.support.errors import InputError, TeError
from compiler.te.expr import const
from compiler.te.index import check_name
from compiler.te.tensor import Constant, Tensor, static_shape
from compiler.types.elements import DTYPES, TYPES, DType, check_dtype
from compiler.types.rounding import rounded, rounded_array

Array: TypeAlias = NDArray[Any]
Elements: TypeAlias = "Array | np.generic | bool | int | float | Sequence[Elements]"
"""An array, a number, or nested lists of numbers."""

ALIGNMENT = 64
"""What the address of a constant's first element is a multiple of, so that a kernel passes it as it is."""

_BY_NUMPY = {row.numpy: row.name for row in DTYPES.values()}
_KINDS = {"b": "i1", "i": "i64", "u": "i64", "f": "f32"}
"""The dtype of lists, by the kind of array that numpy makes of them."""
_INEXACT = 1 << 53
"""Floats of numpy's from here on may be integers of the list, rounded."""


def constant(elements: Elements, dtype: str | None = None, name: str = "c") -> Tensor:
    """A tensor of the elements of an array, of nested lists, or of one number: weights, masks, tables.

    elements: an array of a supported dtype (`ml_dtypes.bfloat16` for bf16), which is copied once, so that later writes
    to it change nothing; or numbers, which are f32, i64 or i1 by default. dtype: the tensor's dtype, by default that of
    the array. Floats are rounded to it; integers must fit.

    `te.function` finds constants by itself: they are no inputs. Raises TeError for an object that is no array of a
    supported dtype, and for integers that do not fit.
    """
    check_name("a tensor", name)
    try:
        frozen, chosen = _frozen(elements, None if dtype is None else check_dtype(dtype))
    except InputError as error:
        raise TeError(f"constant '{name}': {error}") from error
    shape = static_shape(f"constant '{name}'", frozen.shape)
    type = TensorType(TYPES[chosen], shape)
    return Tensor(name, shape, chosen, Constant(name, Dense(type, frozen.reshape(-1).view(np.uint8).data, name)))


def _frozen(elements: Elements, dtype: str | None) -> tuple[Array, str]:
    """A read-only copy of the elements that no one else references, and its dtype."""
    given, natural_dtype = _array(elements)
    chosen = dtype or natural_dtype
    target = DTYPES[chosen].array
    if given.dtype.kind == "O":
        given = _of_numbers(given, chosen)
    with np.errstate(all="ignore"):
        _check_fits(given, chosen, target)
        frozen = _room(given.shape, target)
        bits_differ = chosen == "bf16" and given.dtype != target
        np.copyto(frozen, rounded_array(given, target) if bits_differ else given, casting="unsafe")
    frozen.flags.writeable = False
    return frozen, chosen


def _room(shape: tuple[int, ...], dtype: DType) -> Array:
    """A new array that begins where kernels want constants: at a multiple of ALIGNMENT."""
    size = prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def _array(elements: Elements) -> tuple[Array, str]:
    """The elements as an array, and the dtype that they have by default."""
    if isinstance(elements, np.ndarray | np.generic):
        if isinstance(elements, np.ndarray) and type(elements) not in (np.ndarray, np.memmap):
            raise TeError(f"a constant is a plain array, not a {type(elements).__name__}")
        dtype = _BY_NUMPY.get(elements.dtype.newbyteorder("=").name)
        if dtype is None:
            raise TeError(f"a constant has no dtype {elements.dtype} (there are {', '.join(DTYPES)})")
        return np.asarray(elements), dtype
    try:
        array = _of_lists(elements)
    except (ValueError, TypeError) as error:
        raise TeError(f"a constant is an array, a number, or nested lists of numbers: {error}") from error
    if array.dtype.kind == "O" and all(isinstance(number, int | float) for number in array.flat):
        return array, "f32" if any(isinstance(number, float) for number in array.flat) else "i64"
    if array.dtype.kind not in _KINDS:
        raise TeError(f"a constant is an array, a number, or nested lists of numbers, not {_said(elements)}")
    return array, _KINDS[array.dtype.kind]


def _of_lists(elements: Elements) -> Array:
    """Nested lists as an array; of Python's numbers where numpy's dtypes do not hold the integers among them."""
    try:
        array = np.array(elements)
    except OverflowError:
        return np.array(elements, object)
    is_inexact = array.dtype.kind == "f" and bool((np.abs(array) >= _INEXACT).any())
    return np.array(elements, object) if is_inexact else array


def _of_numbers(given: Array, dtype: str) -> Array:
    """Python's numbers, integers of any size among them, as an array that the dtype's numbers are taken from."""
    if DTYPES[dtype].kind == "f":
        return np.array([rounded(number, dtype) for number in given.flat]).reshape(given.shape)
    return np.array([const(number, dtype).value for number in given.flat], DTYPES[dtype].array).reshape(given.shape)


def _said(elements: object) -> str:
    return "lists with something else" if isinstance(elements, list | tuple) else f"a {type(elements).__name__}"


def _check_fits(given: Array, dtype: str, target: DType) -> None:
    """Raise TeError where a number is no integer, or none of the dtype."""
    row = DTYPES[dtype]
    if row.kind == "f" or given.dtype == target:
        return
    low, high = (0, 1) if row.kind == "b" else row.limits
    if given.dtype.kind not in "iub":
        raise TeError(f"a constant of {dtype} is made of integers, not of {given.dtype}; cast the array")
    if given.size and (int(given.min()) < low or int(given.max()) > high):
        beyond = given.min() if int(given.min()) < low else given.max()
        raise TeError(f"{beyond} is no {dtype}")
