"""`Dense`: the elements of a tensor constant, held by reference and compared by a digest, and their text."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.access import decimal
from compiler.types.dtypes import DType, Dtype, row_of
from compiler.types.elements import element_bytes

MOST_INLINE = 64
"""The most elements that print as `dense<...>`, unless all are equal."""

_INTEGERS: dict[int, DType] = {1: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8")}
"""The unsigned integer dtype by size in bytes."""

DIGITS = 16
"""The number of digits of a digest in the name of a resource."""


class Dense:
    """The elements of a tensor in row-major order, little-endian; a truth value is a byte, 0 or 1.

    `data` must not change. `name` is a label for printing, "c" if it is no identifier; constants that differ in their
    name only are equal.
    """

    def __init__(self, type: TensorType, data: bytes | memoryview, name: str = "c") -> None:
        self.type = type
        self.data = memoryview(data).cast("B")
        self.name = name if re.fullmatch(r"[A-Za-z_][\w$.]*", name, re.ASCII) else "c"

    @cached_property
    def digest(self) -> str:
        """The SHA-256 digest of dtype, shape and elements, in hexadecimal digits."""
        digest = hashlib.sha256(f"{self.type}:".encode())
        digest.update(self.data)
        return digest.hexdigest()

    @property
    def row(self) -> Dtype:
        """The dtype. Raises VerifyException if the element type has none."""
        dtype = row_of(self.type.element_type)
        if dtype is None:
            raise VerifyException(f"a constant has elements of type {self.type.element_type}, which is no dtype")
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tensor."""
        return tuple(self.type.get_shape())

    @cached_property
    def bits(self) -> NDArray[Any]:
        """The bits of the elements as unsigned integers, in one dimension. Requires an element type of 1, 2, 4 or 8
        bytes."""
        return np.frombuffer(self.data, _INTEGERS[element_bytes(self.type.element_type)])

    @cached_property
    def is_splat(self) -> bool:
        """Whether all elements have the same bits."""
        bits = self.bits
        return all(bool((part == bits[0]).all()) for part in (bits[:MOST_INLINE], bits))

    @property
    def is_inline(self) -> bool:
        """Whether the elements, at most MOST_INLINE or all equal, are printed at their use, not in the trailer."""
        return prod(self.shape) <= MOST_INLINE or self.is_splat

    @property
    def handle(self) -> str:
        """The name of the bytes in the trailer; equal names mean equal elements."""
        return f"{self.name}_{self.digest[:DIGITS]}"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Dense) or self.type != other.type:
            return False
        return self.data is other.data or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"Dense({self.type})"


class Lost(Dense):
    """Elements that were freed after their last use, or are left out for display; only the constant's name can be
    printed."""

    is_inline = False

    @property
    def handle(self) -> str:
        """The name of the constant, without a digest."""
        return self.name


def literal(dense: Dense) -> str:
    """Return the text in the brackets of `dense<...>`: nested lists, one element for a splat; the bytes in hexadecimal
    if an element is NaN. Raises VerifyException if the element type has no dtype."""
    if dense.row.kind == "f" and _has_nan(dense):
        first = dense.data[: element_bytes(dense.type.element_type)]
        return f'"0x{(first if dense.is_splat else dense.data).hex().upper()}"'
    if dense.is_splat:
        return _number(dense.row, int(dense.bits[0]))
    texts = [_number(dense.row, int(bits)) for bits in dense.bits]
    for size in reversed(dense.shape):
        texts = [f"[{', '.join(texts[at : at + size])}]" for at in range(0, len(texts), size)]
    return texts[0]


def _has_nan(dense: Dense) -> bool:
    """Whether an element is NaN, whose bits a decimal does not represent."""
    bits = dense.bits[:1] if dense.is_splat else dense.bits
    return bool(np.isnan(np.array([_float(dense.row, int(b)) for b in bits])).any())


def _float(row: Dtype, bits: int) -> float:
    if row.name == "bf16":
        return float(np.uint32(bits << 16).view(np.float32))
    return float(_INTEGERS[row.bits // 8].type(bits).view(row.numpy))


def _number(row: Dtype, bits: int) -> str:
    """Return the text of the element with the bits `bits`, from which upstream's parser reads the same bits."""
    if row.kind == "b":
        return "true" if bits else "false"
    if row.kind == "u":
        return str(bits)
    if row.kind == "i":
        return str(bits - (1 << row.bits if bits >> row.bits - 1 else 0))
    value = _float(row, bits)
    if np.isinf(value):
        return f"0x{bits:0{row.bits // 4}X}"
    if row.name == "f32" and np.float32(float(str(np.float32(value)))) == value:
        value = float(str(np.float32(value)))
    return decimal(value)
