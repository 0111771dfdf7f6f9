"""Passes that say where a block is computed, or whether it is at all."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.passes.schedule.face import FacePass, named
from compiler.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class ComputeAtPass(FacePass):
    """Move a producer into a loop of its consumers: `compute-at{block=C at=D.m}`."""

    name = "compute-at"
    block: str
    at: str

    def schedule(self, s: Schedule) -> None:
        s.compute_at(s.get_block(self.block), named(s, self.at))


@dataclass(frozen=True, kw_only=True)
class ReverseComputeAtPass(FacePass):
    """Move a consumer into a loop of its producer: `reverse-compute-at{block=D at=C.m}`."""

    name = "reverse-compute-at"
    block: str
    at: str

    def schedule(self, s: Schedule) -> None:
        s.reverse_compute_at(s.get_block(self.block), named(s, self.at))


@dataclass(frozen=True, kw_only=True)
class FusePass(FacePass):
    """Fuse an elementwise consumer into a loop of its producer: `fuse{block=D at=C.m}`; as reverse-compute-at."""

    name = "fuse"
    block: str
    at: str

    def schedule(self, s: Schedule) -> None:
        s.reverse_compute_at(s.get_block(self.block), named(s, self.at))


@dataclass(frozen=True, kw_only=True)
class InlinePass(FacePass):
    """Replace every read of a block's result by its body: `inline{block=D}`."""

    name = "inline"
    block: str

    def schedule(self, s: Schedule) -> None:
        s.inline(s.get_block(self.block))


@dataclass(frozen=True, kw_only=True)
class ReverseInlinePass(FacePass):
    """Apply an elementwise consumer where its producer writes: `reverse-inline{block=D}`."""

    name = "reverse-inline"
    block: str

    def schedule(self, s: Schedule) -> None:
        s.reverse_inline(s.get_block(self.block))
