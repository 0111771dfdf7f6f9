"""Element types and the types of scalars: signedness belongs to storage, as `ui8`; a scalar of it is an `i8`."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import (
    ContainerType,
    FixedBitwidthType,
    IntegerType,
    ShapedType,
    Signedness,
    VectorType,
)
from xdsl.ir import Attribute

from compiler.affine.limits import bad_extent, bad_size


def scalar_type(element: Attribute) -> Attribute:
    """The type of a value that is read from, or written to, a tensor or memref of an element type."""
    return IntegerType(element.width.data) if is_unsigned(element) else element  # type: ignore[attr-defined]


def element_bytes(element: Attribute) -> int:
    """The bytes of an element in memory; an index has those of an address."""
    if isinstance(element, VectorType):
        count: int = element.element_count()
        return count * element_bytes(element.element_type)
    return element.size if isinstance(element, FixedBitwidthType) else 8


@lru_cache(maxsize=4096)
def bad_shape(type: Attribute) -> str:
    """What is wrong with the sizes of a tensor, memref or vector type, in a sentence; nothing where all is well.

    Dimensions that are dynamic or empty are not judged here.
    """
    if not isinstance(type, ShapedType) or not isinstance(type, ContainerType):
        return ""
    shape = [size for size in type.get_shape() if size > 0]
    large = (bad_extent(f"a dimension of {type}", size) for size in shape)
    return next(filter(None, large), "") or bad_size(str(type), shape, element_bytes(type.get_element_type()))


def is_unsigned(element: Attribute) -> bool:
    """Whether an element type holds integers without sign."""
    return isinstance(element, IntegerType) and element.signedness.data is Signedness.UNSIGNED
