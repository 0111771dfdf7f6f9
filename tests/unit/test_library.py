"""The composite schedules: right in the interpreter, compiled where the target allows, refused in words, replayed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import compiler
from benchmarks.workloads import FAMILIES, find
from compiler import lower, te, universe
from compiler.dialects.functions import find_function
from compiler.errors import ScheduleError
from compiler.pipeline import parse_passes, run
from compiler.program.read import read
from compiler.schedule import Schedule, library, outline
from tests.scheduled import check
from tests.unit.test_python import SMALL


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
    assert str(s.module) == before
    assert "vectorize: iterations of loop 'k.1' depend on" in said(lambda: library.vectorize_inner(s, c, 2))
    d = Schedule(compiler.lower(scaled(3, 4)))
    assert said(lambda: library.gebp(s, c, 4, 4, 4, 0, 2)) == "gebp: block 'C': mr=0 is not positive"
    assert said(lambda: library.gebp(s, c, 4, 4, 4, 2, 2, lanes=-1)) == "gebp: block 'C': lanes=-1 is not positive"
    reason = "gebp: block 'C': pack='abc' names other operands than a and b"
    assert said(lambda: library.gebp(s, c, 4, 4, 4, 2, 2, pack="abc")) == reason
    assert said(lambda: library.copy_in_vectors(s, c, 0)) == "copy_in_vectors: block 'C': lanes=0 is not positive"
    reason = "gebp: block 'D': it has 2 loops, not 3"
    assert said(lambda: library.gebp(d, d.get_block("D"), 4, 4, 4, 2, 2)) == reason


@pytest.mark.parametrize("family", FAMILIES)
def test_contiguous_is_what_build_does(family: str) -> None:
    program = find(f"{family}:{SMALL[family]}").function()
    schedule = Schedule(lower(program))
    for label in schedule.program.blocks:
        library.contiguous(schedule, schedule.get_block(label))
    module = lower(program)
    run(universe.context(), module, parse_passes("reorder-contiguous"))
    assert outline(read(find_function(module))) == outline(schedule.program)
