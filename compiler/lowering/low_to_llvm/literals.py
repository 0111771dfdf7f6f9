"""Constants, fast-math flags and overflow flags in LLVM IR."""

from __future__ import annotations

import struct

from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute, Operation

from compiler.dialects.upstream.casts import element_of
from compiler.lowering.low_to_llvm.types import is_float, lanes, llvm_type
from compiler.support.errors import LoweringError


def literal(attribute: Attribute) -> str:
    """Return a scalar or vector constant as an operand, without its type. Raises LoweringError for any other."""
    match attribute:
        case FloatAttr() | IntegerAttr():
            return number(attribute.value.data, attribute.type)
        case DenseIntOrFPElementsAttr() if isinstance(attribute.type, VectorType):
            values = attribute.get_values()
            if attribute.is_splat():
                return number(values[0], attribute.type)
            inner = attribute.type.element_type
            return f"<{', '.join(f'{llvm_type(inner)} {number(v, inner)}' for v in values)}>"
    raise LoweringError(f"the constant {attribute} has no native form")


def number(value: float, type: Attribute) -> str:
    """Return a number as an operand of a scalar type, or as a splat of a vector type, without the type. Integers wrap
    to the type's bits, floats are rounded to nearest, but to bf16 towards zero; for i1 any number but 0 is true. Raises
    OverflowError for a finite number beyond the range of a float type."""
    inner = element_of(type)
    text = _literal(value, inner)
    if isinstance(type, VectorType):
        lanes(type)
        return f"splat ({llvm_type(inner)} {text})"
    return text


def _literal(value: float, type: Attribute) -> str:
    if isinstance(type, BFloat16Type):
        return str(struct.unpack(">h", struct.pack(">f", value)[:2])[0])
    return _float(float(value), type) if is_float(type) else _integer(int(value), type)


def _integer(value: int, type: Attribute) -> str:
    if isinstance(type, IntegerType) and type.width.data == 1:
        return "true" if value else "false"
    bits = type.width.data if isinstance(type, IntegerType) else 64
    return str((value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))


def _float(value: float, type: Attribute) -> str:
    match type:
        case Float16Type():
            return f"0xH{struct.pack('>e', value).hex().upper()}"
        case Float32Type():
            value = struct.unpack(">f", struct.pack(">f", value))[0]
    return f"0x{struct.pack('>d', value).hex().upper()}"


def fast_flags(op: Operation) -> str:
    """Return the fast-math flags of an op, with a space after: `fast ` for all of them; "" without flags."""
    flags = op.properties.get("fastmath")
    if not isinstance(flags, FastMathFlagsAttr) or not flags.data:
        return ""
    names = sorted(flag.value for flag in flags.data)
    return "fast " if len(names) == 7 else " ".join(names) + " "


def wrap_flags(op: Operation) -> str:
    """Return the overflow flags of an integer op, each with a space after; "" without flags. Index arithmetic always
    has nsw, since it never wraps."""
    flags = op.properties.get("overflowFlags")
    names = {flag.value for flag in flags.data} if isinstance(flags, IntegerOverflowAttr) else set()
    if isinstance(element_of(op.results[0].type), IndexType):
        names.add("nsw")
    return "".join(f"{name} " for name in sorted(names))
