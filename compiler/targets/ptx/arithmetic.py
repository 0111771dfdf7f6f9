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
    """Return `compute`, an operation on floats of a type, with the modifiers `.ftz` (float32 denormals of operands and
    result become zero of their sign; ignored for other types) and `.sat` (the result is clamped to [0, 1], NaN becomes
    0); other modifiers change nothing."""
    if not modifiers & {"ftz", "sat"}:
        return compute
    flushed = flush if "ftz" in modifiers and bits_of(type_) == 32 and "x" not in type_ else lambda values: values

    def run(*operands: Array) -> Array:
        result = flushed(compute(*(flushed(operand) for operand in operands)))
        return saturated(result) if "sat" in modifiers else result

    return run


def flush(values: Array) -> Array:
    """Return float32 values with each denormal replaced by a zero of its sign."""
    return np.where(np.abs(values) < np.float32(2.0**-126), np.copysign(np.float32(0), values), values)


def saturated(values: Array) -> Array:
    """Return floats clamped to [0, 1]; NaN and -0 become +0."""
    one, zero = values.dtype.type(1), values.dtype.type(0)
    return np.where(values > zero, np.where(values < one, values, one), zero)


def rounding_of(modifiers: set[str]) -> str:
    """Return the rounding mode among an opcode's modifiers: rn, rz, rm or rp; rn (to nearest) if there is none."""
    return next((mode for mode in ROUNDINGS if mode in modifiers), "rn")


@pure("add", "sub")
def addition(instruction: PtxInstruction) -> Computation:
    """Return the computation of `add` or `sub`: integers wrap, floats are rounded once. Raises PtxError for a modifier
    other than a float's rounding mode, `.ftz` and `.sat`."""
    type_ = one_type(instruction)
    if not is_float_type(type_):
        modifiers_of(instruction)
        return elementwise(type_, 2, np.add if instruction.parts[0] == "add" else np.subtract)
    modifiers = modifiers_of(instruction, *_FLOAT_MODIFIERS)
    mode, negates = rounding_of(modifiers), instruction.parts[0] == "sub"
    return elementwise(
        type_, 2, finished(type_, modifiers, lambda a, b: added(a, np.negative(b) if negates else b, mode))
    )


@pure("mul")
def multiplication(instruction: PtxInstruction) -> Computation:
    """Return the computation of `mul`: floats are rounded once; of an integer product `.lo`, the default, keeps the low
    half of the bits, `.hi` the high half, `.wide` all. Raises PtxError for an unknown modifier."""
    type_ = one_type(instruction)
    if is_float_type(type_):
        modifiers = modifiers_of(instruction, *_FLOAT_MODIFIERS)
        mode = rounding_of(modifiers)
        return elementwise(type_, 2, finished(type_, modifiers, lambda a, b: multiplied(a, b, mode)))
    return _integer_product(instruction, type_, 2)


@pure("mad", "fma")
def multiply_add(instruction: PtxInstruction) -> Computation:
    """Return the computation of `fma` or `mad`, a * b + c: floats are rounded once; integers add c to the low half, the
    high half or all bits of the product (`.lo`, `.hi`, `.wide`). Without one of these it is `.lo`. Raises PtxError for
    `.relu` and unknown modifiers."""
    type_ = one_type(instruction)
    if is_float_type(type_):
        modifiers = modifiers_of(instruction, *_FLOAT_MODIFIERS, "relu")
        if "relu" in modifiers:
            raise instruction.refused("'.relu' is unknown")
        mode = rounding_of(modifiers)
        return elementwise(type_, 3, finished(type_, modifiers, lambda a, b, c: fused(a, b, c, mode)))
    return _integer_product(instruction, type_, 3)


def _integer_product(instruction: PtxInstruction, type_: str, operands: int) -> Computation:
    (part,) = modifiers_of(instruction, "lo", "hi", "wide") or {"lo"}
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
    """Return the high half of the exact products of two arrays of integers, in their dtype, signed or unsigned, of at
    most 64 bits."""
    bits = 8 * a.itemsize
    if bits < 64:
        return (_wide_product(a, b) >> bits).astype(a.dtype)
    wide = (a.astype(object) * b.astype(object)) >> 64
    return np.array([int(value) % (1 << 64) for value in wide], np.uint64).view(a.dtype)


