"""The dtypes of the front end, and the element and scalar types that they have in the IR."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerType, Signedness, bf16, f16, f32, f64, i1, i8, i16, i32, i64

from compiler.dialects.types import scalar_type
from compiler.errors import TeError

TYPES: dict[str, Any] = {
    "f16": f16,
    "bf16": bf16,
    "f32": f32,
    "f64": f64,
    "i8": i8,
    "i16": i16,
    "i32": i32,
    "i64": i64,
    "u8": IntegerType(8, Signedness.UNSIGNED),
    "i1": i1,
}
"""The element type of tensors of each dtype."""

SCALARS: dict[str, Any] = {dtype: scalar_type(type) for dtype, type in TYPES.items()}
"""The type of values of each dtype."""

DTYPES = tuple(TYPES)


def check_dtype(dtype: object) -> str:
    """The dtype, if there is one of that name. Raises TeError."""
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise TeError(f"unknown dtype {dtype!r} (there are {', '.join(DTYPES)})")
    return dtype


def is_float(dtype: str) -> bool:
    """Whether a dtype is a floating-point one."""
    return dtype.startswith(("f", "bf"))


def greatest(dtype: str) -> int:
    """The least number that a float dtype rounds to infinity."""
    return {"f16": 65520, "bf16": 2**128 - 2**119, "f32": 2**128 - 2**103, "f64": 2**1024 - 2**970}[dtype]


def is_unsigned(dtype: str) -> bool:
    """Whether a dtype's integers have no sign; truth values count as such."""
    return dtype in ("u8", "i1")


def width(dtype: str) -> int:
    """The bits of a dtype."""
    return int(dtype.lstrip("bfiu"))


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    bits = width(dtype)
    return (0, (1 << bits) - 1) if is_unsigned(dtype) else (-(1 << bits - 1), (1 << bits - 1) - 1)
