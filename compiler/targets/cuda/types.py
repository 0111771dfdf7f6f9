"""Types as CUDA C++ spells them."""

from __future__ import annotations

from math import inf, isinf, isnan

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute

from compiler.errors import LoweringError

INDEX = "int"
"""What indices are: buffers have fewer than 2^31 elements."""
COMPONENTS = "xyzw"
"""The lanes of short vectors."""

_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "__half",
    BFloat16Type: "__nv_bfloat16",
    Float32Type: "float",
    Float64Type: "double",
}
_INTEGERS = {1: "bool", 8: "signed char", 16: "short", 32: "int", 64: "long long"}
_VECTORS = {"float": "float", "double": "double", "int": "int", "signed char": "char", "short": "short"}
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
        element, lanes = spelled(type_.element_type), lanes_of(type_)
        if element in _PAIRS and lanes == 2:
            return _PAIRS[element]
        if is_moved_whole(type_):
            return _MOVED[lanes * type_.element_type.bitwidth // 8]
        if element not in _VECTORS or lanes not in (1, 2, 3, 4):
            raise LoweringError(f"kernels have no vectors of type {type_}")
        return f"{_VECTORS[element]}{lanes}"
    if isinstance(type_, IndexType):
        return INDEX
    found = _FLOATS.get(type(type_))
    if found is None and isinstance(type_, IntegerType):
        found = _INTEGERS.get(type_.width.data)
    if found is None:
        raise LoweringError(f"kernels have no numbers of type {type_}")
    return found


def is_moved_whole(type_: VectorType) -> bool:
    """Whether a vector can be loaded and stored, and its lanes are not to be had."""
    width = getattr(type_.element_type, "bitwidth", 64)
    if width >= 32 or len(type_.get_shape()) != 1 or lanes_of(type_) * width // 8 not in _MOVED:
        return False
    return lanes_of(type_) > len(COMPONENTS) or spelled(type_.element_type) not in _VECTORS


def lanes_of(type_: VectorType) -> int:
    """The lanes of a vector. Raises LoweringError for more dimensions than one."""
    shape = type_.get_shape()
    if len(shape) != 1:
        raise LoweringError(f"kernels have no vectors of type {type_}")
    return int(shape[0])


def literal(value: Attribute) -> str:
    """A constant. Raises LoweringError for one that is no number."""
    if isinstance(value, IntegerAttr):
        number = value.value.data
        if isinstance(value.type, IntegerType) and value.type.width.data == 1:
            return "true" if number else "false"
        return f"{number}LL" if isinstance(value.type, IntegerType) and value.type.width.data == 64 else str(number)
    if isinstance(value, FloatAttr):
        return _float(value.value.data, value.type)
    raise LoweringError(f"{value} is not a constant that kernels have")


def _float(number: float, type_: Attribute) -> str:
    if isnan(number) or isinf(number):
        special = 'nan("")' if isnan(number) else "INFINITY" if number == inf else "-INFINITY"
        text = special
    else:
        text = repr(float(number))
    if isinstance(type_, Float64Type):
        return text
    if "INFINITY" not in text and "nan" not in text:
        text += "f"
    return text if isinstance(type_, Float32Type) else f"{spelled(type_)}({text})"
