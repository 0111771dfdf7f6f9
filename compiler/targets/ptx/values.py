"""Types of PTX as dtypes of numpy, and the bits of registers as values of a type.

A register of n threads is an array of n unsigned integers of its width; a predicate is an array of bool. Packed pairs
(`f16x2`) are viewed as 2n elements, so that elementwise operations apply to them as they are.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.support.errors import InputError
from compiler.types.dtypes import DTYPES

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = Array | None
"""The threads that run an instruction, as an array of bool; None if all do."""
POISON = 0xFF
"""The bytes of values that nobody has set."""
_PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "s16x2": "s16", "u16x2": "u16"}


def bits_of(type_: str) -> int:
    """Return the bits of a type: 1 of pred, 32 of f16x2, tf32 and f32, 16 of bf16. Raises InputError for an unknown
    type."""
    if type_ == "pred":
        return 1
    if type_ in _PAIRS:
        return 32
    digits = type_.lstrip("bsuft")
    if not digits.isdigit():
        raise InputError(f"the type .{type_} of PTX is not implemented")
    return int(digits)


@cache
def dtype_of_type(type_: str) -> np.dtype[Any]:
    """Return numpy's dtype of a type; of a packed type, such as f16x2, that of an element; unsigned for b32, float32
    for tf32. Raises InputError for an unknown type, and for bf16 without the package ml_dtypes."""
    type_ = _PAIRS.get(type_, type_)
    if type_ == "pred":
        return np.dtype(np.bool_)
    if type_ == "bf16":
        return DTYPES["bf16"].array
    kind = {"s": "i", "f": "f", "t": "f"}.get(type_[0], "u")
    return np.dtype(f"{kind}{bits_of(type_) // 8}")


@cache
def raw_dtype(type_: str) -> np.dtype[Any]:
    """Return numpy's dtype of a register of a type: unsigned, of 16 bits or more; bool for pred."""
    return np.dtype(np.bool_) if type_ == "pred" else np.dtype(f"u{max(bits_of(type_), 16) // 8}")


def is_float_type(type_: str) -> bool:
    """Return whether a type is a floating-point type, packed types included."""
    return type_.startswith(("f", "bf", "tf"))


def typed(raw: Array, type_: str) -> Array:
    """Return the low bits of a register (lanes,) as values of a type; of a packed type two elements a lane, the low
    half first. Raises InputError for a type wider than the register."""
    dtype = dtype_of_type(type_)
    if type_ == "pred":
        return raw
    size = bits_of(type_) // 8
    if raw.itemsize > size:
        raw = raw.astype(f"u{size}")
    elif raw.itemsize < size:
        raise InputError(f"a register of {8 * raw.itemsize} bits holds no .{type_}")
    return raw.view(dtype)


def raw_bits(values: Array, type_: str, width: np.dtype[Any]) -> Array:
    """Return values of a type as the bits of a register of dtype `width`: sign-extended for a signed type, else
    zero-extended. Values of another dtype are converted first."""
    if type_ == "pred":
        return values
    if values.dtype != dtype_of_type(type_):
        values = values.astype(dtype_of_type(type_))
    if type_[0] == "s" and values.itemsize < width.itemsize:
        return values.astype(f"i{width.itemsize}").view(width)
    size = bits_of(type_) // 8
    bits = np.ascontiguousarray(values).view(f"u{size}")
    return bits if size == width.itemsize else bits.astype(width)


def literal_value(text: str, type_: str) -> Any:
    """Return a literal as a numpy scalar of a type: `0f` and `0d` spell the bits of a float; an integer for a float
    type spells its bits. An integer wraps to the type's bits; for pred any number but 0 is true."""
    text, dtype = text.rstrip("U"), dtype_of_type(type_)
    if type_ == "pred":
        return np.bool_(int(text, 0))
    sign = text.startswith("-")
    digits = text[sign:]
    if digits[:2].lower() in ("0f", "0d") and len(digits) in (10, 18):
        format_ = "<f" if digits[1] in "fF" else "<d"
        value = struct.unpack(format_, bytes.fromhex(digits[2:])[::-1])[0]
        if not is_float_type(type_):
            return np.dtype(f"u{struct.calcsize(format_)}").type(int(digits[2:], 16)).view(dtype)
        return dtype.type(-value if sign else value)
    bits = int(text, 0) % (1 << 8 * dtype.itemsize)
    return np.array([bits], f"u{dtype.itemsize}").view(dtype)[0]
