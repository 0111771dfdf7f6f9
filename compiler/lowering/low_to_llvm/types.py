"""Types and literals as LLVM spells them. Truth values are bytes in memory and i1 in registers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute, Operation

from compiler.errors import LoweringError

_FLOATS: dict[type[Attribute], tuple[str, str, int]] = {
    Float16Type: ("half", "f16", 2),
    BFloat16Type: ("bfloat", "bf16", 2),
    Float32Type: ("float", "f32", 4),
    Float64Type: ("double", "f64", 8),
}


def llvm_type(type: Attribute) -> str:
    """The register type: `float`, `i64`, `<16 x float>`, `ptr`."""
    match type:
        case IndexType():
            return "i64"
        case IntegerType():
            return f"i{type.width.data}"
        case MemRefType():
            return "ptr"
        case VectorType():
            return f"<{prod(type.get_shape())} x {llvm_type(type.element_type)}>"
    if isinstance(type, tuple(_FLOATS)):
        return _FLOATS[type.__class__][0]
    raise LoweringError(f"the type {type} has no native form")


def memory_type(type: Attribute) -> str:
    """The type in memory, where i1 is a byte."""
    return llvm_type(type).replace("i1", "i8") if is_truth(type) else llvm_type(type)


def is_truth(type: Attribute) -> bool:
    """Whether a type is i1 or a vector of it."""
    element = type.element_type if isinstance(type, VectorType) else type
    return isinstance(element, IntegerType) and element.width.data == 1


def suffix(type: Attribute) -> str:
    """The part of an intrinsic's name that stands for a type: `f32`, `v16f32`, `i64`."""
    if isinstance(type, VectorType):
        return f"v{prod(type.get_shape())}{suffix(type.element_type)}"
    if isinstance(type, tuple(_FLOATS)):
        return _FLOATS[type.__class__][1]
    return llvm_type(type)


def byte_size(type: Attribute) -> int:
    """The size of one element in memory, in bytes."""
    if isinstance(type, tuple(_FLOATS)):
        return int(_FLOATS[type.__class__][2])
    if isinstance(type, IndexType):
        return 8
    if isinstance(type, IntegerType):
        return max(1, int(type.width.data) // 8)
    raise LoweringError(f"the type {type} cannot stand in memory")


def buffer_bytes(type: Attribute) -> int:
    """The size of a static memref, in bytes."""
    if not isinstance(type, MemRefType) or any(size < 0 for size in type.get_shape()):
        raise LoweringError(f"the buffer type {type} is not static")
    return prod(type.get_shape()) * byte_size(type.element_type)


def literal(attribute: Attribute) -> str:
    """A constant as an operand."""
    match attribute:
        case FloatAttr():
            return _float(float(attribute.value.data), attribute.type)
        case IntegerAttr():
            return _integer(int(attribute.value.data), attribute.type)
        case DenseIntOrFPElementsAttr():
            type = attribute.type.element_type
            values = [_scalar(value, type) for value in attribute.get_values()]
            length = prod(attribute.type.get_shape())
            values = values * length if len(values) == 1 else values
            return f"<{', '.join(f'{llvm_type(type)} {value}' for value in values)}>"
    raise LoweringError(f"the constant {attribute} has no native form")


def _scalar(value: int | float, type: Attribute) -> str:
    return _float(float(value), type) if isinstance(type, tuple(_FLOATS)) else _integer(int(value), type)


def _integer(value: int, type: Attribute) -> str:
    if isinstance(type, IntegerType) and type.width.data == 1:
        return "true" if value else "false"
    return str(value)


def _float(value: float, type: Attribute) -> str:
    if isinstance(type, Float16Type):
        return f"0xH{struct.pack('>e', value).hex().upper()}"
    if isinstance(type, BFloat16Type):
        return f"0xR{struct.pack('>f', value)[:2].hex().upper()}"
    if isinstance(type, Float32Type):
        value = struct.unpack("f", struct.pack("f", value))[0]
    return f"0x{struct.pack('>d', value).hex().upper()}"


def fast_flags(op: Operation) -> str:
    """The fastmath flags of an op as LLVM writes them, with a space after."""
    flags = op.properties.get("fastmath")
    if not isinstance(flags, FastMathFlagsAttr) or not flags.data:
        return ""
    names = sorted(flag.value for flag in flags.data)
    return "fast " if len(names) == 7 else " ".join(names) + " "


def strides(shape: Sequence[int]) -> list[int]:
    """Row-major strides, in elements."""
    return [prod(shape[dim + 1 :]) for dim in range(len(shape))]
