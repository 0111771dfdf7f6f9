"""Constants as arrays of the C text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill, indent

from xdsl.dialects.builtin import BFloat16Type, MemRefType
from xdsl.ir import Attribute

from compiler.dialects.dense import DenseAttr
from compiler.dialects.numbers import Array, array_of
from compiler.support.errors import LoweringError
from compiler.targets.c.language import C
from compiler.types.elements import scalar_type

MAX_BYTES = 16 << 20
"""The largest constant that a text may contain, in bytes."""
WIDTH = 118


def declaration(language: C, name: str, value: DenseAttr, type_: MemRefType) -> str:
    """Return the declaration of a constant array `name` of the buffer type `type_`, with the elements `value`; each
    extent is at least 1. Raises LoweringError for more than MAX_BYTES and for a type that C lacks."""
    array, element = array_of(value.data), scalar_type(type_.element_type)
    if array.nbytes > MAX_BYTES:
        raise LoweringError(
            f"the constant '{name}' has {array.nbytes} bytes, more than {MAX_BYTES}: give it as an input"
        )
    shape = type_.get_shape() or (1,)
    extents = "".join(f"[{max(1, extent)}]" for extent in shape)
    body = "\n".join(_rows(language, array.reshape(shape), element))
    return f"static const {language.spelled(element)} {name}{extents} = {body};"


def _rows(language: C, array: Array, element: Attribute) -> Iterator[str]:
    """Yield the parts of a braced initialiser, each of one or several lines: for several dimensions a brace or a row
    each. An array without elements is `{0}`."""
    if array.ndim > 1 and array.size:
        yield "{"
        for row in array:
            yield indent("\n".join(_rows(language, row, element)), "  ") + ","
        yield "}"
        return
    numbers = ", ".join(_literals(language, array, element)) or "0"
    yield f"{{{numbers}}}" if len(numbers) < WIDTH - 16 else f"{{\n{indent(fill(numbers, WIDTH - 16), '  ')}\n}}"


def _literals(language: C, array: Array, element: Attribute) -> Sequence[str]:
    if isinstance(element, BFloat16Type):
        return [language.real(float(number), element) for number in array.astype("float32").reshape(-1)]
    if array.dtype.kind == "f":
        return [language.real(float(number), element) for number in array.reshape(-1)]
    return [language.whole(int(number), element) for number in array.reshape(-1)]
