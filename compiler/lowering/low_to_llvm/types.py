"""LLVM types. Truth values are bytes in memory and i1 in registers; index is i64."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import BFloat16Type, IndexType, IntegerType, MemRefType, NoneAttr, VectorType
from xdsl.ir import Attribute

from compiler.dialects.upstream.casts import element_of
from compiler.support.errors import LoweringError
from compiler.types.dtypes import row_of
from compiler.types.elements import element_bytes


@lru_cache(maxsize=512)
def llvm_type(type: Attribute) -> str:
    """Return the register type: `float`, `i64`, `<16 x float>`, `ptr`; bf16 is `i16`. Raises LoweringError for a type
    without one, such as a vector of two dimensions."""
    match type:
        case IndexType():
            return "i64"
        case MemRefType():
            return "ptr"
        case VectorType():
            return f"<{lanes(type)} x {llvm_type(type.element_type)}>"
    row = row_of(type)
    if row is None:
        raise LoweringError(f"the type {type} has no native form")
    return row.llvm


def lanes(type: Attribute) -> int:
    """Return the number of lanes of a vector. Raises LoweringError unless it is static and one-dimensional; requires a
    vector type."""
    assert isinstance(type, VectorType)
    if type.get_num_dims() != 1 or type.get_num_scalable_dims():
        raise LoweringError(f"the vector type {type} is not one-dimensional and static")
    return type.get_shape()[0]


def is_float(type: Attribute) -> bool:
    """Return whether a type is a float type in the LLVM IR, or a vector of one; False for bf16, which is an integer
    there."""
    row = row_of(element_of(type))
    return row is not None and row.kind == "f" and not isinstance(row.type, BFloat16Type)


def is_truth(type: Attribute) -> bool:
    """Return whether a type is i1 or a vector of it."""
    return width(type) == 1


def width(type: Attribute) -> int:
    """Return the bits of an integer, of index, or of a vector's lanes; 0 for floats."""
    inner = element_of(type)
    if isinstance(inner, IntegerType):
        return int(inner.width.data)
    return 64 if isinstance(inner, IndexType) else 0


def shaped(type: Attribute, scalar: str) -> str:
    """Return an LLVM scalar type with the lanes of `type`: `i1` for vector<8xf32> is `<8 x i1>`."""
    return f"<{lanes(type)} x {scalar}>" if isinstance(type, VectorType) else scalar


@lru_cache(maxsize=512)
def memory_type(type: Attribute) -> str:
    """Return the LLVM type in memory, where an i1, also in a vector, is a byte. Raises LoweringError for a type without
    one."""
    return shaped(type, "i8") if is_truth(type) else llvm_type(type)


def suffix(type: Attribute) -> str:
    """Return the suffix of an intrinsic's name for a type: `f32`, `v16f32`, `i64`; bf16 gives `i16`. Raises
    LoweringError for a type that LLVM lacks."""
    if isinstance(type, VectorType):
        return f"v{lanes(type)}{suffix(type.element_type)}"
    row = row_of(type)
    return row.name if row is not None and is_float(type) else llvm_type(type)


def byte_size(type: Attribute) -> int:
    """Return the size of an element in memory, in bytes: 1 for i1, 8 for index. Raises LoweringError for a type that is
    neither a dtype nor index."""
    if row_of(type) is None and not isinstance(type, IndexType):
        raise LoweringError(f"the type {type} cannot stand in memory")
    return element_bytes(type)


def buffer_type(type: Attribute) -> MemRefType:
    """Return the type of a static, row-major memref. Raises LoweringError for any other type."""
    if not isinstance(type, MemRefType) or any(size < 0 for size in type.get_shape()):
        raise LoweringError(f"the buffer type {type} is not static")
    if not isinstance(type.layout, NoneAttr):
        raise LoweringError(f"the buffer type {type} is not in row-major order")
    return type


def buffer_bytes(type: Attribute) -> int:
    """Return the size of a static, row-major buffer, in bytes, one for an i1. Raises LoweringError for any other
    type."""
    return prod(buffer_type(type).get_shape()) * byte_size(buffer_type(type).element_type)
