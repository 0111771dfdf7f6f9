"""The passes that schedule: each does what its primitives do, called with the same arguments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.schedule import Schedule
from compiler.universe import context
from strata.passes import parse_passes, run
from tests.schedules import lowered, mm_exp_mm


def tile(s: Schedule) -> None:
    (m0, m1), (l0, l1) = s.split("C.m", [None, 4]), s.split("C.l", [None, 3])
    s.reorder(m0, l0, m1, l1)


def pack_at(s: Schedule) -> None:
    l0, l1 = s.split("C.l", [None, 4])
    s.reorder(l0, l1)
    s.reorder(l0, "C.m")
    s.compute_at(s.pack("C", "B", [1, 4], [1, 0, 2]), l0)


FACES: dict[str, Callable[[Schedule], object]] = {
    "tile{block=C axes=m,l sizes=4,3}": tile,
    "split{block=C loop=m factors=-1,5}": lambda s: s.split("C.m", [None, 5]),
    "split{block=C loop=m factors=-1,5 tail=partition}": lambda s: s.split("C.m", [None, 5], "partition"),
    "partition{block=C loop=m at=4}": lambda s: s.partition("C.m", 4),
    "fuse-loops{block=C loops=m,l}": lambda s: s.fuse("C.m", "C.l"),
    "reorder{block=C order=m,k,l}": lambda s: s.reorder("C.m", "C.k", "C.l"),
    "merge{first=C.m second=D.m shift=1}": lambda s: s.merge("C.m", "D.m", 1),
    "merge{first=C.m second=D.m},merge{first=C.l second=D.l}": lambda s: [s.merge("C.m", "D.m"), s.merge("C.l", "D.l")],
    "merge{first=C.m second=D.m},distribute{block=C loop=m}": lambda s: s.distribute(s.merge("C.m", "D.m"), "C"),
    "unroll{block=C loop=k}": lambda s: s.unroll("C.k"),
    "vectorize{block=D loop=l}": lambda s: s.vectorize("D.l"),
    "vectorize{block=D loop=l width=4}": lambda s: s.vectorize(s.split("D.l", [None, 4])[1]),
    "parallelize{block=C loop=m}": lambda s: s.parallel("C.m"),
    "bind-threads{block=C block-x=m thread-x=l}": lambda s: [s.bind("C.m", "block_x"), s.bind("C.l", "thread_x")],
    "annotate{block=C loop=m key=hint value=4}": lambda s: s.annotate("C.m", "hint", 4),
    "prefetch{block=C loop=k buffer=B ahead=2}": lambda s: s.prefetch("C.k", "B", 2),
    "prefetch{block=C loop=m buffer=A ahead=1 over=k}": lambda s: s.prefetch("C.m", "A", 1, "C.k"),
    "merge{first=C.m second=D.m},software-pipeline{block=C loop=m stages=0,1}": lambda s: s.software_pipeline(
        s.merge("C.m", "D.m"), [0, 1]
    ),
    "compute-at{block=D at=F.m}": lambda s: s.compute_at("D", "F.m"),
    "inline{block=D}": lambda s: s.inline("D"),
    "rfactor{block=F loop=l}": lambda s: s.rfactor("F", "F.l"),
    "cache-read{block=C buffer=B scope=shared}": lambda s: s.cache_read("C", "B", "shared"),
    "cache-read{block=C buffer=A scope=shared at=C.m}": lambda s: s.compute_at(s.cache_read("C", "A", "shared"), "C.m"),
    "cache-write{block=C scope=local}": lambda s: s.cache_write("C", "local"),
    "cache-write{block=C at=C.m}": lambda s: s.reverse_compute_at(s.cache_write("C"), "C.m"),
    "stage{block=C loop=m buffer=C scope=local}": lambda s: s.stage("C.m", "C", "local"),
    "stage{block=C loop=m buffer=A scope=shared}": lambda s: s.stage("C.m", "A", "shared"),
    "pack{block=C buffer=B tiles=1,4 order=1,0,2}": lambda s: s.pack("C", "B", [1, 4], [1, 0, 2]),
    "tile{block=C axes=l sizes=4},reorder{block=C order=l.0,m},"
    "pack{block=C buffer=B tiles=1,4 order=1,0,2 at=C.l.0}": pack_at,
    'transform-layout{block=C buffer=C by="(i, j) -> (j floordiv 4, i, j mod 4)"}': lambda s: s.transform_layout(
        "C", "C", lambda i, j: (j // 4, i, j % 4)
    ),
    "fuse{block=D at=C.l},lift-alloc{buffer=C to=C.m}": lambda s: [
        s.reverse_compute_at("D", "C.l"),
        s.lift_alloc("C", "C.m"),
    ],
    "fuse{block=D at=C.l},lift-alloc{buffer=C}": lambda s: [s.reverse_compute_at("D", "C.l"), s.lift_alloc("C")],
    "set-scope{block=C scope=shared}": lambda s: s.set_scope("C", "shared"),
    "storage-align{block=C dim=0 factor=16 offset=4}": lambda s: s.storage_align("C", 0, 16, 4),
    "swizzle{block=C width=4}": lambda s: s.swizzle("C", 4),
    "fuse{block=D at=C.m},double-buffer{block=C}": lambda s: [s.reverse_compute_at("D", "C.m"), s.double_buffer("C")],
}


@pytest.mark.parametrize("passes", FACES)
def test_a_pass_is_its_primitives(passes: str) -> None:
    module = lowered(mm_exp_mm(l=16))
    schedule = Schedule(module.clone())
    FACES[passes](schedule)
    run(context(), module, parse_passes(passes))
    assert str(module) == str(schedule.module) != str(schedule.original)
