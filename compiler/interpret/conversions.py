"""Conversions between scalar types; those to floats round once, to nearest, ties to even."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from compiler.dialects.mathematics import Value
from compiler.dialects.numbers import as_signed, as_unsigned, to_int
from compiler.dialects.upstream.casts import (
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
from compiler.types.rounding import rounded_array

Function: TypeAlias = Callable[..., Value]


CASTS: Mapping[str, Function] = {
    SIToFPOp.name: lambda a, dtype: rounded_array(as_signed(a), dtype),
    UIToFPOp.name: lambda a, dtype: rounded_array(as_unsigned(a), dtype),
    FPToSIOp.name: lambda a, dtype: to_int(a.astype(np.int64), dtype),
    FPToUIOp.name: lambda a, dtype: to_int(a.astype(np.int64 if dtype.itemsize < 8 else np.uint64), dtype),
    ExtFOp.name: lambda a, dtype: a.astype(dtype),
    TruncFOp.name: rounded_array,
    ExtSIOp.name: lambda a, dtype: as_signed(a).astype(dtype),
    ExtUIOp.name: lambda a, dtype: as_unsigned(a).astype(dtype),
    TruncIOp.name: to_int,
    IndexCastOp.name: lambda a, dtype: to_int(as_signed(a), dtype),
}
"""Map the name of a conversion op to its function of an operand and the dtype of the result."""
