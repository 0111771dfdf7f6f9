"""Scalar types as numpy dtypes: integers wrap at their width, i1 is bool, bf16 is from the package ml_dtypes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute

from compiler.dialects.dense_elements import Dense
from compiler.dialects.mathematics import Value
from compiler.support.errors import InputError
from compiler.types.dtypes import DTYPES, DType, row_of

Array: TypeAlias = NDArray[Any]  # of such elements

BF16 = DTYPES["bf16"].numpy
"""The name of numpy's dtype for bf16, which the package ml_dtypes brings."""

__all__ = ["BF16", "Array", "DType", "array_of", "as_signed", "as_unsigned", "constant", "dtype_of", "is_float"]
__all__ += ["loaded", "stored", "to_int"]


def dtype_of(type: Attribute, floats: DType | None = None) -> DType:
    """The numpy dtype of an element or scalar type, int64 for index; `floats`, if any, replaces the dtype of floats.
    Raises InputError for a type without a dtype."""
    row = row_of(type)
    if row is None and not isinstance(type, IndexType):
        raise InputError(f"the interpreter has no numbers of type {type}")
    if row is None:
        return np.dtype(np.int64)
    if row.kind == "f" and floats is not None:
        return floats
    return row.array


def is_float(dtype: DType) -> bool:
    """Whether a dtype is of floats, bf16 included."""
    return dtype.kind == "f" or dtype.name == BF16


def loaded(value: Value) -> Value:
    """Load an array as scalar values: unsigned integers become signed ones of the same bits."""
    return value.view(f"i{value.dtype.itemsize}") if value.dtype.kind == "u" else value


def stored(value: Value, dtype: DType) -> Value:
    """Undo `loaded` for a dtype: view signed integers as unsigned ones; other values stay as they are."""
    return value.view(dtype) if dtype.kind == "u" and value.dtype.kind == "i" else value


def constant(attribute: Attribute, floats: DType | None = None) -> Value:
    """The numpy scalar of a FloatAttr, of dtype `floats` if stated, or of an IntegerAttr, wrapped to its width. Raises
    InputError for any other attribute, or a type without a dtype."""
    if isinstance(attribute, FloatAttr):
        return dtype_of(attribute.type, floats).type(attribute.value.data)
    if isinstance(attribute, IntegerAttr):
        bits = np.uint64(attribute.value.data & (2**64 - 1))
        return to_int(bits, dtype_of(attribute.type))
    raise InputError(f"{attribute} is not a scalar constant")


def array_of(dense: Dense, floats: DType | None = None) -> Array:
    """The elements of a tensor constant, read-only and not copied unless `floats` replaces their dtype. Raises
    InputError for an element type without a dtype."""
    element = dense.type.element_type
    array: Array = np.frombuffer(dense.data, dtype_of(element)).reshape(dense.shape)
    return array.astype(dtype_of(element, floats), copy=False)


def to_int(value: Value, dtype: DType) -> Value:
    """Convert integers to an integer dtype: a narrower one keeps the low bits, a wider one the value; bool is the
    lowest bit."""
    if dtype == np.bool_:
        return (value & value.dtype.type(1)).astype(np.bool_)
    return value.astype(dtype)


def as_signed(value: Value) -> Value:
    """Return integers, which `loaded` has made signed, unchanged, and truth values as 0 or -1 of int8."""
    return -value.astype(np.int8) if value.dtype == np.bool_ else value


def as_unsigned(value: Value) -> Value:
    """Reinterpret integers as unsigned ones of the same width; truth values become 0 or 1 of uint8."""
    return value.astype(f"u{value.dtype.itemsize}")
