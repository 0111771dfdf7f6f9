"""Arithmetic on integers and floats: add, sub, mul, mad, fma, div, rem, min, max, neg, abs, and sums with carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compiler.targets.ptx.rounding import ROUNDINGS, added, fused, multiplied
from compiler.targets.ptx.syntax import PtxInstruction
from compiler.targets.ptx.table import Computation, elementwise, modifiers_of, one_type, pure, types_of, wider
from compiler.targets.ptx.values import Array, bits_of, dtype_of_type, is_float_type

Operation = Callable[..., Array]
_FLOAT_MODIFIERS = (*ROUNDINGS, "ftz", "sat")


def finished(type_: str, modifiers: set[str], compute: Operation) -> Operation:
    """Return an operation on floats with `.ftz` (denormals are zero) and `.sat` (the result is in [0, 1], NaN is 0)."""
    if not modifiers & {"ftz", "sat"}:
        return compute
    flushed = flush if "ftz" in modifiers and bits_of(type_) == 32 and "x" not in type_ else lambda values: values

    def run(*operands: Array) -> Array:
        result = flushed(compute(*(flushed(operand) for operand in operands)))
        return saturated(result) if "sat" in modifiers else result

    return run


def flush(values: Array) -> Array:
    """Return float32 values with zeros of the same sign for denormals."""
    return np.where(np.abs(values) < np.float32(2.0**-126), np.copysign(np.float32(0), values), values)


def saturated(values: Array) -> Array:
    """Return values clamped to [0, 1], with 0 for NaN and -0."""
    one, zero = values.dtype.type(1), values.dtype.type(0)
    return np.where(values > zero, np.where(values < one, values, one), zero)


def rounding_of(modifiers: set[str]) -> str:
    """Return the rounding mode among the parts of an opcode; to nearest if there is none."""
    return next((mode for mode in ROUNDINGS if mode in modifiers), "rn")


@pure("add", "sub")
def addition(at: PtxInstruction) -> Computation:
    """`add`, `sub`: integers wrap."""
    type_ = one_type(at)
    if not is_float_type(type_):
        modifiers_of(at)
        return elementwise(type_, 2, np.add if at.parts[0] == "add" else np.subtract)
    modifiers = modifiers_of(at, *_FLOAT_MODIFIERS)
    mode, negates = rounding_of(modifiers), at.parts[0] == "sub"
    return elementwise(
        type_, 2, finished(type_, modifiers, lambda a, b: added(a, np.negative(b) if negates else b, mode))
    )


@pure("mul")
def multiplication(at: PtxInstruction) -> Computation:
    """`mul`: of integers the low half, the high half, or all bits."""
    type_ = one_type(at)
    if is_float_type(type_):
        modifiers = modifiers_of(at, *_FLOAT_MODIFIERS)
        mode = rounding_of(modifiers)
        return elementwise(type_, 2, finished(type_, modifiers, lambda a, b: multiplied(a, b, mode)))
    return _integer_product(at, type_, 2)


@pure("mad", "fma")
def multiply_add(at: PtxInstruction) -> Computation:
    """`fma` and `mad` on floats round once; `mad` on integers adds to a half of the product, or to all of it."""
    type_ = one_type(at)
    if is_float_type(type_):
        modifiers = modifiers_of(at, *_FLOAT_MODIFIERS, "relu")
        if "relu" in modifiers:
            raise at.refused("'.relu' is unknown")
        mode = rounding_of(modifiers)
        return elementwise(type_, 3, finished(type_, modifiers, lambda a, b, c: fused(a, b, c, mode)))
    return _integer_product(at, type_, 3)


def _integer_product(at: PtxInstruction, type_: str, operands: int) -> Computation:
    (part,) = modifiers_of(at, "lo", "hi", "wide") or {"lo"}
    result = wider(type_) if part == "wide" else type_
    products: dict[str, Operation] = {"lo": np.multiply, "hi": high_product, "wide": _wide_product}
    product = products[part]
    if operands == 2:
        return Computation((type_, type_), result, product)
    return Computation((type_, type_, result), result, lambda a, b, c: product(a, b) + c)


def _wide_product(a: Array, b: Array) -> Array:
    dtype = np.dtype(f"{a.dtype.kind}{2 * a.itemsize}")
    wide: Array = a.astype(dtype) * b.astype(dtype)
    return wide


def high_product(a: Array, b: Array) -> Array:
    """Return the high half of the products of integers."""
    bits = 8 * a.itemsize
    if bits < 64:
        return (_wide_product(a, b) >> bits).astype(a.dtype)
    wide = (a.astype(object) * b.astype(object)) >> 64
    return np.array([int(value) % (1 << 64) for value in wide], np.uint64).view(a.dtype)


@pure("div", "rem")
def division(at: PtxInstruction) -> Computation:
    """`div`, `rem`: of integers truncated; `div.approx` and `div.full` of floats are rounded to nearest."""
    type_ = one_type(at)
    if is_float_type(type_):
        modifiers = modifiers_of(at, "rn", "approx", "full", "ftz")
        divide = _approximate_quotient if "approx" in modifiers else np.divide
        return elementwise(type_, 2, finished(type_, modifiers, divide))
    modifiers_of(at)
    return elementwise(type_, 2, quotient if at.parts[0] == "div" else remainder)


def _approximate_quotient(a: Array, b: Array) -> Array:
    """a / b, and zero for a divisor between 2^126 and 2^128, as the ISA says of `div.approx`."""
    huge = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b) & np.isfinite(a)
    return np.where(huge, np.copysign(np.float32(0), a / b), a / b)


def quotient(a: Array, b: Array) -> Array:
    """Return a / b truncated; all bits are set where b is zero, which PTX leaves open."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    floor = a // safe
    if a.dtype.kind == "i":
        floor = floor + ((floor * safe != a) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, a.dtype.type(-1) if a.dtype.kind == "i" else np.iinfo(a.dtype).max, floor).astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """Return a - b * quotient(a, b)."""
    return np.where(b == 0, a, a - quotient(a, b) * b).astype(a.dtype)


