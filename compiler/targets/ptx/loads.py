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


def space_of_access(at: PtxInstruction, *others: str) -> str:
    """Return the state space of a load or store, "" for a generic address."""
    modifiers = modifiers_of(at, *STATE_SPACES, *ACCESS_HINTS, *others)
    spaces = [space for space in STATE_SPACES if space in modifiers]
    return spaces[0].removesuffix("::cta") if spaces else ""


def _items(at: PtxInstruction, operand: PtxOperand) -> tuple[PtxOperand, ...]:
    """The registers of a vector, whose number the opcode says."""
    count = next((int(part[1:]) for part in at.parts if part in ("v2", "v4")), 1)
    items = operand.items if isinstance(operand, RegisterList) else (operand,)
    if len(items) != count:
        raise at.refused(f"it has {count} registers")
    return items


@effect("ld")
def load(at: PtxInstruction) -> Prepared:
    """`ld.global.nc.v4.f32 {d0, d1, d2, d3}, [a+16]`."""
    space, type_ = space_of_access(at, "nc", "v2", "v4"), one_type(at)
    to, address = _items(at, at.operands[0]), at.operands[1]
    width, is_cached = bits_of(type_) // 8, "nc" in at.parts

    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = lanes.lanes_of(mask)
        addresses = lanes.addresses(address, mask, at)[active]
        values = loaded(lanes, space, addresses, lanes.access(active, at), width, len(to), is_cached)
        for number, item in enumerate(to):
            lanes.write(item, spread(lanes, values[:, number], mask, active).view(dtype_of_type(type_)), type_, mask)

    return run


@effect("st")
def store(at: PtxInstruction) -> Prepared:
    """`st.shared.v2.f32 [a], {b0, b1}`."""
    space, type_ = space_of_access(at, "v2", "v4"), one_type(at)
    address, values_of = at.operands[0], _items(at, at.operands[1])
    width = bits_of(type_) // 8

    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = lanes.lanes_of(mask)
        addresses = lanes.addresses(address, mask, at)[active]
        values = [lanes.read(item, type_, mask, at)[active].view(f"u{width}") for item in values_of]
        stored(lanes, space, addresses, lanes.access(active, at), np.stack(values, axis=1))

    return run


def loaded(
    lanes: PtxLanes, space: str, addresses: Array, access: PtxAccess, width: int, count: int, is_cached: bool = False
) -> Array:
    """Return the (n, count) unsigned integers of `width` bytes at addresses (n,) of a state space."""
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
    """Store (n, count) unsigned integers at addresses (n,) of a state space."""
    for positions, memory, part, offsets in lanes.resolved(space, addresses, access):
        some = access if isinstance(positions, slice) else access.some(np.isin(np.arange(len(addresses)), positions))
        memory.store(some, part, offsets, values[positions])


def spread(lanes: PtxLanes, values: Array, mask: Mask, active: Array) -> Array:
    """Return values of the active lanes as an array of all lanes."""
    if mask is None:
        return np.ascontiguousarray(values)
    everywhere = np.zeros(lanes.count, values.dtype)
    everywhere[active] = values
    return everywhere
