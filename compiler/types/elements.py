"""Element types of tensors and buffers: their scalars, and their sizes in bits and bytes."""

from __future__ import annotations

from xdsl.dialects.builtin import FixedBitwidthType, IntegerType, Signedness, VectorType
from xdsl.ir import Attribute


def is_unsigned(element: Attribute) -> bool:
    """Whether an element type is an unsigned integer, such as ui8."""
    return isinstance(element, IntegerType) and element.signedness.data is Signedness.UNSIGNED


def scalar_type(element: Attribute) -> Attribute:
    """The type of a scalar read from a tensor or memref with an element type: the signless integer of
    an unsigned one (i8 for ui8), otherwise the same."""
    return IntegerType(element.width.data) if is_unsigned(element) else element  # type: ignore[attr-defined]


def element_bits(element: object) -> int:
    """The number of bits of an element type; 64 for an index."""
    return element.bitwidth if isinstance(element, FixedBitwidthType) else 64


def element_bytes(element: object) -> int:
    """The bytes of an element type, or a vector type, in memory: 1 for i1, 8 for an index.

    >>> from xdsl.dialects.builtin import f32, i1
    >>> strata.program.element_bytes(f32), strata.program.element_bytes(i1)
    (4, 1)
    """
    if isinstance(element, VectorType):
        count: int = element.element_count()
        return count * element_bytes(element.element_type)
    return element.size if isinstance(element, FixedBitwidthType) else 8
