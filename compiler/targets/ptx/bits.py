"""Operations on bits: logic, shifts, fields, permutations of bytes, counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compiler.targets.ptx.syntax import PtxInstruction
from compiler.targets.ptx.table import Computation, elementwise, modifiers_of, one_type, pure
from compiler.targets.ptx.values import Array, bits_of, dtype_of_type

_LOGIC: dict[str, Callable[..., Any]] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@pure("and", "or", "xor")
def logic(at: PtxInstruction) -> Computation:
    """`and`, `or`, `xor`, also of predicates."""
    modifiers_of(at)
    return elementwise(one_type(at), 2, _LOGIC[at.parts[0]])


@pure("not", "cnot")
def complement(at: PtxInstruction) -> Computation:
    """`not`: each bit; `cnot`: 1 for zero, else 0."""
    modifiers_of(at)
    compute: Any = np.invert if at.parts[0] == "not" else lambda a: (a == 0).astype(a.dtype)
    return elementwise(one_type(at), 1, compute)


@pure("shl", "shr")
def shift(at: PtxInstruction) -> Computation:
    """`shl`, `shr`: by at most the width; `shr.s` fills with the sign."""
    type_ = one_type(at)
    modifiers_of(at)
    bits, is_left = bits_of(type_), at.parts[0] == "shl"

    def compute(a: Array, count: Array) -> Array:
        within = np.minimum(count, bits - 1).astype(a.dtype)
        shifted = a << within if is_left else a >> within
        emptied = a >> (bits - 1) if not is_left and a.dtype.kind == "i" else np.zeros_like(a)
        return np.where(count >= bits, emptied, shifted)

    return Computation((type_, "u32"), type_, compute)


@pure("shf")
def funnel_shift(at: PtxInstruction) -> Computation:
    """`shf.l`, `shf.r`: a word of the 64 bits of b and a, by a count modulo 32 (`.wrap`) or at most 32 (`.clamp`)."""
    modifiers = modifiers_of(at, "l", "r", "wrap", "clamp")

    def compute(a: Array, b: Array, count: Array) -> Array:
        both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
        by = (count & 31 if "wrap" in modifiers else np.minimum(count, 32)).astype(np.uint64)
        return ((both << by) >> np.uint64(32) if "l" in modifiers else both >> by).astype(np.uint32)

    return elementwise("b32", 3, compute)


@pure("bfe")
def extracted_field(at: PtxInstruction) -> Computation:
    """`bfe d, a, position, length`: of a signed type extended by the field's highest bit."""
    type_ = one_type(at)
    modifiers_of(at)
    bits = bits_of(type_)

    def compute(a: Array, position: Array, length: Array) -> Array:
        fields = [
            _field(int(x) % (1 << bits), int(p) & 255, int(n) & 255, bits, a.dtype.kind == "i")
            for x, p, n in zip(a, position, length, strict=True)
        ]
        values: Array = np.array(fields, f"u{a.itemsize}").view(a.dtype)
        return values

    return Computation((type_, "u32", "u32"), type_, compute)


def _field(value: int, position: int, length: int, bits: int, is_signed: bool) -> int:
    ones = (1 << max(0, min(length, bits - position))) - 1
    sign = value >> min(position + length - 1, bits - 1) & 1 if is_signed and length else 0
    return (value >> position & ones) | (((1 << bits) - 1) & ~ones if sign else 0)


@pure("bfi")
def inserted_field(at: PtxInstruction) -> Computation:
    """`bfi d, a, b, position, length`: b with the low bits of a at a position."""
    type_ = one_type(at)
    modifiers_of(at)
    bits = bits_of(type_)

    def compute(a: Array, b: Array, position: Array, length: Array) -> Array:
        one, limit = a.dtype.type(1), np.uint32(bits)
        start, count = np.minimum(position & 255, limit), np.minimum(length & 255, limit)
        ones = np.where(count == bits, a.dtype.type(2**bits - 1), (one << (count % bits).astype(a.dtype)) - one)
        mask = np.where(start == bits, a.dtype.type(0), ones << (start % bits).astype(a.dtype))
        moved = a << (start % bits).astype(a.dtype)
        joined: Array = (b & ~mask) | (moved & mask)
        return joined

    return Computation((type_, type_, "u32", "u32"), type_, compute)


@pure("prmt")
def permuted_bytes(at: PtxInstruction) -> Computation:
    """`prmt d, a, b, selectors`: four of the eight bytes of a and b; a selector's bit 3 takes the byte's sign alone."""
    modifiers_of(at)
    if len(at.parts) != 2:
        raise at.refused()

    def compute(a: Array, b: Array, selectors: Array) -> Array:
        both = np.concatenate([_bytes(a), _bytes(b)], axis=1)
        chosen = (selectors[:, None] >> (4 * np.arange(4, dtype=np.uint32))) & 15
        picked = np.take_along_axis(both, (chosen & 7).astype(np.int64), axis=1)
        signs = np.where(picked & 0x80, np.uint8(0xFF), np.uint8(0))
        return np.ascontiguousarray(np.where(chosen & 8, signs, picked)).view(np.uint32)[:, 0]

    return elementwise("b32", 3, compute)


def _bytes(words: Array) -> Array:
    return np.ascontiguousarray(words).view(np.uint8).reshape(len(words), 4)


@pure("popc", "clz", "brev")
def count_of_bits(at: PtxInstruction) -> Computation:
    """`popc`: the ones; `clz`: the zeros above the highest one; `brev`: the bits reversed."""
    type_ = one_type(at)
    modifiers_of(at)
    bits = bits_of(type_)
    count: dict[str, Callable[[int], int]] = {
        "popc": lambda value: value.bit_count(),
        "clz": lambda value: bits - value.bit_length(),
        "brev": lambda value: int(f"{value:0{bits}b}"[::-1], 2),
    }
    result = type_ if at.parts[0] == "brev" else "u32"
    of = count[at.parts[0]]
    return Computation((type_,), result, lambda a: np.array([of(int(value)) for value in a], dtype_of_type(result)))


@pure("lop3")
def any_logic(at: PtxInstruction) -> Computation:
    """`lop3.b32 d, a, b, c, table`: each bit by a table of eight."""
    modifiers_of(at)

    def compute(a: Array, b: Array, c: Array, table: Array) -> Array:
        result = np.zeros_like(a)
        for row in range(8):
            terms = [x if row >> place & 1 else ~x for x, place in ((a, 2), (b, 1), (c, 0))]
            chosen = np.where(table >> np.uint32(row) & np.uint32(1), np.uint32(0xFFFFFFFF), np.uint32(0))
            result |= terms[0] & terms[1] & terms[2] & chosen
        return result

    return elementwise("b32", 4, compute)
