"""The composite schedules: right in the interpreter, compiled where the target allows, refused in words, replayed."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import compiler
from compiler import lower, recipes, te, universe
from compiler.bench.workloads import FAMILIES, find
from compiler.dialects.functions import find_function
from compiler.program.read import read
from compiler.schedule import Schedule, outline
from compiler.support.errors import ScheduleError
from strata.passes import parse_passes, run
from tests.programs import sum_of_products as matmul
from tests.sample import pairs
from tests.scheduled import check
from tests.unit.schedule.test_python import SMALL


def scaled(m: int, n: int) -> te.Function:
    """D[m, n] = 2 A[m, n] + 1."""
    a = te.placeholder((m, n), name="A")
    return te.function("scaled", [a], [te.compute((m, n), lambda i, j: a[i, j] * 2.0 + 1.0, name="D")])


def loops(schedule: Schedule, label: str) -> list[str]:
    """The loops around a block, with their extents and kinds where those are not serial."""
    actual = schedule.program.enclosing(label)
    return [f"{n.label} {n.extent}" + (f" {n.kind}" if n.kind != "serial" else "") for n in actual]


@pytest.mark.parametrize("shape", [(13, 11, 17), (6, 4, 8), (1, 1, 1), (5, 30, 3)])
def test_gebp(shape: tuple[int, int, int]) -> None:
    done = check(matmul(*shape), lambda s: recipes.gebp(s, s.get_block("C"), mc=6, kc=4, nc=8, mr=3, nr=4))
    inner = done.program.enclosing("C")
    assert [n.kind for n in inner] == ["serial"] * 6 + ["unrolled", "vectorized"]
    if shape == (13, 11, 17):
        assert loops(done, "B.pack")[:2] == ["j.0 3", "k.0 3"]
        assert loops(done, "A.pack")[:3] == ["j.0 3", "k.0 3", "i.0 3"]
        assert done.program.buffers["B.pack"].shape == (2, 4, 4)
        assert done.program.buffers["A.pack"].shape == (2, 4, 3)


@pytest.mark.parametrize(("lanes", "pack"), pairs([2, 4, 6, 16], ["ab", "a", "b", ""]))
def test_gebp_packs_what_it_is_told_by_vectors(lanes: int, pack: str) -> None:
    def apply(s: Schedule) -> None:
        done = recipes.gebp(s, s.get_block("C"), mc=6, kc=4, nc=24, mr=3, nr=12, lanes=lanes, pack=pack)
        assert (done.pack_a is None, done.pack_b is None) == ("a" not in pack, "b" not in pack)
        assert s.extent(s.get_loops(s.get_block("C"))[-1]) == math.gcd(12, lanes)

    done = check(matmul(13, 11, 29), apply)
    assert {"A.pack", "B.pack"} & set(done.program.buffers) == {f"{name.upper()}.pack" for name in pack}
    assert done.verify().answer == "proved"


def test_gebp_sets_a_tile_to_zero_in_the_first_round_and_asks_for_the_next() -> None:
    done = check(matmul(13, 11, 17), lambda s: recipes.gebp(s, s.get_block("C"), mc=6, kc=4, nc=8, mr=3, nr=4))
    around = done.program.enclosing("C.init")
    assert [n.label for n in around[:5]] == ["j.0", "k.0", "i.0", "j.1", "i.1"]
    guard = [c for c in done.program.blocks["C.init"].guard if c.equal]
    assert [c.form.variables() for c in guard] == [{around[1].number}]
    asked = {n.label: str(dict(n.attributes)["prefetch"]) for n in done.program.loops.values() if n.attributes}
    assert asked == {"i.1": "{C = 1 : i64}", "k.1": "{B.pack = 8 : i64}"}


def test_gebp_evens_its_tiles_out() -> None:
    assert [recipes.even(extent, 24, 8) for extent in (1, 8, 24, 25, 48, 49, 100)] == [1, 1, 3, 2, 3, 3, 3]


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1], [2, 0, 1]])
def test_copy_in_vectors(order: list[int]) -> None:
    """Panels of 8 rows of A, whose elements lie one behind the other along k, in each order of panel, k and row."""

    def apply(s: Schedule) -> None:
        recipes.copy_in_vectors(s, s.pack(s.get_block("C"), "A", [8, 1], order), 8)

    done = check(matmul(16, 16, 5), apply)
    around = done.program.enclosing("A.pack")
    assert [n.kind for n in around] == ["serial", "serial", "unrolled", "vectorized"]
    kernel, transposes = compiler.build(done), order[2] != 1
    assert ("vector.scatter %A.pack" in kernel.text("low")) == transposes
    assert "masked.scatter" not in kernel.text("llvm")
    assert done.verify().answer == "proved"


def test_copy_in_vectors_transposes_long_rows_in_pieces() -> None:
    """40 rows are more than registers hold: 8 at a time are transposed."""

    def apply(s: Schedule) -> None:
        recipes.copy_in_vectors(s, s.pack(s.get_block("C"), "A", [40, 1], [0, 1, 2]), 8)

    done = check(matmul(80, 20, 3), apply)
    around = [(loop.extent, loop.kind) for loop in done.program.enclosing("A.pack")]
    assert around[-4:] == [(3, "serial"), (5, "serial"), (8, "unrolled"), (8, "vectorized")]
    assert "vector.gather %A" not in compiler.build(done).text("low")


def test_copy_in_vectors_of_a_scalar() -> None:
    value = te.placeholder((), name="S")
    spread = te.function("f", [value], [te.compute((5,), lambda i: value[()] * 2.0, name="D")])
    done = check(spread, lambda s: recipes.copy_in_vectors(s, s.get_block("D"), 4))
    assert [n.kind for n in done.program.enclosing("D")] == ["unrolled", "vectorized"]


@pytest.mark.parametrize(("mr", "nr"), [(1, 4), (4, 1), (1, 1)])
def test_gebp_with_thin_register_tiles(mr: int, nr: int) -> None:
    check(matmul(5, 6, 7), lambda s: recipes.gebp(s, s.get_block("C"), mc=4, kc=4, nc=4, mr=mr, nr=nr))


def test_gebp_does_not_pack_beyond_the_matrix() -> None:
    done = check(matmul(5, 7, 9), lambda s: recipes.gebp(s, s.get_block("C"), mc=600, kc=400, nc=800, mr=3, nr=4))
    assert loops(done, "C")[:3] == ["j.0 1", "k.0 1", "i.0 1"]
    assert done.program.buffers["A.pack"].shape == (2, 7, 3)


@pytest.mark.parametrize("vector", [1, 2])
def test_cooperative_fetch(vector: int) -> None:
    def apply(s: Schedule) -> None:
        block = s.get_block("C")
        cuts = [s.split(loop, [None, size]) for loop, size in zip(s.get_loops(block), (4, 3, 2), strict=True)]
        s.reorder(*(outer for outer, _ in cuts), *(inner for _, inner in cuts))
        recipes.cooperative_fetch(s, block, "A", cuts[2][0], threads=4, vector=vector)

    done = check(matmul(7, 5, 9), apply, native=False)
    kinds = [n.kind for n in done.program.enclosing("A.shared")]
    assert kinds == ["serial"] * 4 + ["thread_x"] + ["vectorized"] * (vector == 2)
    assert done.program.buffers["A.shared"].scope == "shared"


def test_a_fetch_of_one_element_has_no_threads() -> None:
    def apply(s: Schedule) -> None:
        block = s.get_block("C")
        recipes.cooperative_fetch(s, block, "A", s.get_loops(block)[2], threads=4)

    assert "thread_x" not in str(check(matmul(3, 2, 2), apply, native=False))


def said(apply: Callable[[], object]) -> str:
    """The sentence of a refusal."""
    with pytest.raises(ScheduleError) as error:
        apply()
    return str(error.value)


def test_refusals() -> None:
    s = Schedule(compiler.lower(matmul(3, 4, 5)))
    before, c = str(s.module), s.get_block("C")
    d = Schedule(compiler.lower(scaled(3, 4)))
    assert said(lambda: recipes.gebp(s, c, 4, 4, 4, 0, 2)) == "gebp: block 'C': mr=0 is not positive"
    assert said(lambda: recipes.gebp(s, c, 4, 4, 4, 2, 2, lanes=-1)) == "gebp: block 'C': lanes=-1 is not positive"
    reason = "gebp: block 'C': pack='abc' names other operands than a and b"
    assert said(lambda: recipes.gebp(s, c, 4, 4, 4, 2, 2, pack="abc")) == reason
    assert said(lambda: recipes.copy_in_vectors(s, c, 0)) == "copy_in_vectors: block 'C': lanes=0 is not positive"
    reason = "gebp: block 'D': it has 2 loops, not 3"
    assert said(lambda: recipes.gebp(d, d.get_block("D"), 4, 4, 4, 2, 2)) == reason
    assert str(s.module) == before


@pytest.mark.parametrize("family", FAMILIES)
def test_contiguous_is_what_build_does(family: str) -> None:
    program = find(f"{family}:{SMALL[family]}").function()
    schedule = Schedule(lower(program))
    for label in schedule.program.blocks:
        recipes.contiguous(schedule, schedule.get_block(label))
    module = lower(program)
    run(universe.context(), module, parse_passes("reorder-contiguous"))
    assert outline(read(find_function(module))) == outline(schedule.program)


@pytest.mark.parametrize(("depth", "extents"), [(32, [4, 2, 8, 16]), (12, [2, 12, 16])])
def test_an_operand_packed_before_all_is_read_by_rows(depth: int, extents: list[int]) -> None:
    A, B = te.placeholder((12, depth), name="A"), te.placeholder((depth, 32), name="B")
    s = Schedule(lower(te.function("f", [A, B], te.nn.matmul(A, B, name="C"))))
    tiles = recipes.GebpTiles(6, 1, depth, 2)
    copy = recipes.tiled_gebp(s, s.get_block("C"), tiles, first="b").pack_b
    assert copy is not None and [s.extent(loop) for loop in s.get_loops(copy)] == extents
    assert s.verify()
