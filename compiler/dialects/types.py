"""Element types and the types of scalars: signedness belongs to storage, as `ui8`; a scalar of it is an `i8`."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute


def scalar_type(element: Attribute) -> Attribute:
    """The type of a value that is read from, or written to, a tensor or memref of an element type."""
    return IntegerType(element.width.data) if is_unsigned(element) else element  # type: ignore[attr-defined]


def is_unsigned(element: Attribute) -> bool:
    """Whether an element type holds integers without sign."""
    return isinstance(element, IntegerType) and element.signedness.data is Signedness.UNSIGNED
