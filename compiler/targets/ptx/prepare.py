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
    """A linked function whose instructions can be run; `steps` has None for control."""

    linked: LinkedFunction
    steps: tuple[Prepared | None, ...]


def prepare(linked: LinkedFunction) -> PreparedFunction:
    """Look up each instruction of a function. Raises PtxError for one that is not implemented."""
    return PreparedFunction(linked, tuple(_step(at) for at in linked.function.body))


def _step(at: PtxInstruction) -> Prepared | None:
    name = at.parts[0]
    if at.parts == ("bar", "warp", "sync"):
        return lambda lanes, mask: lanes.pass_warp_barrier(mask)
    if name in CONTROL:
        _check_control(at)
        return None
    key = f"{name}.cc" if "cc" in at.parts else name
    if key in EFFECTS:
        return EFFECTS[key](at)
    if name not in PURE:
        raise at.refused()
    return _pure(at)


def _check_control(at: PtxInstruction) -> None:
    if at.parts[0] in ("bar", "barrier") and set(at.parts[1:]) - {"cta", "sync", "aligned"}:
        raise at.refused("of barriers there is bar.sync alone")
    if at.parts[0] in ("bar", "barrier") and len(at.operands) != 1:
        raise at.refused("a barrier for some of the threads")


def _pure(at: PtxInstruction) -> Prepared:
    computation = PURE[at.parts[0]](at)
    to, sources = at.operands[0], at.operands[1:]
    if len(sources) != len(computation.operands):
        raise at.refused(f"it has {len(computation.operands)} operands")
    pairs = tuple(zip(sources, computation.operands, strict=True))
    compute, result = computation.compute, computation.result

    def run(lanes: PtxLanes, mask: Mask) -> None:
        values = compute(*(lanes.read(operand, type_, mask, at) for operand, type_ in pairs))
        if isinstance(to, RegisterList):
            for item, value in zip(to.items, values, strict=True):
                lanes.write(item, value, result, mask)
        else:
            assert not isinstance(values, tuple)
            lanes.write(to, values, result, mask)

    return run
