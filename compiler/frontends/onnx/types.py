"""Conversion between ONNX's element types and te's dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from compiler.types.dtypes import DTYPES

DTYPE_OF = {
    TensorProto.FLOAT: "f32",
    TensorProto.UINT8: "u8",
    TensorProto.INT8: "i8",
    TensorProto.UINT16: "u16",
    TensorProto.INT16: "i16",
    TensorProto.INT32: "i32",
    TensorProto.INT64: "i64",
    TensorProto.BOOL: "i1",
    TensorProto.FLOAT16: "f16",
    TensorProto.DOUBLE: "f64",
    TensorProto.UINT32: "u32",
    TensorProto.UINT64: "u64",
    TensorProto.BFLOAT16: "bf16",
}
"""Map ONNX's element types to te's dtypes; strings, complex numbers and types below 8 bits have none."""
TYPE_OF = {dtype: type for type, dtype in DTYPE_OF.items()}
_BY_NUMPY = {row.numpy: row.name for row in DTYPES.values()}


def type_name(element: int) -> str:
    """Return ONNX's name of an element type in lower case, such as `float8e4m3fn`; the number of an unknown one."""
    return str(TensorProto.DataType.Name(element)).lower() if element in TensorProto.DataType.values() else str(element)


def dtype_of(array: NDArray[Any]) -> str | None:
    """Return te's dtype of an array's elements; None for those that te lacks."""
    return _BY_NUMPY.get(np.dtype(array.dtype).name)