@pure("min", "max")
def extremum(at: PtxInstruction) -> Computation:
    """`min`, `max`: of a NaN and a number the number, with `.NaN` NaN; +0 is above -0."""
    type_, is_max = one_type(at), at.parts[0] == "max"
    if not is_float_type(type_):
        modifiers_of(at)
        return elementwise(type_, 2, np.maximum if is_max else np.minimum)
    modifiers = modifiers_of(at, "NaN", "ftz")
    propagates = "NaN" in modifiers
    plain = (np.maximum if propagates else np.fmax) if is_max else (np.minimum if propagates else np.fmin)

    def compute(a: Array, b: Array) -> Array:
        signs = np.signbit(a) & np.signbit(b) if is_max else np.signbit(a) | np.signbit(b)
        zero = np.where(signs, a.dtype.type(-0.0), a.dtype.type(0))
        return np.where((a == 0) & (b == 0), zero, plain(a, b)).astype(a.dtype)

    return elementwise(type_, 2, finished(type_, modifiers, compute))


@pure("neg", "abs")
def sign_operation(at: PtxInstruction) -> Computation:
    """`neg`, `abs`: of floats the sign bit alone."""
    type_ = one_type(at)
    modifiers = modifiers_of(at, "ftz")
    compute: Any = np.negative if at.parts[0] == "neg" else np.abs
    return elementwise(type_, 1, finished(type_, modifiers, compute))


@pure("copysign")
def copied_sign(at: PtxInstruction) -> Computation:
    """`copysign d, a, b`: b with the sign of a."""
    modifiers_of(at)
    return elementwise(one_type(at), 2, lambda a, b: np.copysign(b, a))


@pure("dp4a", "dp2a")
def dot_product(at: PtxInstruction) -> Computation:
    """`dp4a`: four products of bytes and a sum; `dp2a.lo`: two of 16 bits by the low (`.hi`: high) two bytes."""
    modifiers = modifiers_of(at, "lo", "hi")
    first, second = types_of(at)
    signed = "s" if "s" in first[0] + second[0] else "u"
    count = 4 if at.parts[0] == "dp4a" else 2
    start = 2 if "hi" in modifiers else 0

    def compute(a: Array, b: Array, c: Array) -> Array:
        left = a.view(dtype_of_type(f"{first[0]}{32 // count}")).reshape(len(a), count).astype(c.dtype)
        right = b.view(dtype_of_type(f"{second[0]}8")).reshape(len(b), 4).astype(c.dtype)
        products = left * right[:, start : start + count]
        total: Array = c + products.sum(axis=1, dtype=c.dtype)
        return total

    return Computation((first, second, f"{signed}32"), f"{signed}32", compute)
