"""Scalar ops on constants: their values, exact as IEEE 754 and two's complement have them, and these as attributes."""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    BoolAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.traits import ConstantLike

from compiler.dialects.numbers import Array, constant, dtype_of, is_float
from compiler.dialects.upstream.arith import CmpfOp, CmpiOp, RemFOp, SelectOp
from compiler.dialects.upstream.casts import CASTS, FPToSIOp, FPToUIOp, element_of
from compiler.interpret.scalar import function
from compiler.support.errors import InputError

MAX_ELEMENTS = 1024
"""The most elements of a vector that is evaluated."""

_INTEGER = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.MinUIOp,
    arith.MaxUIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    math.CountLeadingZerosOp,
    math.CountTrailingZerosOp,
    math.CtPopOp,
    CmpiOp,
    SelectOp,
)
_FLOAT = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.DivfOp,
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.MaxnumfOp,
    arith.MinnumfOp,
    CmpfOp,
    RemFOp,
    math.CeilOp,
    math.FloorOp,
    math.RoundOp,
    math.RoundEvenOp,
    math.TruncOp,
    math.SqrtOp,
)
_SIGNS = (arith.NegfOp, math.AbsFOp, math.CopySignOp, SelectOp)
"""The ops that keep the sign of NaN."""


def _divisible(a: Array, b: Array) -> Any:
    """Whether signed quotients exist: no divisor is zero, and none overflows."""
    return (b != 0) & ~((b == -1) & (a == np.iinfo(a.dtype).min)) if a.dtype != np.bool_ else np.False_


def _shiftable(a: Array, b: Array) -> Any:
    return (b >= 0) & (b < 8 * b.dtype.itemsize) if b.dtype != np.bool_ else ~b


def _nonzero(a: Array, b: Array) -> Any:
    return b != 0


def _ordered(a: Array, b: Array) -> Any:
    """Whether the greater of two numbers is one: 0.0 and -0.0 are equal for maxnumf."""
    signs = [np.signbit(np.asarray(each, np.float64)) for each in (a, b)]
    return (a != b) | (signs[0] == signs[1])


_SIGNED = (arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)
_BOUNDED = (arith.DivUIOp, arith.CeilDivUIOp, arith.RemUIOp, arith.RemSIOp)
_SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
_DEFINED: Mapping[type[Operation], Callable[[Array, Array], Any]] = {
    **dict.fromkeys(_SIGNED, _divisible),
    **dict.fromkeys(_BOUNDED, _nonzero),
    **dict.fromkeys(_SHIFTS, _shiftable),
    **dict.fromkeys((arith.MaxnumfOp, arith.MinnumfOp), _ordered),
}
"""Where an op has one result; others always have."""

_EVALUATED = frozenset((*_INTEGER, *_FLOAT, *_SIGNS, *CASTS, *_DEFINED))
"""The ops that are evaluated: those whose result no two processors compute differently, but for the payload of NaN.
`math.exp` and its like are none of them."""


class EvaluateConstants(RewritePattern):
    """Replace an op on constants by its value.

        %0 = arith.addi %c100, %c100 : i8
      ->
        %0 = arith.constant -56 : i8

    A division by zero, a quotient or a conversion that overflows, and a shift by all bits stay: they are undefined.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        value = evaluated(op)
        if value is not None:
            rewriter.replace(op, arith.ConstantOp(value))


def is_evaluated(op: Operation) -> bool:
    """Whether an op is evaluated on constants where it is defined."""
    return type(op) in _EVALUATED


def evaluated(op: Operation) -> FloatAttr | IntegerAttr | DenseIntOrFPElementsAttr | None:
    """Evaluate an op of arith or math whose operands are constants: scalars, or vectors of at most MAX_ELEMENTS
    elements. None for other operands, an op that is not evaluated, an undefined result, and a type without a numpy
    dtype, such as i4."""
    if not is_evaluated(op):
        return None
    constants = [ConstantLike.get_constant_value(value) for value in op.operands]
    if any(value is None for value in constants):
        return None
    try:
        arrays = [_array(value) for value in constants if value is not None]
        with np.errstate(all="ignore"):
            return _attribute(op, function(op)(*arrays)) if _is_defined(op, arrays) else None
    except InputError:  # a type that the evaluator has no numbers of
        return None


def _is_defined(op: Operation, arrays: list[Array]) -> bool:
    if isinstance(op, FPToSIOp | FPToUIOp):
        return _fits(op, arrays[0])
    defined = _DEFINED.get(type(op))
    return defined is None or bool(np.all(defined(*arrays)))


def _fits(op: FPToSIOp | FPToUIOp, array: Array) -> bool:
    """Whether truncated floats are integers of the result's type."""
    bits = element_of(op.result.type).width.data  # type: ignore[attr-defined]
    low, high = (0, 1 << bits) if isinstance(op, FPToUIOp) else (-1 << (bits - 1), 1 << (bits - 1))
    wide = np.trunc(np.asarray(array, np.float64))
    return bool(np.all((wide >= low) & (wide < high)))


def _array(value: Attribute) -> Array:
    """The number or the numbers of a constant. Raises InputError for other constants, and for too many elements."""
    if not isinstance(value, DenseIntOrFPElementsAttr) or not isinstance(value.type, VectorType):
        return np.asarray(constant(value))
    count = python_math.prod(value.type.get_shape())
    if count > MAX_ELEMENTS or value.type.scalable_dims.data.count(BoolAttr.from_bool(True)):
        raise InputError(f"{value.type} is not evaluated")
    dtype = dtype_of(value.type.element_type)
    values = [value.get_values()[0]] * count if value.is_splat() else value.get_values()
    numbers = np.array([_wrapped(number, dtype) for number in values])
    return numbers.astype(dtype).reshape(value.type.get_shape())


def _wrapped(number: Any, dtype: np.dtype[Any]) -> Any:
    """An element as a number of its dtype: an integer by its low bits."""
    if is_float(dtype) or dtype == np.bool_:
        return number
    bits = 8 * dtype.itemsize
    return (int(number) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _attribute(op: Operation, result: Any) -> FloatAttr | IntegerAttr | DenseIntOrFPElementsAttr | None:
    """The value of an op as the attribute of a constant; NaN is positive unless the op is one of `_SIGNS`."""
    type, array = op.results[0].type, np.asarray(result)
    element = element_of(type)
    keeps_sign = isinstance(op, _SIGNS)
    if isinstance(type, VectorType):
        numbers = [_number(value, element, keeps_sign) for value in array.ravel().tolist()]
        return DenseIntOrFPElementsAttr.from_list(type, numbers)
    number = _number(array.item(), element, keeps_sign)
    if isinstance(element, AnyFloat):
        return FloatAttr(float(number), element)
    if element == i1:
        return BoolAttr.from_bool(bool(number))
    return IntegerAttr(number, element) if isinstance(element, IntegerType | IndexType) else None


def _number(value: Any, element: Attribute, keeps_sign: bool) -> Any:
    if not isinstance(element, AnyFloat):
        return int(value)
    real = float(value)
    return python_math.nan if real != real and not keeps_sign else real
