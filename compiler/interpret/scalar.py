"""Scalar ops, bodies and combiners, for both evaluators.

All functions take numpy scalars and arrays. Integers wrap at their width; i1 is numpy's bool, whose
true is -1 in signed arithmetic. `floats` replaces every float type by one dtype. Callers silence warnings.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.dialects import loop, te
from compiler.dialects.mathematics import ELEMENTARY, Value
from compiler.dialects.numbers import DType, as_signed, as_unsigned, constant, dtype_of, is_float, to_int
from compiler.dialects.upstream.arith import CmpfOp, CmpiOp, SelectOp
from compiler.dialects.upstream.casts import element_of
from compiler.interpret.conversions import CASTS
from compiler.support.errors import InputError

Function: TypeAlias = Callable[..., Value]


def _on_unsigned(function: Function) -> Function:
    return lambda a, b: function(as_unsigned(a), as_unsigned(b)).astype(a.dtype)


def _on_bools(function: Function) -> Function:
    return lambda *operands: to_int(function(*map(as_signed, operands)), np.dtype(np.bool_))


def _divsi(a: Value, b: Value) -> Value:
    return a // b + ((a % b != 0) & ((a < 0) != (b < 0)))


def _ceildiv(a: Value, b: Value) -> Value:
    return a // b + (a % b != 0)


def _ipowi(a: Value, b: Value) -> Value:
    inverse = np.where(np.abs(a) == 1, a, 0 * a)  # 1/a as an integer, for the negative exponents
    return np.where(b < 0, np.where(b & 1, inverse, inverse * inverse), a ** np.maximum(b, 0))


def _maximumf(a: Value, b: Value) -> Value:
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))  # of two zeros the positive one


def _minimumf(a: Value, b: Value) -> Value:
    return np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b))


def _fpowi(a: Value, b: Value) -> Value:
    return (a.astype(np.float64) ** b).astype(a.dtype)


_OPS: Mapping[type[Operation], Function] = {
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.DivSIOp: _divsi,
    arith.DivUIOp: _on_unsigned(operator.floordiv),
    arith.FloorDivSIOp: operator.floordiv,
    arith.CeilDivSIOp: _ceildiv,
    arith.CeilDivUIOp: _on_unsigned(_ceildiv),
    arith.RemSIOp: np.fmod,
    arith.RemUIOp: _on_unsigned(operator.mod),
    arith.MinSIOp: np.minimum,
    arith.MaxSIOp: np.maximum,
    arith.MinUIOp: _on_unsigned(np.minimum),
    arith.MaxUIOp: _on_unsigned(np.maximum),
    arith.AndIOp: operator.and_,
    arith.OrIOp: operator.or_,
    arith.XOrIOp: operator.xor,
    arith.ShLIOp: operator.lshift,
    arith.ShRSIOp: operator.rshift,
    arith.ShRUIOp: _on_unsigned(operator.rshift),
    arith.AddfOp: operator.add,
    arith.SubfOp: operator.sub,
    arith.MulfOp: operator.mul,
    arith.DivfOp: operator.truediv,
    arith.NegfOp: operator.neg,
    arith.MaximumfOp: _maximumf,
    arith.MinimumfOp: _minimumf,
    arith.MaxnumfOp: np.fmax,
    arith.MinnumfOp: np.fmin,
    math.AbsIOp: np.abs,
    math.FPowIOp: _fpowi,
    math.IPowIOp: _ipowi,
    **{row.op: row.numpy for row in ELEMENTARY.values()},
}

# (bits as a non-negative int, width) -> count
_COUNTS: Mapping[type[Operation], Callable[[int, int], int]] = {
    math.CountLeadingZerosOp: lambda bits, width: width - bits.bit_length(),
    math.CountTrailingZerosOp: lambda bits, width: (bits & -bits).bit_length() - 1 if bits else width,
    math.CtPopOp: lambda bits, width: bits.bit_count(),
}

# in the order of the predicates' numbers
_SIGNED = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_CMPI: Sequence[Function] = (
    *(lambda a, b, f=f: f(as_signed(a), as_signed(b)) for f in _SIGNED),
    *(lambda a, b, f=f: f(as_unsigned(a), as_unsigned(b)) for f in _SIGNED[2:]),
)
_CMPF: Sequence[Function] = (
    lambda a, b: (a == b) & False,
    operator.eq,
    operator.gt,
    operator.ge,
    operator.lt,
    operator.le,
    lambda a, b: (a < b) | (a > b),
    lambda a, b: (a == a) & (b == b),
    lambda a, b: ~((a < b) | (a > b)),
    lambda a, b: ~(a <= b),
    lambda a, b: ~(a < b),
    lambda a, b: ~(a >= b),
    lambda a, b: ~(a > b),
    operator.ne,
    lambda a, b: (a != a) | (b != b),
    lambda a, b: (a == b) | True,
)


def function(op: Operation, floats: DType | None = None) -> Function:
    """The numpy function of a scalar op, from its operands to its result; `floats`, unless None, replaces float dtypes.

    Results that MLIR leaves undefined (division by zero, an oversized shift) are numpy's.
    Raises InputError for an op without one.
    """
    kind = type(op)
    if isinstance(op, CmpiOp | arith.CmpiOp):
        return _CMPI[op.predicate.value.data]
    if isinstance(op, CmpfOp | arith.CmpfOp):
        return _CMPF[op.predicate.value.data]
    if isinstance(op, SelectOp | arith.SelectOp):
        return np.where
    if isinstance(op, arith.BitcastOp):
        return _bitcast(op, floats)
    if op.name in CASTS:
        cast, dtype = CASTS[op.name], dtype_of(element_of(op.results[0].type), floats)
        return lambda a: cast(a, dtype)
    if kind in _COUNTS:
        return _count(_COUNTS[kind], op.results[0].type)
    if kind not in _OPS:
        raise InputError(f"the interpreter has no meaning for the op '{op.name}'")
    return _on_bools(_OPS[kind]) if op.operands[0].type == i1 else _OPS[kind]


def _bitcast(op: arith.BitcastOp, floats: DType | None) -> Function:
    source, target = dtype_of(op.input.type), dtype_of(op.result.type)
    computed_in = dtype_of(op.result.type, floats)
    return lambda a: a.astype(source).view(target).astype(computed_in)


def _count(count: Callable[[int, int], int], type_: Attribute) -> Function:
    dtype = dtype_of(type_)
    width = 1 if dtype == np.bool_ else dtype.itemsize * 8
    counts = np.vectorize(lambda v: count(int(v) & ((1 << width) - 1), width), otypes=[np.int64])
    return lambda a: to_int(counts(a), dtype)


_COMBINERS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_BOOL_COMBINERS = {"add": np.not_equal, "mul": np.logical_and, "max": np.logical_and, "min": np.logical_or}


def combiner(name: str, dtype: DType) -> np.ufunc:
    """The combiner add, mul, max or min as a ufunc on a dtype; max and min propagate NaN, the sign of their zero is
    unspecified. On i1, whose true is -1, add is xor, mul and max are the conjunction, min is the disjunction."""
    return (_BOOL_COMBINERS if dtype == np.bool_ else _COMBINERS)[name]


def identity(name: str, dtype: DType) -> Value:
    """The identity of the combiner add, mul, max or min, as a scalar of a dtype; for floats that of max is
    -infinity."""
    if name in ("add", "mul"):
        return dtype.type(name == "mul")
    if dtype == np.bool_:
        return dtype.type(name == "max")
    if is_float(dtype):
        return dtype.type(-np.inf if name == "max" else np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if name == "max" else limits.max)


class Body:
    """The body of a te.compute or loop.block as a function from the values of its inputs and axes to those it yields.

    axes: the labels of the axes, in the order of their values. floats: the dtype that replaces all float dtypes, or
    None.
    """

    def __init__(self, block: Block, axes: Sequence[str], floats: DType | None = None) -> None:
        slots: dict[SSAValue, int] = {argument: slot for slot, argument in enumerate(block.args)}
        axis_slots = {label: len(slots) + position for position, label in enumerate(axes)}
        self.steps: list[tuple[Function, tuple[int, ...]]] = []
        self.yielded: list[int] = []
        for op in block.ops:
            operands = tuple(slots[value] for value in op.operands)
            if isinstance(op, te.YieldOp | loop.YieldOp):
                self.yielded.extend(operands)
            else:
                slots[op.results[0]] = len(block.args) + len(axes) + len(self.steps)
                self.steps.append(_step(op, operands, axis_slots, floats))

    def __call__(self, inputs: Sequence[Value], axes: Sequence[Value]) -> list[Value]:
        values = [*inputs, *axes]
        for step, operands in self.steps:
            values.append(step(*[values[slot] for slot in operands]))
        return [values[slot] for slot in self.yielded]


def _step(
    op: Operation, operands: tuple[int, ...], axis_slots: Mapping[str, int], floats: DType | None
) -> tuple[Function, tuple[int, ...]]:
    if isinstance(op, te.IndexOp | loop.IndexOp):
        return np.int64, (axis_slots[op.label.data],)
    if isinstance(op, arith.ConstantOp):
        value = constant(op.value, floats)
        return lambda: value, ()
    return function(op, floats), operands
