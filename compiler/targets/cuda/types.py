"""The spelling of types in CUDA C++."""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from compiler.support.errors import LoweringError
from compiler.targets.clike.language import Integer
from compiler.types.dtypes import DTYPES, row_of
from compiler.types.elements import element_bytes

COMPONENTS = "xyzw"
"""The components of short vectors."""

INTEGERS = {
    row.bits: Integer(row.bits, DTYPES[f"i{row.bits}"].c, row.c, DTYPES[f"u{max(32, row.bits)}"].c)
    for row in DTYPES.values()
    if row.kind == "u"
}
_PAIRS = {"__half": "__half2", "__nv_bfloat16": "__nv_bfloat162"}
_OPAQUE = {8: "uint2", 16: "uint4"}
"""Types by their bytes, for loads and stores of vectors that CUDA C++ has no type for."""


def spelled(type_: Attribute) -> str:
    """Spell a scalar, a vector, or a fragment (a vector of two dimensions: registers, elements of a register); a vector
    of small elements that CUDA C++ has no type for becomes uint2 or uint4. Raises LoweringError for a type that CUDA
    C++ lacks."""
    if isinstance(type_, VectorType):
        if len(type_.get_shape()) == 2:
            registers, register_elements = type_.get_shape()
            register_type = (
                type_.element_type if register_elements == 1 else VectorType(type_.element_type, [register_elements])
            )
            return f"Fragment<{spelled(register_type)}, {registers}>"
        element, lanes, row = spelled(type_.element_type), lanes_of(type_), row_of(type_.element_type)
        if element in _PAIRS and lanes == 2:
            return _PAIRS[element]
        if is_opaque_vector(type_):
            return _OPAQUE[lanes * element_bytes(type_.element_type)]
        if row is None or not row.vector or lanes not in (1, 2, 3, 4):
            raise LoweringError(f"kernels have no vectors of type {type_}")
        return f"{row.vector}{lanes}"
    row = row_of(type_)
    if row is None:
        raise LoweringError(f"kernels have no numbers of type {type_}")
    return row.c


def is_opaque_vector(type_: VectorType) -> bool:
    """Return whether CUDA C++ has no type for a vector of 8 or 16 bytes with elements below 4 bytes, so that it can be
    loaded and stored only; False for any other vector."""
    element_size = element_bytes(type_.element_type)
    if element_size >= 4 or len(type_.get_shape()) != 1 or lanes_of(type_) * element_size not in _OPAQUE:
        return False
    row = row_of(type_.element_type)
    return lanes_of(type_) > len(COMPONENTS) or row is None or not row.vector


def lanes_of(type_: VectorType) -> int:
    """Return the number of lanes of a vector. Raises LoweringError for a vector of several dimensions."""
    shape = type_.get_shape()
    if len(shape) != 1:
        raise LoweringError(f"kernels have no vectors of type {type_}")
    return int(shape[0])
