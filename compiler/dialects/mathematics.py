"""`ELEMENTARY`: the table of mathematical functions of floats.

A new function is a row. For users it also takes a line in `te.scalar` and one in `te.nn.elementwise`;
`passes.expand_math` may have a polynomial for it.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Operation

from compiler.dialects.upstream.arith import RemFOp
from compiler.dialects.upstream.math import ErfcOp

Value: TypeAlias = Any  # a numpy scalar or array, which work alike


@dataclass(frozen=True)
class Elementary:
    """A mathematical function, with its spelling in each tool that computes it. name: its name in te and in tables.

    op: its op, of the dialect math, except for arith.remf.
    numpy: the same function of numpy arrays, for the evaluators.
    c: the function of double in the C library; the one of float has the suffix f.
    llvm: LLVM's intrinsic; None if the C library's function is called instead.
    """

    name: str
    op: type[Operation]
    numpy: Callable[..., Value]
    c: str
    llvm: str | None = None


def _round(a: Value) -> Value:
    truncated = np.trunc(a)
    return np.copysign(truncated + np.copysign(np.abs(a - truncated) >= 0.5, a), a)


def _rsqrt(a: Value) -> Value:
    widened = a.astype(np.float32) if a.dtype.itemsize == 2 else a
    return (1 / np.sqrt(widened)).astype(a.dtype)


def _fma(a: Value, b: Value, c: Value) -> Value:
    wide_dtype = np.longdouble if a.dtype == np.float64 else np.float64
    return (a.astype(wide_dtype) * b.astype(wide_dtype) + c.astype(wide_dtype)).astype(a.dtype)


def _by_element(function: Callable[[float], float]) -> Callable[[Value], Value]:
    """Lift a function of Python floats to arrays: computed in double precision, then rounded to the dtype of the
    argument."""
    elementwise = np.vectorize(function, otypes=[np.float64])
    return lambda a: elementwise(a).astype(a.dtype)


ELEMENTARY = {
    row.name: row
    for row in (
        Elementary("abs", math.AbsFOp, np.abs, "fabs", "fabs"),
        Elementary("acos", math.AcosOp, np.arccos, "acos", "acos"),
        Elementary("acosh", math.AcoshOp, np.arccosh, "acosh"),
        Elementary("asin", math.AsinOp, np.arcsin, "asin", "asin"),
        Elementary("asinh", math.AsinhOp, np.arcsinh, "asinh"),
        Elementary("atan", math.AtanOp, np.arctan, "atan", "atan"),
        Elementary("atan2", math.Atan2Op, np.arctan2, "atan2", "atan2"),
        Elementary("atanh", math.AtanhOp, np.arctanh, "atanh"),
        Elementary("cbrt", math.CbrtOp, np.cbrt, "cbrt"),
        Elementary("ceil", math.CeilOp, np.ceil, "ceil", "ceil"),
        Elementary("copysign", math.CopySignOp, np.copysign, "copysign", "copysign"),
        Elementary("cos", math.CosOp, np.cos, "cos", "cos"),
        Elementary("cosh", math.CoshOp, np.cosh, "cosh", "cosh"),
        Elementary("erf", math.ErfOp, _by_element(python_math.erf), "erf"),
        Elementary("erfc", ErfcOp, _by_element(python_math.erfc), "erfc"),
        Elementary("exp", math.ExpOp, np.exp, "exp", "exp"),
        Elementary("exp2", math.Exp2Op, np.exp2, "exp2", "exp2"),
        Elementary("expm1", math.ExpM1Op, np.expm1, "expm1"),
        Elementary("floor", math.FloorOp, np.floor, "floor", "floor"),
        Elementary("fma", math.FmaOp, _fma, "fma", "fma"),
        Elementary("fmod", RemFOp, np.fmod, "fmod"),
        Elementary("log", math.LogOp, np.log, "log", "log"),
        Elementary("log10", math.Log10Op, np.log10, "log10", "log10"),
        Elementary("log1p", math.Log1pOp, np.log1p, "log1p"),
        Elementary("log2", math.Log2Op, np.log2, "log2", "log2"),
        Elementary("pow", math.PowFOp, np.power, "pow", "pow"),
        Elementary("round", math.RoundEvenOp, np.rint, "rint", "roundeven"),
        Elementary("round_away", math.RoundOp, _round, "round", "round"),
        Elementary("rsqrt", math.RsqrtOp, _rsqrt, "rsqrt"),
        Elementary("sin", math.SinOp, np.sin, "sin", "sin"),
        Elementary("sinh", math.SinhOp, np.sinh, "sinh", "sinh"),
        Elementary("sqrt", math.SqrtOp, np.sqrt, "sqrt", "sqrt"),
        Elementary("tan", math.TanOp, np.tan, "tan", "tan"),
        Elementary("tanh", math.TanhOp, np.tanh, "tanh", "tanh"),
        Elementary("trunc", math.TruncOp, np.trunc, "trunc", "trunc"),
    )
}
"""Map each name to its function."""
