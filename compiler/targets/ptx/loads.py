"""Loads and stores of every state space: ld, st."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.targets.ptx.memory import PtxAccess
from compiler.targets.ptx.syntax import PtxInstruction, PtxOperand, RegisterList
from compiler.targets.ptx.table import Prepared, effect, modifiers_of, one_type
from compiler.targets.ptx.values import Array, Mask, bits_of, dtype_of_type

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes

STATE_SPACES = ("global", "shared", "shared::cta", "local", "param", "const")
ACCESS_HINTS = (
    "volatile",
    "relaxed",
    "acquire",
    "release",
    "weak",
    "cta",
    "gpu",
    "sys",
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
)


def space_of_access(instruction: PtxInstruction, *others: str) -> str:
    """Return the state space of a load or store, "" for a generic address. `others`: further modifiers that the
    instruction may have. Raises PtxError for other modifiers."""
    modifiers = modifiers_of(instruction, *STATE_SPACES, *ACCESS_HINTS, *others)
    spaces = [space for space in STATE_SPACES if space in modifiers]
    return spaces[0].removesuffix("::cta") if spaces else ""


def _items(instruction: PtxInstruction, operand: PtxOperand) -> tuple[PtxOperand, ...]:
    """Return the operands in a vector operand, or the operand itself. Raises PtxError unless they are as many as the
    opcode's `.v2` or `.v4`, or one."""
    count = next((int(part[1:]) for part in instruction.parts if part in ("v2", "v4")), 1)
    items = operand.items if isinstance(operand, RegisterList) else (operand,)
    if len(items) != count:
        raise instruction.refused(f"it has {count} registers")
    return items


@effect("ld")
def load(instruction: PtxInstruction) -> Prepared:
    """Prepare a load of one, two or four registers, such as `ld.global.nc.v4.f32 {d0, d1, d2, d3}, [a+16]`. A store
    later in the launch to memory that was read with `.nc` is a fault. Raises PtxError for an unknown modifier and
    another number of registers."""
    space, type_ = space_of_access(instruction, "nc", "v2", "v4"), one_type(instruction)
    to, address = _items(instruction, instruction.operands[0]), instruction.operands[1]
    width, is_cached = bits_of(type_) // 8, "nc" in instruction.parts

    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = lanes.lanes_of(mask)
        addresses = lanes.addresses(address, mask, instruction)[active]
        values = loaded(lanes, space, addresses, lanes.access(active, instruction), width, len(to), is_cached)
        for number, item in enumerate(to):
            lanes.write(item, spread(lanes, values[:, number], mask, active).view(dtype_of_type(type_)), type_, mask)

    return run


@effect("st")
def store(instruction: PtxInstruction) -> Prepared:
    """Prepare a store of one, two or four registers, such as `st.shared.v2.f32 [a], {b0, b1}`. Raises PtxError for an
    unknown modifier and another number of registers."""
    space, type_ = space_of_access(instruction, "v2", "v4"), one_type(instruction)
    address, values_of = instruction.operands[0], _items(instruction, instruction.operands[1])
    width = bits_of(type_) // 8

    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = lanes.lanes_of(mask)
        addresses = lanes.addresses(address, mask, instruction)[active]
        values = [lanes.read(item, type_, mask, instruction)[active].view(f"u{width}") for item in values_of]
        stored(lanes, space, addresses, lanes.access(active, instruction), np.stack(values, axis=1))

    return run


def loaded(
    lanes: PtxLanes, space: str, addresses: Array, access: PtxAccess, width: int, count: int, is_cached: bool = False
) -> Array:
    """Return (n, count) unsigned integers of `width` bytes, read from addresses (n,) of a state space. is_cached: marks
    the memory as read by `.nc`, so that a later store to it is a fault. Faults are reported.
    """
    values = None
    for positions, memory, part, offsets in lanes.resolved(space, addresses, access):
        memory.is_cached |= is_cached
        if isinstance(positions, slice):
            return memory.load(access, part, offsets, width, count)
        if values is None:
            values = np.zeros((len(addresses), count), f"u{width}")
        some = access.some(np.isin(np.arange(len(addresses)), positions))
        values[positions] = memory.load(some, part, offsets, width, count)
    assert values is not None
    return values


def stored(lanes: PtxLanes, space: str, addresses: Array, access: PtxAccess, values: Array) -> None:
    """Store (n, count) unsigned integers, consecutively from each of the addresses (n,) of a state space."""
    for positions, memory, part, offsets in lanes.resolved(space, addresses, access):
        some = access if isinstance(positions, slice) else access.some(np.isin(np.arange(len(addresses)), positions))
        memory.store(some, part, offsets, values[positions])


def spread(lanes: PtxLanes, values: Array, mask: Mask, active: Array) -> Array:
    """Return values (active,) as an array of all lanes, with zeros in the lanes outside the mask (None: all lanes);
    `active` are the numbers of the mask's lanes."""
    if mask is None:
        return np.ascontiguousarray(values)
    everywhere = np.zeros(lanes.count, values.dtype)
    everywhere[active] = values
    return everywhere
