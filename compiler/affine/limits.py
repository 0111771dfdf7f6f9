"""Limits of sizes and indices: every value that native code computes from them fits a signed 64-bit integer.

Extents, the bytes of a tensor or buffer, and every intermediate value of an index expression are below 2^63; so is the
offset of an element in bytes. Each `bad_` function returns a sentence that names the violation, with `what` as its
subject, or an empty text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import ContainerType, ShapedType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from compiler.affine import linear as lin
from compiler.types.elements import element_bytes

END = 1 << 63


def fits(value: int) -> bool:
    """Whether a value fits a signed 64-bit integer."""
    return -END <= value < END


def bad_extent(what: str, extent: int) -> str:
    """A sentence about `what` if an extent is not in [1, 2^63), else empty."""
    if extent < 1:
        return f"{what} has extent {extent}; extents are at least 1"
    if extent >= END:
        return f"{what} has extent {extent}; extents are below 2^63"
    return ""


def bad_size(what: str, shape: Sequence[int], element_bytes: int) -> str:
    """A sentence about `what` if an array of positive extents (not checked), of elements of `element_bytes` bytes, has
    2^63 bytes or more, else empty."""
    size = prod(shape) * element_bytes
    return f"{what} has {size} bytes; offsets are signed 64-bit integers, below 2^63" if size >= END else ""


@lru_cache(maxsize=4096)
def bad_shape(type: Attribute) -> str:
    """A sentence if a tensor, memref or vector type has an extent, or a size in bytes, of 2^63 or more, else empty.

    Dynamic and empty dimensions are skipped. The result for any other type is empty.
    """
    if not isinstance(type, ShapedType) or not isinstance(type, ContainerType):
        return ""
    shape = [size for size in type.get_shape() if size > 0]
    large = (bad_extent(f"a dimension of {type}", size) for size in shape)
    return next(filter(None, large), "") or bad_size(str(type), shape, element_bytes(type.get_element_type()))


def bad_index(what: str, expr: AffineExpr, extents: Sequence[int]) -> str:
    """A sentence about `what` if a value inside `expr` may reach 2^63 in magnitude for 0 <= d_i < extents[i], else
    empty. Requires an expression without symbols."""
    if _magnitude(expr, extents) < END:
        return ""
    ranges = lin.box(extents)
    return bad_form(what, lin.linear(expr, lin.variables(len(extents)), ranges), ranges)


def bad_form(what: str, form: lin.Linear, ranges: lin.Ranges) -> str:
    """A sentence about `what` if a value or intermediate value of a form may reach 2^63 in magnitude over the inclusive
    `ranges` of its variables, else empty."""
    largest = lin.largest(form, ranges)
    return (
        f"{what} takes values up to {largest}; indices are signed 64-bit integers, below 2^63" if largest >= END else ""
    )


def _magnitude(expr: AffineExpr, extents: Sequence[int]) -> int:
    """Bound the magnitude of every intermediate value of an expression as written, for 0 <= d_i < extents[i]."""
    match expr:
        case AffineConstantExpr(value):
            return abs(value)
        case AffineDimExpr(position):
            return extents[position]
        case AffineBinaryOpExpr(kind, lhs, rhs):
            left, right = _magnitude(lhs, extents), _magnitude(rhs, extents)
            return left * right if kind is AffineBinaryOpKind.Mul else left + right
    raise AssertionError(f"symbols do not occur here: {expr}")
