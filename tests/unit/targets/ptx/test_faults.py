"""Wrong accesses and divergences in small PTX texts are named with line, threads and place; right ones are not."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.targets.ptx import PtxResult
from tests.unit.targets.ptx import Array, indexed, run

TILE = ".shared .align 16 .b8 tile[256]; mov.u64 %rd9, tile; mul.wide.u32 %rd8, %r0, 4; add.s64 %rd8, %rd9, %rd8;\n"
TILE = TILE.replace("; ", ";\n")
"""%rd9 is the tile of shared memory, %rd8 the thread's word of it."""


def ones(count: int = 64) -> Array:
    return np.arange(count, dtype=np.uint32)


def kinds(outcome: PtxResult) -> list[str]:
    return [fault.kind for fault in outcome.faults]


def exchange(between: str) -> PtxResult:
    """Each thread stores its number and loads that of the thread 33 behind it, of another warp."""
    body = TILE + indexed(1, 4) + f"st.shared.u32 [%rd8], %r0;\n{between}\n"
    body += "add.s32 %r1, %r0, 33; and.b32 %r1, %r1, 63; mul.wide.u32 %rd7, %r1, 4; add.s64 %rd7, %rd9, %rd7;\n"
    return run(body + "ld.shared.u32 %r2, [%rd7];\nst.global.u32 [%rd10], %r2;", [], [ones()], threads=64)


def test_a_barrier_orders_accesses() -> None:
    outcome = exchange("bar.sync 0;")
    assert outcome.is_correct and outcome.arrays[0].tolist() == [(n + 33) % 64 for n in range(64)]


@pytest.mark.parametrize("between", ["", "bar.warp.sync -1;"])
def test_a_missing_barrier_is_a_race(between: str) -> None:
    (fault,) = exchange(between).faults
    assert fault.kind == "race of a read with a write" and fault.place == "tile+132" and fault.threads == (33, 0)
    assert str(fault).startswith("race of a read with a write at tile+132: k, block 0, threads 33 and 0, PTX line ")
    assert str(fault).endswith(": ld.shared.u32 %r2, [%rd7]")


@pytest.mark.parametrize(("between", "expected"), [("bar.warp.sync -1;", 0), ("", 1)])
def test_a_barrier_of_a_warp_orders_its_threads(between: str, expected: int) -> None:
    body = TILE + indexed(1, 4) + f"st.shared.u32 [%rd8], %r0;\n{between}\nxor.b32 %r1, %r0, 1;"
    body += (
        "mul.wide.u32 %rd7, %r1, 4; add.s64 %rd7, %rd9, %rd7; ld.shared.u32 %r2, [%rd7]; st.global.u32 [%rd10], %r2;"
    )
    assert len(run(body, [], [ones()], threads=64).faults) == expected


def test_a_write_races_with_a_read_before_it() -> None:
    body = TILE + indexed(1, 4) + "st.shared.u32 [%rd8], %r0;\nbar.sync 0;\nld.shared.u32 %r1, [%rd9+4];\nBARRIER"
    body += "st.shared.u32 [%rd8], %r1;\nst.global.u32 [%rd10], %r1;"
    assert run(body.replace("BARRIER", "bar.sync 0;\n"), [], [ones()], threads=64).is_correct
    assert kinds(run(body.replace("BARRIER", ""), [], [ones()], threads=64)) == ["race of a write with a read"]


def test_two_threads_write_one_word() -> None:
    (fault,) = run(TILE + "st.shared.u32 [%rd9+8], %r0;", [], threads=3).faults
    assert fault.kind == "race of two writes" and fault.place == "tile+8"
    assert kinds(run("st.global.u32 [%rd1], 1;", [], [ones(1)], threads=1, blocks=2)) == [
        "race of two writes of block 1"
    ]


