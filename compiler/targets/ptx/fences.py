"""Fences: membar, fence. Those of the grid order accesses of different blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.targets.ptx.syntax import PtxInstruction
from compiler.targets.ptx.table import Prepared, effect, modifiers_of
from compiler.targets.ptx.values import Mask

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes

_SCOPES = ("gl", "sys", "cta", "gpu", "cluster")
_NARROW = {"cta", "cluster"}
"""Scopes that do not order blocks of the whole grid."""


@effect("membar", "fence")
def fence(instruction: PtxInstruction) -> Prepared:
    """Prepare `membar.gl` or `fence.acq_rel.gpu` and their like; one of the scope cta or cluster has no effect. Raises
    PtxError for another scope or order."""
    modifiers = modifiers_of(instruction, *_SCOPES, "sc", "acq_rel")

    def run(lanes: PtxLanes, mask: Mask) -> None:
        if not modifiers & _NARROW:
            lanes.pass_fence(lanes.lanes_of(mask))

    return run
