"""Passes over loops: the shape of a nest and the kinds of its loops."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.errors import ScheduleError
from compiler.passes.schedule.face import FacePass, loop_of, loops_of, named
from compiler.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class TilePass(FacePass):
    """Split loops of a block by tile sizes and put the loops over tiles outside: `tile{block=C axes=m,l sizes=16,64}`.

    m { l { C } }  ->  m.0 { l.0 { m.1 = 16 { l.1 = 64 { C } } } }
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
class SplitPass(FacePass):
    """Split a loop by factors, -1 for the one that is inferred: `split{block=C loop=m factors=-1,16 tail=guard}`."""

    name = "split"
    block: str
    loop: str
    factors: tuple[int, ...]
    tail: str = "guard"

    def schedule(self, s: Schedule) -> None:
        loop = loop_of(s, s.get_block(self.block), self.loop)
        s.split(loop, [None if f == -1 else f for f in self.factors], self.tail)


@dataclass(frozen=True, kw_only=True)
class PartitionPass(FacePass):
    """Cut a loop in two at a position: `partition{block=C loop=m at=48}`."""

    name = "partition"
    block: str
    loop: str
    at: int

    def schedule(self, s: Schedule) -> None:
        s.partition(loop_of(s, s.get_block(self.block), self.loop), self.at)


@dataclass(frozen=True, kw_only=True)
class FuseLoopsPass(FacePass):
    """Fuse perfectly nested loops into one: `fuse-loops{block=C loops=m,l}`."""

    name = "fuse-loops"
    block: str
    loops: tuple[str, ...]

    def schedule(self, s: Schedule) -> None:
        s.fuse(*loops_of(s, self.block, self.loops))


@dataclass(frozen=True, kw_only=True)
class ReorderPass(FacePass):
    """Permute loops of a nest into an order: `reorder{block=C order=m,k,l}`."""

    name = "reorder"
    block: str
    order: tuple[str, ...]

    def schedule(self, s: Schedule) -> None:
        s.reorder(*loops_of(s, self.block, self.order))


@dataclass(frozen=True, kw_only=True)
class MergePass(FacePass):
    """Let two adjacent nests share their outer loop: `merge{first=C.m second=D.m shift=0}`."""

    name = "merge"
    first: str
    second: str
    shift: int = 0

    def schedule(self, s: Schedule) -> None:
        s.merge(named(s, self.first), named(s, self.second), self.shift)


@dataclass(frozen=True, kw_only=True)
class DistributePass(FacePass):
    """Cut the body of a loop after a block, a loop for each part: `distribute{block=C loop=m}`."""

    name = "distribute"
    block: str
    loop: str

    def schedule(self, s: Schedule) -> None:
        block = s.get_block(self.block)
        s.distribute(loop_of(s, block, self.loop), block)


@dataclass(frozen=True, kw_only=True)
class UnrollPass(FacePass):
    """Mark a loop to be unrolled: `unroll{block=C loop=l}`."""

    name = "unroll"
    block: str
    loop: str

    def schedule(self, s: Schedule) -> None:
        s.unroll(loop_of(s, s.get_block(self.block), self.loop))


@dataclass(frozen=True, kw_only=True)
class VectorizePass(FacePass):
    """Mark a loop whose iterations become lanes: `vectorize{block=C loop=l}`; with `width` it is split first."""

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
class ParallelizePass(FacePass):
    """Mark a loop whose iterations run on several threads: `parallelize{block=C loop=m}`."""

    name = "parallelize"
    block: str
    loop: str

    def schedule(self, s: Schedule) -> None:
        s.parallel(loop_of(s, s.get_block(self.block), self.loop))


@dataclass(frozen=True, kw_only=True)
class TensorizePass(FacePass):
    """Mark a nest that an intrinsic replaces: `tensorize{block=C loop=j intrinsic=dot.i32.u8i8x4}`."""

    name = "tensorize"
    block: str
    loop: str
    intrinsic: str

    def schedule(self, s: Schedule) -> None:
        s.tensorize(loop_of(s, s.get_block(self.block), self.loop), self.intrinsic)


@dataclass(frozen=True, kw_only=True)
class BindThreadsPass(FacePass):
    """Bind loops of a block to hardware indices: `bind-threads{block=C block-x=m thread-x=l}`."""

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
        asked = {
            "block_x": self.block_x,
            "block_y": self.block_y,
            "block_z": self.block_z,
            "thread_x": self.thread_x,
            "thread_y": self.thread_y,
            "thread_z": self.thread_z,
            "vthread": self.vthread,
        }
        if not any(asked.values()):
            raise ScheduleError("it names no loop", self.name)
        for thread, label in asked.items():
            if label is not None:
                s.bind(loop_of(s, s.get_block(self.block), label), thread)


@dataclass(frozen=True, kw_only=True)
class AnnotatePass(FacePass):
    """Attach a number or a word to a loop under a name: `annotate{block=C loop=m key=hint value=4}`."""

    name = "annotate"
    block: str
    loop: str
    key: str
    value: int | str

    def schedule(self, s: Schedule) -> None:
        s.annotate(loop_of(s, s.get_block(self.block), self.loop), self.key, self.value)


@dataclass(frozen=True, kw_only=True)
class PrefetchPass(FacePass):
    """Ask for elements some iterations of a loop early: `prefetch{block=C loop=k buffer=B ahead=8 over=j}`.

    Without `over`, a loop inside, for all of them at once; with it, for a share in each of that loop's iterations.
    """

    name = "prefetch"
    block: str
    loop: str
    buffer: str
    ahead: int
    over: str | None = None

    def schedule(self, s: Schedule) -> None:
        block = s.get_block(self.block)
        over = None if self.over is None else loop_of(s, block, self.over)
        s.prefetch(loop_of(s, block, self.loop), self.buffer, self.ahead, over)


@dataclass(frozen=True, kw_only=True)
class SoftwarePipelinePass(FacePass):
    """Overlap the iterations of a loop: `software-pipeline{block=C loop=k stages=0,1}`."""

    name = "software-pipeline"
    block: str
    loop: str
    stages: tuple[int, ...]

    def schedule(self, s: Schedule) -> None:
        s.software_pipeline(loop_of(s, s.get_block(self.block), self.loop), self.stages)
