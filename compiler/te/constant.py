"""`constant`: tensors of literal elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType

from compiler.dialects.dense_elements import Dense
from compiler.support.errors import InputError, TeError
from compiler.te.expr import const
from compiler.te.index import check_name
from compiler.te.tensor import Constant, Tensor, static_shape
from compiler.types.dtypes import DTYPES, TYPES, DType, check_dtype
from compiler.types.rounding import rounded, rounded_array

Array: TypeAlias = NDArray[Any]
Elements: TypeAlias = "Array | np.generic | bool | int | float | Sequence[Elements]"
"""An array, a number, or nested lists of numbers."""

ALIGNMENT = 64
"""The alignment of a constant's memory in bytes, enough for kernels to use it without a copy."""

_BY_NUMPY = {row.numpy: row.name for row in DTYPES.values()}
_KINDS = {"b": "i1", "i": "i64", "u": "i64", "f": "f32"}
"""The default dtype of lists, by the kind of the array that numpy makes of them."""
_INEXACT = 1 << 53
"""The least absolute value for which numpy's float may be a rounded integer of the list."""


def constant(elements: Elements, dtype: str | None = None, name: str = "c") -> Tensor:
    """A tensor of literal elements from an array, nested lists or a number: weights, masks, tables.

    elements: an array of a supported dtype (`ml_dtypes.bfloat16` for bf16), which is copied, so later writes to it have
    no effect; or numbers, by default f32, i64 or i1. dtype: the tensor's dtype, by default the array's. Floats are
    rounded to it; integers must fit.

    Constants are not inputs of `te.function`. Raises TeError for an object that is no array of a supported dtype, for
    an array without elements, for floats as an integer dtype, and for integers out of the dtype's range.

    >>> te.constant([[1.0, 2.0], [3.0, 4.0]], name="W")
    <Tensor W: f32[2, 2]>
    >>> te.constant(np.arange(3))
    <Tensor c: i64[3]>
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
    """Copy elements, cast to a dtype (None: that of _array), to read-only memory of the copy's own; return copy and
    dtype. Raises TeError for elements that do not fit."""
    source, natural_dtype = _array(elements)
    chosen = dtype or natural_dtype
    target = DTYPES[chosen].array
    if source.dtype.kind == "O":
        source = _of_numbers(source, chosen)
    with np.errstate(all="ignore"):
        _check_fits(source, chosen, target)
        frozen = _aligned_empty(source.shape, target)
        bits_differ = chosen == "bf16" and source.dtype != target
        np.copyto(frozen, rounded_array(source, target) if bits_differ else source, casting="unsafe")
    frozen.flags.writeable = False
    return frozen, chosen


def _aligned_empty(shape: tuple[int, ...], dtype: DType) -> Array:
    """Allocate an array whose address is a multiple of ALIGNMENT."""
    size = prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def _array(elements: Elements) -> tuple[Array, str]:
    """Return the elements as an array, of Python's numbers if numpy's are too narrow, and their dtype: an array's own,
    f32, i64 or i1 for lists and numbers. Raises TeError for other objects and dtypes."""
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
        raise TeError(f"a constant is an array, a number, or nested lists of numbers, not {_kind_of(elements)}")
    return array, _KINDS[array.dtype.kind]


def _of_lists(elements: Elements) -> Array:
    """Convert nested lists to an array; of Python's numbers if numpy's dtypes cannot represent an integer."""
    try:
        array = np.array(elements)
    except OverflowError:
        return np.array(elements, object)
    is_inexact = array.dtype.kind == "f" and bool((np.abs(array) >= _INEXACT).any())
    return np.array(elements, object) if is_inexact else array


def _of_numbers(numbers: Array, dtype: str) -> Array:
    """Convert an array of Python's numbers to one of numpy's: for a float dtype f64 numbers rounded to it, else numbers
    of the dtype. Raises TeError for a number that an integer dtype cannot represent."""
    if DTYPES[dtype].kind == "f":
        return np.array([rounded(number, dtype) for number in numbers.flat]).reshape(numbers.shape)
    return np.array([const(number, dtype).value for number in numbers.flat], DTYPES[dtype].array).reshape(numbers.shape)


def _kind_of(elements: object) -> str:
    return "lists with something else" if isinstance(elements, list | tuple) else f"a {type(elements).__name__}"


def _check_fits(source: Array, dtype: str, target: DType) -> None:
    """Raise TeError if an integer dtype cannot represent an array: it has floats, or an element out of range."""
    row = DTYPES[dtype]
    if row.kind == "f" or source.dtype == target:
        return
    low, high = (0, 1) if row.kind == "b" else row.limits
    if source.dtype.kind not in "iub":
        raise TeError(f"a constant of {dtype} is made of integers, not of {source.dtype}; cast the array")
    if source.size and (int(source.min()) < low or int(source.max()) > high):
        extreme = source.min() if int(source.min()) < low else source.max()
        raise TeError(f"{extreme} is no {dtype}")
