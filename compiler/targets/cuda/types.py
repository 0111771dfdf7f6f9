"""Types as CUDA C++ spells them."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    VectorType,
)
from xdsl.ir import Attribute

from compiler.support.errors import LoweringError
from compiler.targets.clike.language import Integer
from compiler.types.elements import DTYPES, element_bytes, row_of

COMPONENTS = "xyzw"
"""The lanes of short vectors."""

INTEGERS = {
    row.bits: Integer(row.bits, DTYPES[f"i{row.bits}"].c, row.c, DTYPES[f"u{max(32, row.bits)}"].c)
    for row in DTYPES.values()
    if row.kind == "u"
}
_PAIRS = {"__half": "__half2", "__nv_bfloat16": "__nv_bfloat162"}
_MOVED = {8: "uint2", 16: "uint4"}
"""Types of so many bytes that are moved whole, where no vector of the elements exists."""


def spelled(type_: Attribute) -> str:
    """A scalar, a short vector, or what a thread holds of a small matrix. Raises LoweringError for a type that CUDA C++
    lacks."""
    if isinstance(type_, VectorType):
        if len(type_.get_shape()) == 2:
            registers, each = type_.get_shape()
            inner = type_.element_type if each == 1 else VectorType(type_.element_type, [each])
            return f"Fragment<{spelled(inner)}, {registers}>"
        element, lanes, row = spelled(type_.element_type), lanes_of(type_), row_of(type_.element_type)
        if element in _PAIRS and lanes == 2:
            return _PAIRS[element]
        if is_moved_whole(type_):
            return _MOVED[lanes * element_bytes(type_.element_type)]
        if row is None or not row.vector or lanes not in (1, 2, 3, 4):
            raise LoweringError(f"kernels have no vectors of type {type_}")
        return f"{row.vector}{lanes}"
    row = row_of(type_)
    if row is None:
        raise LoweringError(f"kernels have no numbers of type {type_}")
    return row.c


def is_moved_whole(type_: VectorType) -> bool:
    """Whether a vector can be loaded and stored, and its lanes are not to be had."""
    each = element_bytes(type_.element_type)
    if each >= 4 or len(type_.get_shape()) != 1 or lanes_of(type_) * each not in _MOVED:
        return False
    row = row_of(type_.element_type)
    return lanes_of(type_) > len(COMPONENTS) or row is None or not row.vector


def lanes_of(type_: VectorType) -> int:
    """The lanes of a vector. Raises LoweringError for more dimensions than one."""
    shape = type_.get_shape()
    if len(shape) != 1:
        raise LoweringError(f"kernels have no vectors of type {type_}")
    return int(shape[0])
