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
def logic(instruction: PtxInstruction) -> Computation:
    """Return the computation of `and`, `or` or `xor` of integers or predicates. Raises PtxError for any modifier."""
    modifiers_of(instruction)
    return elementwise(one_type(instruction), 2, _LOGIC[instruction.parts[0]])


@pure("not", "cnot")
def complement(instruction: PtxInstruction) -> Computation:
    """Return the computation of `not`, which inverts each bit, or `cnot`, which is 1 for zero and else 0. Raises
    PtxError for any modifier."""
    modifiers_of(instruction)
    compute: Any = np.invert if instruction.parts[0] == "not" else lambda a: (a == 0).astype(a.dtype)
    return elementwise(one_type(instruction), 1, compute)


@pure("shl", "shr")
def shift(instruction: PtxInstruction) -> Computation:
    """Return the computation of `shl` or `shr`. A count, unsigned, of the type's bits or more shifts all bits out.
    `shr` of a signed type fills with the sign bit, others fill with zeros. Raises PtxError for any modifier."""
    type_ = one_type(instruction)
    modifiers_of(instruction)
    bits, is_left = bits_of(type_), instruction.parts[0] == "shl"

    def compute(a: Array, count: Array) -> Array:
        within = np.minimum(count, bits - 1).astype(a.dtype)
        shifted = a << within if is_left else a >> within
        emptied = a >> (bits - 1) if not is_left and a.dtype.kind == "i" else np.zeros_like(a)
        return np.where(count >= bits, emptied, shifted)

    return Computation((type_, "u32"), type_, compute)


@pure("shf")
def funnel_shift(instruction: PtxInstruction) -> Computation:
    """Return the computation of `shf d, a, b, count` on 64 bits, b high and a low: `.l` shifts left and keeps the high
    word, `.r` right and the low word. `.wrap` takes the count modulo 32, `.clamp`, the default, at most 32. Raises
    PtxError for another modifier."""
    modifiers = modifiers_of(instruction, "l", "r", "wrap", "clamp")

    def compute(a: Array, b: Array, count: Array) -> Array:
        both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
        by = (count & 31 if "wrap" in modifiers else np.minimum(count, 32)).astype(np.uint64)
        return ((both << by) >> np.uint64(32) if "l" in modifiers else both >> by).astype(np.uint32)

    return elementwise("b32", 3, compute)


@pure("bfe")
def extracted_field(instruction: PtxInstruction) -> Computation:
    """Return the computation of `bfe d, a, position, length`: the field of `length` bits of a from bit `position` on,
    extended with its highest bit for a signed type, else with zeros; a field that reaches beyond the type's bits ends
    there, and one that begins beyond them is a's highest bit repeated for a signed type, else 0. Position and length
    count modulo 256; a field of length 0 is 0. Raises PtxError for any modifier."""
    type_ = one_type(instruction)
    modifiers_of(instruction)
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
def inserted_field(instruction: PtxInstruction) -> Computation:
    """Return the computation of `bfi d, a, b, position, length`: b with the low `length` bits of a at bit `position`;
    bits beyond the type's are dropped. Position and length count modulo 256. Raises PtxError for any modifier."""
    type_ = one_type(instruction)
    modifiers_of(instruction)
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
def permuted_bytes(instruction: PtxInstruction) -> Computation:
    """Return the computation of `prmt d, a, b, selectors`: each 4-bit selector picks a byte of a (0 to 3) or b (4 to
    7); with bit 3 set the byte becomes 0xFF or 0 by its sign bit. The selectors are the low 16 bits. Raises PtxError
    for a mode such as `.f4e`."""
    modifiers_of(instruction)
    if len(instruction.parts) != 2:
        raise instruction.refused()

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
def count_of_bits(instruction: PtxInstruction) -> Computation:
    """Return the computation of `popc` (the number of ones), `clz` (the number of zeros above the highest one, that of
    all bits for 0), both as u32, or `brev` (the bits reversed). Raises PtxError for any modifier."""
    type_ = one_type(instruction)
    modifiers_of(instruction)
    bits = bits_of(type_)
    count: dict[str, Callable[[int], int]] = {
        "popc": lambda value: value.bit_count(),
        "clz": lambda value: bits - value.bit_length(),
        "brev": lambda value: int(f"{value:0{bits}b}"[::-1], 2),
    }
    result = type_ if instruction.parts[0] == "brev" else "u32"
    of = count[instruction.parts[0]]
    return Computation((type_,), result, lambda a: np.array([of(int(value)) for value in a], dtype_of_type(result)))


@pure("lop3")
def any_logic(instruction: PtxInstruction) -> Computation:
    """Return the computation of `lop3.b32 d, a, b, c, table`: each bit of d is the bit of `table` at the index 4a + 2b
    + c of its three operand bits. Raises PtxError for any modifier."""
    modifiers_of(instruction)

    def compute(a: Array, b: Array, c: Array, table: Array) -> Array:
        result = np.zeros_like(a)
        for row in range(8):
            terms = [x if row >> place & 1 else ~x for x, place in ((a, 2), (b, 1), (c, 0))]
            chosen = np.where(table >> np.uint32(row) & np.uint32(1), np.uint32(0xFFFFFFFF), np.uint32(0))
            result |= terms[0] & terms[1] & terms[2] & chosen
        return result

    return elementwise("b32", 4, compute)