def test_blocks_race_even_with_barriers() -> None:
    body = "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd1], 1; bar.sync 0;\n"
    body += "@!%p1 ld.global.u32 %r2, [%rd1]; @!%p1 st.global.u32 [%rd1+4], %r2;"
    assert kinds(run(body, [], [ones(2)], threads=1, blocks=2)) == ["race of a read with a write of block 0"]


@pytest.mark.parametrize(
    ("body", "kind", "place"),
    [
        ("ld.global.nc.u32 %r1, [%rd1+256];", "access outside of memory", "array 0+256"),
        ("ld.global.nc.u32 %r1, [%rd1+-4];", "access outside of memory", "array 0-4"),
        ("ld.global.nc.v2.u32 {%r1, %r2}, [%rd1+252];", "access outside of memory", "array 0+252"),
        ("ld.global.nc.u32 %r1, [%rd1+2];", "misaligned access", "array 0+2"),
        ("ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+8];", "misaligned access", "array 0+8"),
        ("ld.global.u32 %r1, [4096];", "access outside of memory", "no buffer-549755809792"),
        ("st.global.u32 [%rd2+256], %r0;", "access outside of memory", "array 1+256"),
        ("ld.global.u32 %r1, [%rd2+8];", "read of memory that nobody has set", "array 1+8"),
        (TILE + "ld.shared.u32 %r1, [%rd9+4];", "read of memory that nobody has set", "tile+4"),
        (TILE + "ld.shared.u32 %r1, [%rd9+256];", "access outside of memory", "tile+256"),
        (TILE + "st.shared.u32 [%rd9+-4], 1;", "access outside of memory", "shared memory-4"),
        (".local .align 4 .b8 d[8];\nld.local.u32 %r1, [d+4];", "read of memory that nobody has set", "d+4"),
        ("add.s32 %r1, %r5, 1;", "use of a register that nobody has set", "%r5"),
        ("mov.u32 %r4, %r5; add.s32 %r1, %r4, 1;", "use of a register that nobody has set", "%r4"),
        ("ld.global.nc.u32 %r1, [%rd2];", "read of memory that nobody has set", "array 1+0"),
        (
            "st.global.u32 [%rd3], 1;\nld.global.nc.u32 %r1, [%rd3];\nst.global.u32 [%rd3], 1;",
            "store to memory that",
            "",
        ),
        ("L:\nbra.uni L;", "the kernel does not end", ""),
    ],
)
def test_a_wrong_access(body: str, kind: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.targets.ptx.scheduler.MAX_STEPS", 1000)
    faults = run(body, [ones()], [ones(), ones()], threads=1).faults
    assert len(faults) == 1 and faults[0].kind.startswith(kind) and faults[0].place.startswith(place)


def test_moving_what_nobody_has_set_is_no_fault() -> None:
    assert run(
        "mov.u32 %r1, %r5; selp.u32 %r2, 1, 2, 1; mov.u32 %r5, %r2; add.s32 %r6, %r5, 1;", [], threads=1
    ).is_correct


def test_a_register_that_some_threads_have_set() -> None:
    body = "setp.lt.u32 %p1, %r0, 5; @%p1 mov.u32 %r1, 1;\n@%p1 add.s32 %r2, %r1, 1;\nadd.s32 %r3, %r1, 1;"
    (fault,) = run(body, [], threads=8).faults
    assert fault.threads == (5,) and fault.text == "add.s32 %r3, %r1, 1"


def test_wrong_threads_do_nothing_and_the_others_go_on() -> None:
    body = indexed(1, 4) + indexed(2, 4, 11) + "ld.global.nc.u32 %r1, [%rd10+8]; st.global.u32 [%rd11], %r1;"
    outcome = run(body, [ones(8)], [ones(8)], threads=8)
    assert kinds(outcome) == ["access outside of memory"] and outcome.faults[0].threads == (6,)
    assert outcome.arrays[1].tolist() == [2, 3, 4, 5, 6, 7, 2**32 - 1, 2**32 - 1]


@pytest.mark.parametrize(
    ("body", "kind", "threads"),
    [
        ("setp.lt.u32 %p1, %r0, 40; @%p1 bar.sync 0;", "divergent barrier", (40, 0)),
        ("setp.lt.u32 %p1, %r0, 40; @%p1 bra L;\nbar.sync 0;\nL:\nbar.sync 0;", "divergent barrier", (40, 0)),
        ("setp.lt.u32 %p1, %r0, 40; @%p1 shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;", "divergent warp", (40, 32)),
        (
            "setp.eq.u32 %p1, %r0, 9; @%p1 ret;\nmov.b32 %r1, %r0;\nvote.sync.any.pred %p2, %p1, -1;",
            "divergent warp",
            (9, 0),
        ),
    ],
)
def test_threads_that_wait_for_ever(body: str, kind: str, threads: tuple[int, int]) -> None:
    (fault,) = run(body, [], threads=64).faults
    assert fault.kind == kind and fault.threads == threads


def test_members_of_a_shuffle_may_be_some() -> None:
    body = "setp.lt.u32 %p1, %r0, 16; @%p1 shfl.sync.bfly.b32 %r1, %r0, 1, 31, 65535; bar.sync 0;"
    assert run(body, [], threads=64).is_correct
    (fault,) = run(body.replace("bfly.b32 %r1, %r0, 1,", "bfly.b32 %r1, %r0, 16,"), [], threads=64).faults
    assert fault.kind == "shuffle from a thread that takes no part"


def test_lanes_that_part_meet_at_a_shuffle() -> None:
    """Odd threads come later, by a longer way; the shuffle waits for them."""
    body = (
        indexed(1, 4)
        + """
        and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 7; @%p1 bra MEET; add.s32 %r2, %r2, %r0;
        MEET: shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; st.global.u32 [%rd10], %r3;
    """
    )
    outcome = run(body, [], [ones()], threads=64)
    assert outcome.is_correct and outcome.arrays[0].tolist() == [7 if n % 2 else n + 8 for n in range(64)]


COPY = TILE + indexed(1, 16) + "shl.b32 %r1, %r0, 4; mov.u32 %r2, tile; add.s32 %r2, %r2, %r1;\n"
"""%rd10: 16 bytes of the input for each thread; %r2: those of the tile."""
ISSUE = "cp.async.ca.shared.global [%r2], [%rd10], 16;\n"


def copied(middle: str, threads: int = 4, load: str = "%r2") -> PtxResult:
    body = COPY + middle + f"ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [{load}];\n"
    body += indexed(2, 16, 11) + "st.global.v4.u32 [%rd11], {%r4, %r5, %r6, %r7};"
    return run(body, [ones(4 * threads)], [np.zeros(4 * threads, np.uint32)], threads=threads)


@pytest.mark.parametrize(
    "middle",
    [
        ISSUE + "cp.async.wait_all;\n",
        ISSUE + "cp.async.commit_group;\ncp.async.wait_group 0;\n",
        ISSUE.replace(".ca.", ".cg.") + "cp.async.commit_group;\ncp.async.commit_group;\ncp.async.wait_group 1;\n",
    ],
)
def test_a_copy_arrives_at_its_wait(middle: str) -> None:
    outcome = copied(middle)
    assert outcome.is_correct and (outcome.arrays[1] == outcome.arrays[0]).all()


PENDING = "read of an asynchronous copy that nobody has waited for"


@pytest.mark.parametrize(
    "middle",
    [
        ISSUE,
        ISSUE + "cp.async.commit_group;\n",
        ISSUE + "cp.async.wait_group 0;\n",  # in no group yet
        ISSUE + "cp.async.commit_group;\ncp.async.wait_group 1;\n",
    ],
)
def test_a_copy_without_its_wait_is_named(middle: str) -> None:
    outcome = copied(middle)
    assert kinds(outcome) == [PENDING] and (outcome.arrays[1] == 2**32 - 1).all()


def test_a_wait_is_for_the_own_copies_alone() -> None:
    """What another thread has copied needs a barrier behind its wait."""
    neighbour = "xor.b32 %r3, %r2, 16;\n"
    wait = ISSUE + neighbour + "cp.async.wait_all;\n"
    assert kinds(copied(wait, load="%r3")) == ["race of a read with a write"]
    assert kinds(copied(ISSUE + neighbour + "bar.sync 0;\ncp.async.wait_all;\n", load="%r3")) == [
        "race of a read with a write"
    ]
    outcome = copied(wait + "bar.sync 0;\n", load="%r3")
    assert (
        outcome.is_correct and outcome.arrays[1].reshape(4, 4).tolist() == ones(16).reshape(4, 4)[[1, 0, 3, 2]].tolist()
    )


def test_a_copy_races_with_reads_before_it() -> None:
    first = ISSUE + "cp.async.wait_all;\nbar.sync 0;\nxor.b32 %r3, %r2, 16;\nld.shared.u32 %r8, [%r3];\n"
    assert kinds(copied(first + ISSUE + "cp.async.wait_all;\n")) == ["race of a write with a read"]
    assert copied(first + "bar.sync 0;\n" + ISSUE + "cp.async.wait_all;\n").is_correct


def test_a_write_to_what_another_thread_copies() -> None:
    middle = ISSUE + "bar.sync 0;\nxor.b32 %r3, %r2, 16;\nst.shared.u32 [%r3], 1;\nbar.sync 0;\ncp.async.wait_all;\n"
    assert "race of two writes" in kinds(copied(middle))


@pytest.mark.parametrize("size", [0, 4, 8, 10, 16])
def test_a_copy_of_fewer_bytes_fills_with_zeros(size: int) -> None:
    issue = f"mov.u32 %r8, {size};\n" + ISSUE.replace("16;", "16, %r8;")
    outcome = copied(issue + "cp.async.wait_all;\n")
    expected = outcome.arrays[0].view(np.uint8).reshape(4, 16).copy()
    expected[:, size:] = 0
    assert outcome.is_correct and (outcome.arrays[1].view(np.uint8).reshape(4, 16) == expected).all()


def test_a_copy_of_no_bytes_reads_nothing() -> None:
    """Its source may lie outside."""
    issue = "mov.u32 %r8, 0;\nadd.s64 %rd10, %rd10, 4096;\n" + ISSUE.replace("16;", "16, %r8;") + "cp.async.wait_all;\n"
    assert copied(issue).is_correct
    assert kinds(copied(issue.replace("%r8, 0", "%r8, 4"))) == ["access outside of memory"]
    assert kinds(copied(issue.replace("%r8, 0", "%r8, 17").replace("4096", "0"))) == [
        "a copy of more bytes than its size"
    ]


def test_constants_are_not_stored_to() -> None:
    declared = ".const .align 4 .b8 c[4] = {7};\n"
    (fault,) = run("mov.u64 %rd5, c; st.u32 [%rd5], 1;", [], threads=1, declarations=declared).faults
    assert str(fault).startswith("store to constant memory at c+0: k, block 0, thread 0, PTX line")


def test_dynamic_shared_memory_has_the_size_of_the_launch() -> None:
    declared = ".extern .shared .align 16 .b8 pool[];\n"
    body = "mov.u64 %rd5, pool; st.shared.u32 [%rd5+60], 1;"
    assert run(body, [], threads=1, declarations=declared, shared_bytes=64).is_correct
    (fault,) = run(body, [], threads=1, declarations=declared, shared_bytes=48).faults
    assert fault.kind == "access outside of memory" and fault.place == "pool+60"


def test_what_is_not_written_is_told() -> None:
    outcome = run(indexed(1, 4) + "st.global.u32 [%rd10], 1;", [], [np.zeros(8, np.uint32)], threads=6)
    assert outcome.written[0].tolist() == [True] * 6 + [False] * 2
