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
def carried(at: PtxInstruction) -> Prepared:
    """`addc.cc.u32 d, a, b`: takes the carry that the last `.cc` left, and leaves one; of `sub` it is a borrow."""
    bits, name = bits_of(one_type(at)), at.parts[0]
    modifiers = modifiers_of(at, "cc", "lo", "hi")
    type_, takes, leaves = f"u{bits}", name.endswith("c"), "cc" in modifiers
    is_product, is_difference = name.startswith("mad"), name.startswith("sub")

    def run(lanes: PtxLanes, mask: Mask) -> None:
        first, second, *third = (lanes.read(operand, type_, mask, at) for operand in at.operands[1:])
        if is_product:
            first, second = high_product(first, second) if "hi" in modifiers else first * second, third[0]
        result, carry = with_carry(first, second, lanes.carry & takes, is_difference)
        lanes.write(at.operands[0], result, type_, mask)
        if leaves:
            lanes.carry = carry if mask is None else np.where(mask, carry, lanes.carry)

    return run


def with_carry(a: Array, b: Array, carry: Array, is_difference: bool) -> tuple[Array, Array]:
    """Return a + b + carry, or a - b - carry, of unsigned integers, and the carry or borrow out of it."""
    more = carry.astype(a.dtype)
    if is_difference:
        return a - b - more, (a < b) | ((a == b) & carry)
    total = a + b
    return total + more, (total < a) | (total + more < total)
