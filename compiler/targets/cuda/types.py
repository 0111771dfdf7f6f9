"""Types as CUDA C++ spells them."""

from __future__ import annotations

from math import isinf, isnan

from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute

from compiler.support.errors import LoweringError
from compiler.targets.clike.language import Integer
from compiler.types.elements import DTYPES, element_bytes, row_of

COMPONENTS = "xyzw"
"""The lanes of short vectors."""

_INTEGERS = {
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


def integer(type_: Attribute, is_wide: bool = False) -> Integer | None:
    """How integers of a type are spelled, or indices, of 64 bits if they are wide; None for truth values and others."""
    if isinstance(type_, IndexType):
        return _INTEGERS[64 if is_wide else 32]
    if not isinstance(type_, IntegerType) or type_ == i1:
        return None
    if type_.width.data not in _INTEGERS:
        raise LoweringError(f"kernels have no numbers of type {type_}")
    return _INTEGERS[type_.width.data]


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


def literal(value: Attribute) -> str:
    """A constant. Raises LoweringError for one that is no number."""
    if isinstance(value, IntegerAttr):
        return _whole(value.value.data, value.type)
    if isinstance(value, FloatAttr):
        return _float(value.value.data, value.type)
    raise LoweringError(f"{value} is not a constant that kernels have")


def _whole(number: int, type_: Attribute) -> str:
    """An integer, wrapped to its type; the least of a type has no literal in C."""
    if isinstance(type_, IndexType):
        return str(number)
    if type_ == i1:
        return "true" if number % 2 else "false"
    spelling = integer(type_)
    assert spelling is not None
    half = 1 << spelling.bits - 1
    wrapped = (number + half) % (2 * half) - half
    suffix = "LL" if spelling.bits == 64 else ""
    if wrapped == -half and spelling.bits >= 32:
        return f"(-{half - 1}{suffix} - 1)"
    return f"{wrapped}{suffix}"


def _float(number: float, type_: Attribute) -> str:
    if isinf(number) or isnan(number):
        special = "NAN" if isnan(number) else "INFINITY" if number > 0 else "-INFINITY"
        return special if isinstance(type_, Float32Type) else f"{spelled(type_)}({special})"
    text = repr(float(number))
    if isinstance(type_, Float64Type):
        return text
    return f"{text}f" if isinstance(type_, Float32Type) else f"{spelled(type_)}({text}f)"
