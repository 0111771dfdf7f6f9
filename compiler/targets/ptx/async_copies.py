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
def asynchronous(at: PtxInstruction) -> Prepared:
    """`cp.async.ca.shared.global [to], [from], 16{, size}`: behind the first `size` bytes it writes zeros;
    `cp.async.commit_group`, `cp.async.wait_group n`, `cp.async.wait_all`."""
    modifiers = modifiers_of(at, *_PARTS)
    if "async" not in modifiers:
        raise at.refused()
    if "commit_group" in modifiers:
        return lambda lanes, mask: lanes.copies.commit(lanes.lanes_of(mask))
    if "wait_group" in modifiers:
        return _wait(_literal(at, 0), False)
    if "wait_all" in modifiers:
        return _wait(0, True)
    size = _literal(at, 2)
    if size not in ((16,) if "cg" in modifiers else (4, 8, 16)) or len(at.operands) > 4:
        raise at.refused(f"a copy of {size} bytes")
    return _copy(at, size)


def _literal(at: PtxInstruction, number: int) -> int:
    operand = at.operands[number] if number < len(at.operands) else None
    if not isinstance(operand, PtxLiteral):
        raise at.refused("its count is a literal")
    return int(operand.text, 0)


def _wait(pending: int, commits: bool) -> Prepared:
    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = lanes.lanes_of(mask)
        if commits:
            lanes.copies.commit(active)
        lanes.copies.wait(active, pending, lanes.moments)

    return run


def _copy(at: PtxInstruction, size: int) -> Prepared:
    words = size // 4

    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = lanes.lanes_of(mask)
        to, of = (lanes.addresses(operand, mask, at)[active] for operand in at.operands[:2])
        access = lanes.access(active, at)
        count = np.full(len(active), size)
        if len(at.operands) == 4:
            count = lanes.read(at.operands[3], "u32", mask, at)[active].astype(np.int64)
            access.report("a copy of more bytes than its size", count > size, lambda n: f"{count[n]} bytes")
        values = np.zeros((len(active), words), np.uint32)
        for length in np.unique(count).tolist():
            chosen = count == length
            values[chosen] = _fetched(lanes, at, of[chosen], active[chosen], min(length, size), words)
        ((_, memory, parts, offsets),) = lanes.resolved("shared", to, access)
        assert not isinstance(parts, int)
        memory.store(access, parts, offsets, values, PENDING)
        inside = (offsets >= 0) & (offsets <= memory.size - size) & (offsets % size == 0)
        lanes.copies.begin(access.some(inside), memory, parts[inside], offsets[inside], values[inside])

    return run


def _fetched(lanes: PtxLanes, at: PtxInstruction, addresses: Array, active: Array, length: int, words: int) -> Array:
    """The first `length` bytes at global addresses, zeros behind them, as words."""
    data = np.zeros((len(active), 4 * words), np.uint8)
    access = lanes.access(active, at)
    access.report("misaligned access", addresses % (4 * words) != 0, lambda n: "the source of a copy")
    width = 4 if length % 4 == 0 else 1
    for start in range(0, length, width):
        word = loaded(lanes, "global", addresses + start, access, width, 1)
        data[:, start : start + width] = np.ascontiguousarray(word).view(np.uint8)
    return data.view(np.uint32)
