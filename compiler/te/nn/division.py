"""Quotients and remainders of integers and floats, rounded down or towards zero."""

from __future__ import annotations

from compiler.te import scalar as e
from compiler.te.expr import Expr
from compiler.te.nn.elementwise import binary_op
from compiler.types.dtypes import is_float

__all__ = ["floor_divide", "fmod", "remainder", "trunc_divide"]


def _fmod(a: Expr, b: Expr | float) -> Expr:
    return (e.fmod if is_float(a.dtype) else e.truncmod)(a, b)


def _trunc_divide(a: Expr, b: Expr | float) -> Expr:
    return e.trunc(a / b) if is_float(a.dtype) else e.truncdiv(a, b)


fmod = binary_op("fmod", "A - B * trunc(A / B), exactly, with the sign of A as in C", _fmod)
remainder = binary_op("remainder", "A - B * floor(A / B), with the sign of B as in Python", lambda a, b: a % b)
floor_divide = binary_op("floor_divide", "A / B rounded down as in Python", lambda a, b: a // b)
trunc_divide = binary_op("trunc_divide", "A / B truncated towards zero as in C", _trunc_divide)
