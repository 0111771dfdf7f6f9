"""Conversions between scalar types; those to floats round once, to nearest, ties to even."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from compiler.dialects.upstream.arith import (
    ExtFOp,
    ExtSIOp,
    ExtUIOp,
    FPToSIOp,
    FPToUIOp,
    IndexCastOp,
    SIToFPOp,
    TruncFOp,
    TruncIOp,
    UIToFPOp,
)
from compiler.elementary import Value
from compiler.interpret.numbers import BF16, DType, as_signed, as_unsigned, to_int

Function: TypeAlias = Callable[..., Value]


def _rounded(a: Value, dtype: DType) -> Value:
    """Numbers as floats of a dtype, rounded once: to bf16 by way of f32 rounded to odd, which keeps the sticky bit."""
    if dtype.name != BF16 or a.dtype.itemsize < 4 or a.dtype == np.float32:
        return a.astype(dtype)
    if a.dtype.kind in "iu":
        a = _exact_in_double(a)
    wide = np.asarray(a, np.float64)
    narrow = wide.astype(np.float32)
    bits = narrow.view(np.int32)
    inexact = np.isfinite(narrow) & (narrow.astype(np.float64) != wide)
    towards_zero = bits - (inexact & (np.abs(narrow.astype(np.float64)) > np.abs(wide)))
    odd = np.where(inexact, towards_zero | 1, bits).astype(np.int32)
    return odd.view(np.float32).astype(dtype)[()]


def _exact_in_double(a: Value) -> Value:
    """Integers with so many low bits joined into one that a double holds them, and rounds to bf16 alike."""
    if a.dtype.itemsize < 8:
        return a.astype(np.float64)
    joined = np.where(a & a.dtype.type(2047), (a | a.dtype.type(2048)) & ~a.dtype.type(2047), a)
    small = (a < (1 << 53)) & ((a > -(1 << 53)) if a.dtype.kind == "i" else True)
    return np.where(small, a, joined).astype(np.float64)


CASTS: Mapping[str, Function] = {
    SIToFPOp.name: lambda a, dtype: _rounded(as_signed(a), dtype),
    UIToFPOp.name: lambda a, dtype: _rounded(as_unsigned(a), dtype),
    FPToSIOp.name: lambda a, dtype: to_int(a.astype(np.int64), dtype),
    FPToUIOp.name: lambda a, dtype: to_int(a.astype(np.int64 if dtype.itemsize < 8 else np.uint64), dtype),
    ExtFOp.name: lambda a, dtype: a.astype(dtype),
    TruncFOp.name: _rounded,
    ExtSIOp.name: lambda a, dtype: as_signed(a).astype(dtype),
    ExtUIOp.name: lambda a, dtype: as_unsigned(a).astype(dtype),
    TruncIOp.name: to_int,
    IndexCastOp.name: lambda a, dtype: to_int(as_signed(a), dtype),
}
"""The name of a conversion -> its function of an operand and the dtype of the result."""
