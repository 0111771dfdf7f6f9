"""Moves, also between a register and its parts: mov."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.targets.ptx.syntax import PtxInstruction, RegisterList, RegisterName
from compiler.targets.ptx.table import Prepared, effect, modifiers_of, one_type
from compiler.targets.ptx.values import Mask, bits_of, raw_bits

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes


@effect("mov")
def move(instruction: PtxInstruction) -> Prepared:
    """Prepare `mov.f32 d, a`, `mov.b32 d, {low, high}`, which packs, or `mov.b64 {low, high}, a`, which unpacks. A move
    of an unset register is no fault: its destination becomes unset; packing and unpacking one is. Raises PtxError for
    any modifier."""
    modifiers_of(instruction)
    type_ = one_type(instruction)
    to, of = instruction.operands
    if isinstance(to, RegisterList):
        return _unpack(instruction, type_, to)
    if isinstance(of, RegisterList):
        return _pack(instruction, type_, of)

    def run(lanes: PtxLanes, mask: Mask) -> None:
        if isinstance(of, RegisterName) and isinstance(to, RegisterName):
            unset = lanes.unset_lanes(of.name)
            lanes.write(to, lanes.bits(of.name, instruction), _same_bits(type_), mask)
            lanes.note_unset(to.name, unset, mask)
        else:
            lanes.write(to, lanes.read(of, type_, mask, instruction), type_, mask)

    return run


def _same_bits(type_: str) -> str:
    return "pred" if type_ == "pred" else f"b{bits_of(type_)}"


def _pack(instruction: PtxInstruction, type_: str, of: RegisterList) -> Prepared:
    part = f"b{bits_of(type_) // len(of.items)}"

    def run(lanes: PtxLanes, mask: Mask) -> None:
        width = np.dtype(f"u{bits_of(part) // 8}")
        parts = [raw_bits(lanes.read(item, part, mask, instruction), part, width) for item in of.items]
        packed = np.ascontiguousarray(np.stack(parts, axis=1)).view(f"u{bits_of(type_) // 8}")[:, 0]
        lanes.write(instruction.operands[0], packed, _same_bits(type_), mask)

    return run


def _unpack(instruction: PtxInstruction, type_: str, to: RegisterList) -> Prepared:
    width = bits_of(type_) // len(to.items)

    def run(lanes: PtxLanes, mask: Mask) -> None:
        whole = np.ascontiguousarray(lanes.read(instruction.operands[1], _same_bits(type_), mask, instruction))
        parts = whole.view(f"u{width // 8}").reshape(lanes.count, len(to.items))
        for number, item in enumerate(to.items):
            lanes.write(item, np.ascontiguousarray(parts[:, number]), f"b{width}", mask)

    return run
