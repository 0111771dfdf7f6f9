"""Scalar types as numpy holds them: integers wrap at their width, i1 is bool, bf16 is of the package ml_dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute

from compiler.dialects.types import is_unsigned
from compiler.errors import InputError

Value: TypeAlias = Any  # a numpy scalar or array
DType: TypeAlias = np.dtype[Any]

BF16 = "bfloat16"
"""The name of numpy's dtype for bf16, which the package ml_dtypes brings."""

_FLOAT_DTYPES: Mapping[type, DType] = {
    Float16Type: np.dtype(np.float16),
    Float32Type: np.dtype(np.float32),
    Float64Type: np.dtype(np.float64),
}
_INT_DTYPES: Mapping[int, DType] = {1: np.dtype(np.bool_)} | {w: np.dtype(f"i{w // 8}") for w in (8, 16, 32, 64)}


def dtype_of(type_: Attribute, floats: DType | None = None) -> DType:
    """The numpy dtype of an element or scalar type; raises InputError where numpy has none."""
    found: DType | None = None
    if isinstance(type_, AnyFloat):
        found = floats or (bfloat16() if isinstance(type_, BFloat16Type) else _FLOAT_DTYPES.get(type(type_)))
    elif isinstance(type_, IndexType):
        found = np.dtype(np.int64)
    elif isinstance(type_, IntegerType):
        found = _INT_DTYPES.get(type_.width.data)
        if found is not None and is_unsigned(type_):
            found = np.dtype(f"u{found.itemsize}")
    if found is None:
        raise InputError(f"the interpreter has no numbers of type {type_}")
    return found


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
