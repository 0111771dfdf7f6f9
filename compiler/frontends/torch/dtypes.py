"""The dtypes common to torch and te."""

from __future__ import annotations

import torch

from compiler.frontends.torch.table import Unsupported

DTYPES: dict[torch.dtype, str] = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "i1",
}


def dtype_of(dtype: torch.dtype) -> str:
    """Return te's name of a dtype. Raises Unsupported for one that te lacks."""
    name = DTYPES.get(dtype)
    if name is None:
        raise Unsupported(f"the dtype {dtype}".replace("torch.", ""))
    return name
