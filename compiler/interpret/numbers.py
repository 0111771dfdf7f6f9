"""Scalar types as numpy holds them: integers wrap at their width, i1 is bool, bf16 is of the package ml_dtypes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute

from compiler.elementary import Value
from compiler.elements import DTYPES, row_of
from compiler.errors import InputError

DType: TypeAlias = np.dtype[Any]  # of elements that the program says
Array: TypeAlias = NDArray[Any]  # of such elements

BF16 = DTYPES["bf16"].numpy
"""The name of numpy's dtype for bf16, which the package ml_dtypes brings."""


def dtype_of(type: Attribute, floats: DType | None = None) -> DType:
    """The numpy dtype of an element or scalar type; `floats` replaces that of floats. Raises InputError without one."""
    row = row_of(type)
    if row is None and not isinstance(type, IndexType):
        raise InputError(f"the interpreter has no numbers of type {type}")
    if row is None:
        return np.dtype(np.int64)
    if row.kind == "f" and floats is not None:
        return floats
    return bfloat16() if row.numpy == BF16 else np.dtype(row.numpy)


def bfloat16() -> DType:
    """numpy's dtype for bf16. Raises InputError where the package that brings it is not installed."""
    try:
        from ml_dtypes import bfloat16 as found
    except ImportError as error:
        raise InputError("arrays of bf16 need the package ml_dtypes: install strata-compiler[bf16]") from error
    dtype: DType = np.dtype(found)
    return dtype


def is_float(dtype: DType) -> bool:
    """Whether a dtype is of floats, bf16 included."""
    return dtype.kind == "f" or dtype.name == BF16


def loaded(value: Value) -> Value:
    """What a read of an array gives: integers without sign as signed ones of the same bits."""
    return value.view(f"i{value.dtype.itemsize}") if value.dtype.kind == "u" else value


def stored(value: Value, dtype: DType) -> Value:
    """A value as an array of a dtype holds it."""
    return value.view(dtype) if dtype.kind == "u" and value.dtype.kind == "i" else value


def constant(attribute: Attribute, floats: DType | None = None) -> Value:
    """The value of a FloatAttr (which holds it rounded to its type) or IntegerAttr, wrapped to its type."""
    if isinstance(attribute, FloatAttr):
        return dtype_of(attribute.type, floats).type(attribute.value.data)
    if isinstance(attribute, IntegerAttr):
        bits = np.uint64(attribute.value.data & (2**64 - 1))
        return to_int(bits, dtype_of(attribute.type))
    raise InputError(f"{attribute} is not a scalar constant")


def to_int(value: Value, dtype: DType) -> Value:
    """The low bits of an integer, as one of a dtype."""
    if dtype == np.bool_:
        return (value & value.dtype.type(1)).astype(np.bool_)
    return value.astype(dtype)


def as_signed(value: Value) -> Value:
    """The value in signed arithmetic, where true is -1."""
    return -value.astype(np.int8) if value.dtype == np.bool_ else value


def as_unsigned(value: Value) -> Value:
    """The same bits without sign."""
    return value.astype(f"u{value.dtype.itemsize}")
