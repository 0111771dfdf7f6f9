"""Correct rounding to a float dtype: once, to nearest, ties to even, overflow to infinity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type

from compiler.types.elements import DTYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from compiler.types.elements import DType

_DIGITS = 53
"""The binary digits of a Python float."""


def rounded(value: float, dtype: str) -> float:
    """A number rounded to a float dtype; integers of any size are rounded once, too."""
    row = DTYPES[dtype]
    if value != value:
        return math.nan
    if abs(value) >= row.infinite:
        return math.inf if value > 0 else -math.inf
    rounds_directly = float(value) if row.bits == 64 or isinstance(value, float) else _rounded_to_odd(value)
    assert isinstance(row.type, BFloat16Type | Float16Type | Float32Type | Float64Type)
    return float(row.type.unpack(row.type.pack((rounds_directly,)), 1)[0])


def _rounded_to_odd(value: int) -> float:
    """An integer as a float, rounded to odd: its last digit is 1 if digits were lost, so that a second rounding is
    exact."""
    lost = max(0, abs(value).bit_length() - _DIGITS)
    digits = abs(value) >> lost
    digits |= bool(abs(value) & ((1 << lost) - 1))
    return math.copysign(math.ldexp(digits, lost), value)


def rounded_array(array: NDArray[Any], dtype: DType) -> Any:
    """An array rounded to a float dtype; bf16 by way of f32 rounded to odd, since ml_dtypes rounds twice."""
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
    """Integers with their low bits merged into a sticky bit, so that a double holds them and rounds to bf16 equally."""
    import numpy as np

    if array.dtype.itemsize < 8:
        return array.astype(np.float64)
    kind = array.dtype.type
    joined = np.where(array & kind(2047), (array | kind(2048)) & ~kind(2047), array)
    small = (array < (1 << 53)) & ((array > -(1 << 53)) if array.dtype.kind == "i" else True)
    return np.where(small, array, joined).astype(np.float64)
