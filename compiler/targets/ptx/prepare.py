"""Instructions as functions of the threads' state, looked up in the table of opcodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.targets.ptx import (
    arithmetic,
    async_copies,
    atomics,
    bits,
    carries,
    comparison,
    conversion,
    fences,
    functions,
    loads,
    matrices,
    moves,
    warps,
)
from compiler.targets.ptx.link import LinkedFunction
from compiler.targets.ptx.syntax import PtxInstruction, RegisterList
from compiler.targets.ptx.table import EFFECTS, PURE, Prepared
from compiler.targets.ptx.values import Mask

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes

FAMILIES = (
    arithmetic,
    async_copies,
    atomics,
    bits,
    carries,
    comparison,
    conversion,
    fences,
    functions,
    loads,
    matrices,
    moves,
    warps,
)
"""The files whose opcodes are in the table."""
CONTROL = ("bra", "ret", "exit", "bar", "barrier", "call")
"""The opcodes that the scheduler itself runs."""


@dataclass(frozen=True)
class PreparedFunction:
    """A linked function with a function to run each instruction; `steps` has None for control flow: branches, barriers,
    calls and returns."""

    linked: LinkedFunction
    steps: tuple[Prepared | None, ...]


def prepare(linked: LinkedFunction) -> PreparedFunction:
    """Prepare each instruction of a function. Raises PtxError for an instruction that is not implemented, and for one
    with another number of operands."""
    return PreparedFunction(linked, tuple(_step(instruction) for instruction in linked.function.body))


def _step(instruction: PtxInstruction) -> Prepared | None:
    name = instruction.parts[0]
    if instruction.parts == ("bar", "warp", "sync"):
        return lambda lanes, mask: lanes.pass_warp_barrier(mask)
    if name in CONTROL:
        _check_control(instruction)
        return None
    key = f"{name}.cc" if "cc" in instruction.parts else name
    if key in EFFECTS:
        return EFFECTS[key](instruction)
    if name not in PURE:
        raise instruction.refused()
    return _pure(instruction)


def _check_control(instruction: PtxInstruction) -> None:
    if instruction.parts[0] in ("bar", "barrier") and set(instruction.parts[1:]) - {"cta", "sync", "aligned"}:
        raise instruction.refused("of barriers there is bar.sync alone")
    if instruction.parts[0] in ("bar", "barrier") and len(instruction.operands) != 1:
        raise instruction.refused("a barrier for some of the threads")


def _pure(instruction: PtxInstruction) -> Prepared:
    computation = PURE[instruction.parts[0]](instruction)
    to, sources = instruction.operands[0], instruction.operands[1:]
    if len(sources) != len(computation.operands):
        raise instruction.refused(f"it has {len(computation.operands)} operands")
    pairs = tuple(zip(sources, computation.operands, strict=True))
    compute, result = computation.compute, computation.result

    def run(lanes: PtxLanes, mask: Mask) -> None:
        values = compute(*(lanes.read(operand, type_, mask, instruction) for operand, type_ in pairs))
        if isinstance(to, RegisterList):
            for item, value in zip(to.items, values, strict=True):
                lanes.write(item, value, result, mask)
        else:
            assert not isinstance(values, tuple)
            lanes.write(to, values, result, mask)

    return run
