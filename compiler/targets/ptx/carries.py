"""Sums with a carry between instructions, for numbers of several words: add.cc, addc, sub.cc, subc, mad.cc, madc."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.targets.ptx.arithmetic import high_product
from compiler.targets.ptx.syntax import PtxInstruction
from compiler.targets.ptx.table import Prepared, effect, modifiers_of, one_type
from compiler.targets.ptx.values import Array, Mask, bits_of

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes


@effect("add.cc", "addc", "addc.cc", "sub.cc", "subc", "subc.cc", "mad.cc", "madc", "madc.cc")
def carried(instruction: PtxInstruction) -> Prepared:
    """Prepare an instruction with a carry, such as `addc.cc.u32 d, a, b`: `addc` and `madc` add the lane's carry flag,
    `subc` subtracts it, and `.cc` sets it to the carry, or to the borrow for `sub`. `mad` adds c to the low (the
    default) or high half of a * b. Without `.cc` the flag stays. Raises PtxError for another modifier."""
    bits, name = bits_of(one_type(instruction)), instruction.parts[0]
    modifiers = modifiers_of(instruction, "cc", "lo", "hi")
    type_, takes, leaves = f"u{bits}", name.endswith("c"), "cc" in modifiers
    is_product, is_difference = name.startswith("mad"), name.startswith("sub")

    def run(lanes: PtxLanes, mask: Mask) -> None:
        first, second, *third = (lanes.read(operand, type_, mask, instruction) for operand in instruction.operands[1:])
        if is_product:
            first, second = high_product(first, second) if "hi" in modifiers else first * second, third[0]
        result, carry = with_carry(first, second, lanes.carry & takes, is_difference)
        lanes.write(instruction.operands[0], result, type_, mask)
        if leaves:
            lanes.carry = carry if mask is None else np.where(mask, carry, lanes.carry)

    return run


def with_carry(a: Array, b: Array, carry: Array, is_difference: bool) -> tuple[Array, Array]:
    """Return two arrays: a + b + carry, or a - b - carry if `is_difference`, of unsigned integers, wrapped, and the
    carry or borrow out; `carry` is an array of bool."""
    more = carry.astype(a.dtype)
    if is_difference:
        return a - b - more, (a < b) | ((a == b) & carry)
    total = a + b
    return total + more, (total < a) | (total + more < total)
