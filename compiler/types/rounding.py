"""Correct rounding to a float dtype: once, to nearest, ties to even, overflow to infinity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type

from compiler.types.dtypes import DTYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from compiler.types.dtypes import DType

_DIGITS = 53
"""The binary digits of a Python float."""


def rounded(value: float, dtype: str) -> float:
    """Round a number, also an integer of any size, to a float dtype, given by its name: once, to nearest even; to
    infinity beyond the largest number. NaN stays NaN."""
    row = DTYPES[dtype]
    if value != value:
        return math.nan
    if abs(value) >= row.infinite:
        return math.inf if value > 0 else -math.inf
    rounds_directly = float(value) if row.bits == 64 or isinstance(value, float) else _rounded_to_odd(value)
    assert isinstance(row.type, BFloat16Type | Float16Type | Float32Type | Float64Type)
    return float(row.type.unpack(row.type.pack((rounds_directly,)), 1)[0])


def _rounded_to_odd(value: int) -> float:
    """Round an integer to a double, to odd: its last bit is 1 if bits were lost, so that rounding it again is
    correct."""
    lost = max(0, abs(value).bit_length() - _DIGITS)
    digits = abs(value) >> lost
    digits |= bool(abs(value) & ((1 << lost) - 1))
    return math.copysign(math.ldexp(digits, lost), value)


def rounded_array(array: NDArray[Any], dtype: DType) -> Any:
    """Round an array of numbers to a new one of a float dtype; to bf16 from wider types through f32 rounded to odd,
    since ml_dtypes would round twice."""
    import numpy as np

    if dtype.name != DTYPES["bf16"].numpy or array.dtype.itemsize < 4 or array.dtype == np.float32:
        return array.astype(dtype)
    if array.dtype.kind in "iu":
        array = _exact_in_double(array)
    wide = np.asarray(array, np.float64)
    narrow = wide.astype(np.float32)
    bits = narrow.view(np.int32)
    inexact = np.isfinite(narrow) & (narrow.astype(np.float64) != wide)
    towards_zero = bits - (inexact & (np.abs(narrow.astype(np.float64)) > np.abs(wide)))
    odd = np.where(inexact, towards_zero | 1, bits).astype(np.int32)
    return odd.view(np.float32).astype(dtype)[()]


def _exact_in_double(array: NDArray[Any]) -> Any:
    """Convert integers to doubles that round to bf16 as the integers do: exactly below 2**53, beyond with the low 11
    bits merged into a sticky bit."""
    import numpy as np

    if array.dtype.itemsize < 8:
        return array.astype(np.float64)
    kind = array.dtype.type
    joined = np.where(array & kind(2047), (array | kind(2048)) & ~kind(2047), array)
    small = (array < (1 << 53)) & ((array > -(1 << 53)) if array.dtype.kind == "i" else True)
    return np.where(small, array, joined).astype(np.float64)
