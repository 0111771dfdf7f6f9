"""Quotients and remainders of integers and floats, rounded down or towards zero."""

from __future__ import annotations

import math

from compiler.elements import is_float
from compiler.te import scalar as e
from compiler.te.expr import Expr, as_expr
from compiler.te.nn.elementwise import joined

__all__ = ["floor_divide", "fmod", "remainder", "trunc_divide"]


def _truncated_rest(a: Expr, b: Expr) -> Expr:
    """a - trunc(a / b) * b with a's sign, of floats, in f64; a rounded quotient that is one too far is put right."""
    left, right = e.cast(a, "f64"), e.cast(b, "f64")
    size = e.abs(right)
    remainder = e.abs(left) - e.trunc(e.abs(left) / size) * size
    remainder = e.select(remainder < 0.0, remainder + size, remainder)
    remainder = e.select(remainder >= size, remainder - size, remainder)
    remainder = e.select(e.equal(size, math.inf) & (e.abs(left) < math.inf), e.abs(left), remainder)
    return e.copysign(remainder, left)


def _fmod(a: Expr, b: Expr | float) -> Expr:
    right = as_expr(b, a.dtype)
    if not is_float(a.dtype):
        return e.truncmod(a, right)
    return e.cast(_truncated_rest(a, right), a.dtype)


def _floored_rest(a: Expr, b: Expr) -> Expr:
    """The remainder of floats that has b's sign, in f64."""
    remainder, right = _truncated_rest(a, b), e.cast(b, "f64")
    turned = e.not_equal(remainder, 0.0) & (((remainder < 0.0) & (right > 0.0)) | ((remainder > 0.0) & (right < 0.0)))
    return e.select(turned, remainder + right, remainder)


def _remainder(a: Expr, b: Expr | float) -> Expr:
    right = as_expr(b, a.dtype)
    return e.cast(_floored_rest(a, right), a.dtype) if is_float(a.dtype) else a % right


def _floor_divide(a: Expr, b: Expr | float) -> Expr:
    right = as_expr(b, a.dtype)
    if not is_float(a.dtype):
        return a // right
    wide = e.cast(right, "f64")
    quotient = e.round((e.cast(a, "f64") - _floored_rest(a, right)) / wide)
    plain = e.cast(a, "f64") / wide
    return e.cast(e.select(e.equal(wide, 0.0) | e.equal(e.abs(wide), math.inf), e.floor(plain), quotient), a.dtype)


def _trunc_divide(a: Expr, b: Expr | float) -> Expr:
    right = as_expr(b, a.dtype)
    return e.trunc(a / right) if is_float(a.dtype) else e.truncdiv(a, right)


fmod = joined("fmod", "A - B * trunc(A / B), with the sign of A as in C", _fmod)
remainder = joined("remainder", "A - B * floor(A / B), with the sign of B as in Python", _remainder)
floor_divide = joined("floor_divide", "A / B rounded down as in Python", _floor_divide)
trunc_divide = joined("trunc_divide", "A / B truncated towards zero as in C", _trunc_divide)