@pure("div", "rem")
def division(instruction: PtxInstruction) -> Computation:
    """Return the computation of `div` or `rem`: integer quotients are truncated toward zero, floats rounded to nearest,
    also for `.approx` and `.full`; `.approx` gives a zero for finite operands with a divisor above 2^126 in magnitude.
    Raises PtxError for another modifier."""
    type_ = one_type(instruction)
    if is_float_type(type_):
        modifiers = modifiers_of(instruction, "rn", "approx", "full", "ftz")
        divide = _approximate_quotient if "approx" in modifiers else np.divide
        return elementwise(type_, 2, finished(type_, modifiers, divide))
    modifiers_of(instruction)
    return elementwise(type_, 2, quotient if instruction.parts[0] == "div" else remainder)


def _approximate_quotient(a: Array, b: Array) -> Array:
    """Return a / b for float32, but zero for finite a and finite |b| above 2^126, as PTX defines `div.approx`."""
    huge = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b) & np.isfinite(a)
    return np.where(huge, np.copysign(np.float32(0), a / b), a / b)


def quotient(a: Array, b: Array) -> Array:
    """Return a / b for integers, truncated toward zero; all bits set if b is 0, which is undefined in PTX; the minimum
    divided by -1 wraps to itself."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    floor = a // safe
    if a.dtype.kind == "i":
        floor = floor + ((floor * safe != a) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, a.dtype.type(-1) if a.dtype.kind == "i" else np.iinfo(a.dtype).max, floor).astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """Return a - b * quotient(a, b) for integers, with the sign of a; a where b is 0."""
    return np.where(b == 0, a, a - quotient(a, b) * b).astype(a.dtype)


@pure("min", "max")
def extremum(instruction: PtxInstruction) -> Computation:
    """Return the computation of `min` or `max`. Of floats, a number wins against NaN, with `.NaN` NaN wins; +0 is above
    -0. Raises PtxError for a modifier other than `.NaN` and `.ftz`."""
    type_, is_max = one_type(instruction), instruction.parts[0] == "max"
    if not is_float_type(type_):
        modifiers_of(instruction)
        return elementwise(type_, 2, np.maximum if is_max else np.minimum)
    modifiers = modifiers_of(instruction, "NaN", "ftz")
    propagates = "NaN" in modifiers
    plain = (np.maximum if propagates else np.fmax) if is_max else (np.minimum if propagates else np.fmin)

    def compute(a: Array, b: Array) -> Array:
        signs = np.signbit(a) & np.signbit(b) if is_max else np.signbit(a) | np.signbit(b)
        zero = np.where(signs, a.dtype.type(-0.0), a.dtype.type(0))
        return np.where((a == 0) & (b == 0), zero, plain(a, b)).astype(a.dtype)

    return elementwise(type_, 2, finished(type_, modifiers, compute))


@pure("neg", "abs")
def sign_operation(instruction: PtxInstruction) -> Computation:
    """Return the computation of `neg` or `abs`: integers wrap, floats change in the sign bit only. Raises PtxError for
    a modifier other than `.ftz`."""
    type_ = one_type(instruction)
    modifiers = modifiers_of(instruction, "ftz")
    compute: Any = np.negative if instruction.parts[0] == "neg" else np.abs
    return elementwise(type_, 1, finished(type_, modifiers, compute))


@pure("copysign")
def copied_sign(instruction: PtxInstruction) -> Computation:
    """Return the computation of `copysign d, a, b`: b with the sign of a, operands in PTX's order. Raises PtxError for
    any modifier."""
    modifiers_of(instruction)
    return elementwise(one_type(instruction), 2, lambda a, b: np.copysign(b, a))


@pure("dp4a", "dp2a")
def dot_product(instruction: PtxInstruction) -> Computation:
    """Return the computation of `dp4a` or `dp2a` `d, a, b, c`: c plus the products of the four bytes of a and of b, or
    of the two 16-bit halves of a and the low (`.lo`, the default) or high (`.hi`) two bytes of b; sums wrap to 32 bits.
    Raises PtxError for another modifier."""
    modifiers = modifiers_of(instruction, "lo", "hi")
    first, second = types_of(instruction)
    signed = "s" if "s" in first[0] + second[0] else "u"
    count = 4 if instruction.parts[0] == "dp4a" else 2
    start = 2 if "hi" in modifiers else 0

    def compute(a: Array, b: Array, c: Array) -> Array:
        left = a.view(dtype_of_type(f"{first[0]}{32 // count}")).reshape(len(a), count).astype(c.dtype)
        right = b.view(dtype_of_type(f"{second[0]}8")).reshape(len(b), 4).astype(c.dtype)
        products = left * right[:, start : start + count]
        total: Array = c + products.sum(axis=1, dtype=c.dtype)
        return total

    return Computation((first, second, f"{signed}32"), f"{signed}32", compute)
