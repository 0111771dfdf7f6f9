"""Passes that apply several primitives, or one under another name."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.passes.schedule.scheduling_pass import SchedulingPass, loops_of
from compiler.schedule import Schedule
from compiler.schedule.names import loop_named, loop_of
from compiler.support.errors import ScheduleError


@dataclass(frozen=True, kw_only=True)
class TilePass(SchedulingPass):
    """Split loops of a block by tile sizes and put the loops over tiles outside: `tile{block=C axes=m,l sizes=16,64}`.

    m { l { C } }  ->  m.0 { l.0 { m.1 = 16 { l.1 = 64 { C } } } }

    A size above the extent of its loop is cut to the extent. Raises ScheduleError unless each axis has one size.
    """

    name = "tile"
    block: str
    axes: tuple[str, ...]
    sizes: tuple[int, ...]

    def schedule(self, s: Schedule) -> None:
        if len(self.axes) != len(self.sizes):
            raise ScheduleError(f"{len(self.sizes)} sizes do not fit {len(self.axes)} axes", self.name)
        pairs = []
        for loop, size in zip(loops_of(s, self.block, self.axes), self.sizes, strict=True):
            pairs.append(s.split(loop, [None, min(size, s.extent(loop))]))
        s.reorder(*(outer for outer, _ in pairs), *(inner for _, inner in pairs))


@dataclass(frozen=True, kw_only=True)
class VectorizePass(SchedulingPass):
    """Mark a loop whose iterations become lanes: `vectorize{block=C loop=l}`; with `width` the loop is split,
    and the inner loop marked."""

    name = "vectorize"
    block: str
    loop: str
    width: int | None = None

    def schedule(self, s: Schedule) -> None:
        loop = loop_of(s, s.get_block(self.block), self.loop)
        if self.width is not None:
            _, loop = s.split(loop, [None, self.width])
        s.vectorize(loop)


@dataclass(frozen=True, kw_only=True)
class BindThreadsPass(SchedulingPass):
    """Bind loops of a block to the block and thread indices of a GPU: `bind-threads{block=C block-x=m thread-x=l}`.

    Raises ScheduleError if no loop is named.
    """

    name = "bind-threads"
    block: str
    block_x: str | None = None
    block_y: str | None = None
    block_z: str | None = None
    thread_x: str | None = None
    thread_y: str | None = None
    thread_z: str | None = None
    vthread: str | None = None

    def schedule(self, s: Schedule) -> None:
        labels = {
            "block_x": self.block_x,
            "block_y": self.block_y,
            "block_z": self.block_z,
            "thread_x": self.thread_x,
            "thread_y": self.thread_y,
            "thread_z": self.thread_z,
            "vthread": self.vthread,
        }
        if not any(labels.values()):
            raise ScheduleError("it names no loop", self.name)
        for thread, label in labels.items():
            if label is not None:
                s.bind(loop_of(s, s.get_block(self.block), label), thread)


@dataclass(frozen=True, kw_only=True)
class FusePass(SchedulingPass):
    """Fuse an elementwise consumer into a loop of its producer by reverse_compute_at: `fuse{block=D at=C.m}`."""

    name = "fuse"
    block: str
    at: str

    def schedule(self, s: Schedule) -> None:
        s.reverse_compute_at(s.get_block(self.block), loop_named(s, self.at))


PASSES: dict[str, type[SchedulingPass]] = {
    kind.name: kind for kind in (TilePass, VectorizePass, BindThreadsPass, FusePass)
}
"""These passes, by name."""
