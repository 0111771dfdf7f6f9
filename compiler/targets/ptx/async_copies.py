"""Asynchronous copies from global to shared memory: cp.async and its groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.targets.ptx.loads import loaded
from compiler.targets.ptx.shadow import PENDING
from compiler.targets.ptx.syntax import PtxInstruction, PtxLiteral
from compiler.targets.ptx.table import Prepared, effect, modifiers_of
from compiler.targets.ptx.values import Array, Mask

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes


_GROUPS = ("commit_group", "wait_group", "wait_all")
_PARTS = ("async", "ca", "cg", "shared", "shared::cta", "global", *_GROUPS)


@effect("cp")
def asynchronous(instruction: PtxInstruction) -> Prepared:
    """Prepare an instruction of `cp.async`. `cp.async.ca.shared.global [to], [from], 16{, size}` begins a copy of 4, 8
    or 16 bytes (`.cg`: 16); bytes from `size` on are zeros. Its target is unset until the copying thread waits.
    `commit_group` closes the open group of copies, `wait_group n` waits for all but the n latest groups, `wait_all` for
    all copies. Raises PtxError for other forms of `cp`."""
    modifiers = modifiers_of(instruction, *_PARTS)
    if "async" not in modifiers:
        raise instruction.refused()
    if "commit_group" in modifiers:
        return lambda lanes, mask: lanes.copies.commit(lanes.lanes_of(mask))
    if "wait_group" in modifiers:
        return _wait(_literal(instruction, 0), False)
    if "wait_all" in modifiers:
        return _wait(0, True)
    size = _literal(instruction, 2)
    if size not in ((16,) if "cg" in modifiers else (4, 8, 16)) or len(instruction.operands) > 4:
        raise instruction.refused(f"a copy of {size} bytes")
    return _copy(instruction, size)


def _literal(instruction: PtxInstruction, number: int) -> int:
    operand = instruction.operands[number] if number < len(instruction.operands) else None
    if not isinstance(operand, PtxLiteral):
        raise instruction.refused("its count is a literal")
    return int(operand.text, 0)


def _wait(pending: int, commits: bool) -> Prepared:
    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = lanes.lanes_of(mask)
        if commits:
            lanes.copies.commit(active)
        lanes.copies.wait(active, pending, lanes.moments)

    return run


def _copy(instruction: PtxInstruction, size: int) -> Prepared:
    words = size // 4

    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = lanes.lanes_of(mask)
        to, of = (lanes.addresses(operand, mask, instruction)[active] for operand in instruction.operands[:2])
        access = lanes.access(active, instruction)
        count = np.full(len(active), size)
        if len(instruction.operands) == 4:
            count = lanes.read(instruction.operands[3], "u32", mask, instruction)[active].astype(np.int64)
            access.report("a copy of more bytes than its size", count > size, lambda n: f"{count[n]} bytes")
        values = np.zeros((len(active), words), np.uint32)
        for length in np.unique(count).tolist():
            chosen = count == length
            values[chosen] = _fetched(lanes, instruction, of[chosen], active[chosen], min(length, size), words)
        ((_, memory, parts, offsets),) = lanes.resolved("shared", to, access)
        assert not isinstance(parts, int)
        memory.store(access, parts, offsets, values, PENDING)
        inside = (offsets >= 0) & (offsets <= memory.size - size) & (offsets % size == 0)
        lanes.copies.begin(access.some(inside), memory, parts[inside], offsets[inside], values[inside])

    return run


def _fetched(
    lanes: PtxLanes, instruction: PtxInstruction, addresses: Array, active: Array, length: int, words: int
) -> Array:
    """Return the bytes that active lanes copy from their global addresses: the first `length` bytes followed by zeros,
    as (lanes, words) uint32. Reports addresses that are not multiples of 4 * words. addresses: (lanes,), of the lanes
    `active`, by their numbers."""
    data = np.zeros((len(active), 4 * words), np.uint8)
    access = lanes.access(active, instruction)
    access.report("misaligned access", addresses % (4 * words) != 0, lambda n: "the source of a copy")
    width = 4 if length % 4 == 0 else 1
    for start in range(0, length, width):
        word = loaded(lanes, "global", addresses + start, access, width, 1)
        data[:, start : start + width] = np.ascontiguousarray(word).view(np.uint8)
    return data.view(np.uint32)
