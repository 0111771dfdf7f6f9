"""The composite schedules: right in the interpreter, compiled where the target allows, refused in words, replayed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import compiler
from compiler import te
from compiler.errors import ScheduleError
from compiler.schedule import Schedule, library
from tests.scheduled import check


def matmul(m: int, k: int, n: int) -> te.Function:
    """C[m, n] = A[m, k] B[k, n]."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.function("mm", [a, b], [c])


def scaled(m: int, n: int) -> te.Function:
    """D[m, n] = 2 A[m, n] + 1."""
    a = te.placeholder((m, n), name="A")
    return te.function("scaled", [a], [te.compute((m, n), lambda i, j: a[i, j] * 2.0 + 1.0, name="D")])


def loops(schedule: Schedule, label: str) -> list[str]:
    """The loops around a block, with their extents and kinds where those are not serial."""
    found = schedule.program.enclosing(label)
    return [f"{n.label} {n.extent}" + (f" {n.kind}" if n.kind != "serial" else "") for n in found]


def test_block_tile() -> None:
    done = check(matmul(7, 5, 9), lambda s: library.block_tile(s, s.get_block("C"), [4, 3, 2]))
    assert loops(done, "C") == ["i.0 2", "j.0 3", "k.0 3", "i.1 4", "j.1 3", "k.1 2"]


@pytest.mark.parametrize("sizes", [[4], [4, 3], [100, 3, 2]])
def test_block_tile_with_other_sizes(sizes: list[int]) -> None:
    check(matmul(7, 5, 9), lambda s: library.block_tile(s, s.get_block("C"), sizes))


def test_vectorize_inner() -> None:
    done = check(scaled(3, 20), lambda s: library.vectorize_inner(s, s.get_block("D"), 8))
    assert loops(done, "D")[1:] == ["j.0 3", "j.1 8 vectorized"]
    done = check(scaled(3, 5), lambda s: library.vectorize_inner(s, s.get_block("D"), 8))
    assert loops(done, "D")[1:] == ["j 5 vectorized"]


def test_parallelize_outer() -> None:
    done = check(matmul(3, 5, 4), lambda s: library.parallelize_outer(s, s.get_block("C"), 2))
    assert loops(done, "C") == ["i_j 12 parallel", "k 5"]
    check(matmul(3, 5, 4), lambda s: library.parallelize_outer(s, s.get_block("C")))


@pytest.mark.parametrize("shape", [(13, 11, 17), (6, 4, 8), (1, 1, 1), (5, 30, 3)])
def test_gebp(shape: tuple[int, int, int]) -> None:
    done = check(matmul(*shape), lambda s: library.gebp(s, s.get_block("C"), mc=6, kc=4, nc=8, mr=3, nr=4))
    inner = done.program.enclosing("C")
    assert [n.kind for n in inner] == ["serial"] * 6 + ["unrolled", "vectorized"]
    if shape == (13, 11, 17):
        assert loops(done, "B.pack")[:2] == ["j.0 3", "k.0 3"]
        assert loops(done, "A.pack")[:3] == ["j.0 3", "k.0 3", "i.0 3"]
        assert done.program.buffers["B.pack"].shape == (2, 4, 4)
        assert done.program.buffers["A.pack"].shape == (2, 4, 3)


@pytest.mark.parametrize(("mr", "nr"), [(1, 4), (4, 1), (1, 1)])
def test_gebp_with_thin_register_tiles(mr: int, nr: int) -> None:
    check(matmul(5, 6, 7), lambda s: library.gebp(s, s.get_block("C"), mc=4, kc=4, nc=4, mr=mr, nr=nr))


def test_gebp_does_not_pack_beyond_the_matrix() -> None:
    done = check(matmul(5, 7, 9), lambda s: library.gebp(s, s.get_block("C"), mc=600, kc=400, nc=800, mr=3, nr=4))
    assert loops(done, "C")[:3] == ["j.0 1", "k.0 1", "i.0 1"]
    assert done.program.buffers["A.pack"].shape == (2, 7, 3)


@pytest.mark.parametrize("vector", [1, 2])
def test_cooperative_fetch(vector: int) -> None:
    def apply(s: Schedule) -> None:
        block = s.get_block("C")
        tiles = library.block_tile(s, block, [4, 3, 2])
        library.cooperative_fetch(s, block, "A", tiles.outer[2], threads=4, vector=vector)

    done = check(matmul(7, 5, 9), apply, native=False)
    kinds = [n.kind for n in done.program.enclosing("A.shared")]
    assert kinds == ["serial"] * 4 + ["thread_x"] + (["vectorized"] if vector == 2 else ["serial"])
    assert done.program.buffers["A.shared"].scope == "shared"


def test_a_fetch_of_one_element_has_no_threads() -> None:
    def apply(s: Schedule) -> None:
        block = s.get_block("C")
        library.cooperative_fetch(s, block, "A", s.get_loops(block)[2], threads=4)

    assert "thread_x" not in str(check(matmul(3, 2, 2), apply, native=False))


@pytest.mark.parametrize("shape", [(13, 11, 17), (8, 4, 8), (3, 2, 5), (3, 5, 3), (2, 1, 9)])
def test_tile_and_bind(shape: tuple[int, int, int]) -> None:
    def apply(s: Schedule) -> None:
        library.tile_and_bind(s, s.get_block("C"), (8, 8), (2, 4), panel=4, vector=2)

    done = check(matmul(*shape), apply, native=False)
    assert [n.kind for n in done.program.enclosing("C")][:4] == ["block_y", "block_x", "serial", "thread_x"]
    threads = {
        label: n.extent for label in done.program.blocks for n in done.program.enclosing(label) if n.kind == "thread_x"
    }
    assert set(threads) == {"A.shared", "B.shared", "C", "C.local"} or 1 in shape
    assert len(set(threads.values())) == 1, "a thread stores what it has computed"
    assert {n: b.scope for n, b in done.program.buffers.items() if b.scope != "global"} == {
        "A.shared": "shared",
        "B.shared": "shared",
        "C.local": "local",
    }


def said(apply: Callable[[], object]) -> str:
    """The sentence of a refusal."""
    with pytest.raises(ScheduleError) as error:
        apply()
    return str(error.value)


def test_refusals() -> None:
    s = Schedule(compiler.lower(matmul(3, 4, 5)))
    before, c = str(s.module), s.get_block("C")
    assert said(lambda: library.block_tile(s, c, [1] * 4)) == "block_tile: block 'C': it has 3 loops, not 4"
    assert said(lambda: library.parallelize_outer(s, c, 5)) == "parallelize_outer: block 'C': it has 3 loops, not 5"
    reason = "tile_and_bind: block 'C': a block's tile has one row or one column"
    assert said(lambda: library.tile_and_bind(s, c, (1, 8), (1, 4), 4)) == reason
    assert str(s.module) == before
    assert "vectorize: iterations of loop 'k.1' depend on" in said(lambda: library.vectorize_inner(s, c, 2))
    d = Schedule(compiler.lower(scaled(3, 4)))
    reason = "gebp: block 'D': a matmul has 3 loops and 2 operands, this has 2 and 1"
    assert said(lambda: library.gebp(d, d.get_block("D"), 4, 4, 4, 2, 2)) == reason
