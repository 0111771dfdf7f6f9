"""Passes that make copies of buffers, and say where buffers live and how their elements lie."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from compiler.errors import ScheduleError
from compiler.passes.schedule.face import FacePass, loop_of, named
from compiler.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class CacheReadPass(FacePass):
    """Read a buffer through a copy, at a loop if one is given: `cache-read{block=C buffer=A scope=shared at=C.m}`."""

    name = "cache-read"
    block: str
    buffer: str
    scope: str = "local"
    at: str | None = None

    def schedule(self, s: Schedule) -> None:
        copy = s.cache_read(s.get_block(self.block), self.buffer, self.scope)
        if self.at is not None:
            s.compute_at(copy, named(s, self.at))


@dataclass(frozen=True, kw_only=True)
class CacheWritePass(FacePass):
    """Write a buffer through a copy, at a loop if one is given: `cache-write{block=C scope=local at=C.m}`."""

    name = "cache-write"
    block: str
    scope: str = "local"
    at: str | None = None

    def schedule(self, s: Schedule) -> None:
        copy = s.cache_write(s.get_block(self.block), self.scope)
        if self.at is not None:
            s.reverse_compute_at(copy, named(s, self.at))


@dataclass(frozen=True, kw_only=True)
class StagePass(FacePass):
    """Work on a copy of the window of a buffer that a loop touches: `stage{block=C loop=m buffer=C scope=local}`."""

    name = "stage"
    block: str
    loop: str
    buffer: str
    scope: str = "local"

    def schedule(self, s: Schedule) -> None:
        s.stage(loop_of(s, s.get_block(self.block), self.loop), self.buffer, self.scope)


@dataclass(frozen=True, kw_only=True)
class PackPass(FacePass):
    """Read a buffer through a blocked, padded copy: `pack{block=C buffer=B tiles=1,48 order=1,0,2 at=C.l}`."""

    name = "pack"
    block: str
    buffer: str
    tiles: tuple[int, ...]
    order: tuple[int, ...] = ()
    at: str | None = None

    def schedule(self, s: Schedule) -> None:
        copy = s.pack(s.get_block(self.block), self.buffer, self.tiles, self.order)
        if self.at is not None:
            s.compute_at(copy, named(s, self.at))


@dataclass(frozen=True, kw_only=True)
class TransformLayoutPass(FacePass):
    """Index a temporary through a map: `transform-layout{block=C buffer=C by="(i, j) -> (j, i mod 3)"}`."""

    name = "transform-layout"
    block: str
    buffer: str
    by: str

    def schedule(self, s: Schedule) -> None:
        try:
            map = Parser(Context(), f"affine_map<{self.by}>").parse_attribute()
        except (ParseError, NotImplementedError) as error:  # what xDSL says to the product of two indices
            raise ScheduleError(f"'{self.by}' is not an affine map, such as (i, j) -> (j, i)", self.name) from error
        assert isinstance(map, AffineMapAttr)
        s.transform_layout(s.get_block(self.block), self.buffer, map.data)


@dataclass(frozen=True, kw_only=True)
class LiftAllocPass(FacePass):
    """Let a buffer live longer, in a loop or, without one, in the function: `lift-alloc{buffer=C to=C.m}`."""

    name = "lift-alloc"
    buffer: str
    to: str | None = None

    def schedule(self, s: Schedule) -> None:
        s.lift_alloc(self.buffer, None if self.to is None else named(s, self.to))


@dataclass(frozen=True, kw_only=True)
class SetScopePass(FacePass):
    """Set the scope of the buffer that a block writes: `set-scope{block=C scope=shared}`."""

    name = "set-scope"
    block: str
    scope: str

    def schedule(self, s: Schedule) -> None:
        s.set_scope(s.get_block(self.block), self.scope)


@dataclass(frozen=True, kw_only=True)
class PadPass(FacePass):
    """Read a buffer through a copy with a border: `pad{block=C buffer=A}`."""

    name = "pad"
    block: str
    buffer: str

    def schedule(self, s: Schedule) -> None:
        s.pad(s.get_block(self.block), self.buffer)


@dataclass(frozen=True, kw_only=True)
class StorageAlignPass(FacePass):
    """Pad a block's buffer so that a stride is `offset` beyond a multiple: `storage-align{block=C dim=0 factor=32}`."""

    name = "storage-align"
    block: str
    dim: int
    factor: int
    offset: int = 0

    def schedule(self, s: Schedule) -> None:
        s.storage_align(s.get_block(self.block), self.dim, self.factor, self.offset)


@dataclass(frozen=True, kw_only=True)
class SwizzlePass(FacePass):
    """Rotate the columns of a block's buffer by the row: `swizzle{block=C width=8}`."""

    name = "swizzle"
    block: str
    width: int

    def schedule(self, s: Schedule) -> None:
        s.swizzle(s.get_block(self.block), self.width)


@dataclass(frozen=True, kw_only=True)
class DoubleBufferPass(FacePass):
    """Give a block's buffer two halves: `double-buffer{block=B.local}`."""

    name = "double-buffer"
    block: str

    def schedule(self, s: Schedule) -> None:
        s.double_buffer(s.get_block(self.block))
