"""The table of opcodes: how each instruction is computed, by the first part of its opcode.

A pure instruction computes values from values, for all threads alike: `@pure("add")` registers a function that reads
the parts of the opcode and returns a `Computation`. An effect reads or writes memory, or concerns several threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from compiler.targets.ptx.syntax import PtxInstruction
from compiler.targets.ptx.values import Array, Mask, bits_of

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes


@dataclass(frozen=True)
class Computation:
    """A pure instruction: the types of its operands, the type of its results, and a function from arrays of the operand
    types, each (lanes,), to the result or a tuple of results."""

    operands: tuple[str, ...]
    result: str
    compute: Callable[..., Array | tuple[Array, ...]]


PureRule: TypeAlias = Callable[[PtxInstruction], Computation]
Prepared: TypeAlias = Callable[["PtxLanes", Mask], None]
EffectRule: TypeAlias = Callable[[PtxInstruction], Prepared]

PURE: dict[str, PureRule] = {}
EFFECTS: dict[str, EffectRule] = {}


def pure(*opcodes: str) -> Callable[[PureRule], PureRule]:
    """Return a decorator that registers a rule, from an instruction to its Computation, for each first part of an
    opcode in `opcodes`."""

    def register(rule: PureRule) -> PureRule:
        PURE.update(dict.fromkeys(opcodes, rule))
        return rule

    return register


def effect(*opcodes: str) -> Callable[[EffectRule], EffectRule]:
    """Return a decorator that registers a rule, from an instruction to the function that runs it on lanes under a mask,
    for each first part of an opcode in `opcodes`; "add.cc" is for an `add` with the modifier `.cc`."""

    def register(rule: EffectRule) -> EffectRule:
        EFFECTS.update(dict.fromkeys(opcodes, rule))
        return rule

    return register


_TYPES = {
    "pred", "b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64",
    "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "tf32", "s16x2", "u16x2",
}  # fmt: skip


def types_of(instruction: PtxInstruction) -> list[str]:
    """Return the types among an opcode's parts, in order: s32 and f32 of `cvt.rzi.s32.f32`."""
    return [part for part in instruction.parts[1:] if part in _TYPES]


def modifiers_of(instruction: PtxInstruction, *allowed: str) -> set[str]:
    """Return the parts of an opcode, without the first one, that are no types. Raises PtxError for one not in
    `allowed`."""
    collected = {part for part in instruction.parts[1:] if part not in _TYPES}
    if unknown := sorted(collected - set(allowed)):
        raise instruction.refused(f"'.{unknown[0]}' is unknown")
    return collected


def one_type(instruction: PtxInstruction) -> str:
    """Return the only type of an opcode. Raises PtxError unless there is exactly one."""
    types = types_of(instruction)
    if len(types) != 1:
        raise instruction.refused("it has one type")
    return types[0]


def elementwise(type_: str, count: int, compute: Callable[..., Any]) -> Computation:
    """Return a computation of `count` operands and one result, all of one type."""
    return Computation((type_,) * count, type_, compute)


def wider(type_: str) -> str:
    """Return the type of twice the bits and the same first letter: s32 of s16."""
    return f"{type_[0]}{2 * bits_of(type_)}"
