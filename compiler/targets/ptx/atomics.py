"""Atomic operations on memory: atom, red. Threads run them one after another; races with them are not looked for.
With fences they order accesses of different blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.targets.ptx.loads import ACCESS_HINTS, STATE_SPACES, spread
from compiler.targets.ptx.syntax import PtxInstruction
from compiler.targets.ptx.table import Prepared, effect, modifiers_of, one_type
from compiler.targets.ptx.values import Mask, bits_of, dtype_of_type

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes

_UPDATES: Mapping[str, Callable[..., Any]] = {
    "add": lambda old, b: old + b,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, b: b,
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "cas": lambda old, b, c: c if old == b else old,
}
"""The new value, by the former one and the operands."""


@effect("atom", "red")
def atomic(instruction: PtxInstruction) -> Prepared:
    """Prepare an `atom` or `red`, such as `atom.global.add.f32 d, [a], b`: threads update memory one after another,
    in the order of their lanes; d is the former value, which `red` does not return. An access out of bounds or
    misaligned is reported and changes nothing; its d is 0. Raises PtxError for an update or type that is not
    implemented."""
    type_ = one_type(instruction)
    modifiers = modifiers_of(instruction, *STATE_SPACES, *ACCESS_HINTS, *_UPDATES)
    (name,) = modifiers & set(_UPDATES) or {""}
    if not name or type_.endswith("x2"):
        raise instruction.refused("another operation")
    spaces = [space.removesuffix("::cta") for space in STATE_SPACES if space in modifiers]
    has_result = instruction.parts[0] == "atom"
    address, *sources = instruction.operands[has_result:]
    width, dtype, update = bits_of(type_) // 8, dtype_of_type(type_), _UPDATES[name]

    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = lanes.lanes_of(mask)
        addresses = lanes.addresses(address, mask, instruction)[active]
        operands = [lanes.read(source, type_, mask, instruction)[active] for source in sources]
        former = np.zeros(len(active), dtype)
        for number in range(len(active)):
            lane = slice(number, number + 1)
            access = lanes.access(active[lane], instruction)
            ((_, memory, part, offsets),) = lanes.resolved(spaces[0] if spaces else "", addresses[lane], access)
            lanes.observe(int(active[number]), (id(memory), int(offsets[0])))

            def updated(bits: Any, number: int = number) -> Any:
                former[number] = bits.view(dtype)[0]
                new = update(former[number], *(operand[number] for operand in operands))
                return np.array([new], dtype).view(f"u{width}")

            memory.update(access, part, offsets, width, updated)
        if has_result:
            lanes.write(instruction.operands[0], spread(lanes, former, mask, active), type_, mask)

    return run
