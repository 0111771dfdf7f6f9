"""Passes over reductions."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.passes.schedule.face import FacePass, loop_of
from compiler.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class DecomposeReductionPass(FacePass):
    """Make the init of one reduction a block before a loop: `decompose-reduction{block=C loop=k}`."""

    name = "decompose-reduction"
    block: str
    loop: str

    def schedule(self, s: Schedule) -> None:
        block = s.get_block(self.block)
        s.decompose_reduction(block, loop_of(s, block, self.loop))


@dataclass(frozen=True, kw_only=True)
class RfactorPass(FacePass):
    """Reduce along one loop into partial results: `rfactor{block=C loop=k.0}`."""

    name = "rfactor"
    block: str
    loop: str

    def schedule(self, s: Schedule) -> None:
        block = s.get_block(self.block)
        s.rfactor(block, loop_of(s, block, self.loop))
