"""Nests that share out fused loops, with plain loops in their place: the same instances in the same order."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as points_of

import pytest

from compiler import recipes, te
from compiler.affine import linear as lin
from compiler.analysis.verify.prove import verify_schedule
from compiler.analysis.verify.unflatten import unflattened, unfused
from compiler.dialects.functions import find_function
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.program.read import read
from compiler.program.tree import Block, Loop, Program, blocks_in
from compiler.schedule import Schedule
from tests.gpu_schedules import product


def _fetch(rows: int, columns: int, threads: int, vector: int = 1) -> Schedule:
    """A product whose operand A is fetched by so many threads, rows by columns of it at a time."""
    s = Schedule(lower(product(3 * rows, 4, 2 * columns)))
    block = s.get_block("C")
    m, n, k = s.get_loops(block)
    m0, m1 = s.split(m, [None, rows])
    k0, k1 = s.split(k, [None, columns])
    s.reorder(m0, k0, m1, n, k1)
    recipes.cooperative_fetch(s, block, "A", k0, threads, vector)
    return s


def _instances(program: Program, label: str) -> list[tuple[int, ...]]:
    """The axes of a block at each of its instances, in the order of the program."""
    loops, block = program.enclosing(label), program.blocks[label]
    collected = []
    for point in points_of(*(range(loop.extent) for loop in loops)):
        values = {loop.number: value for loop, value in zip(loops, point, strict=True)}
        if all(lin.evaluate(condition.form, values) >= 0 for condition in block.guard):
            collected.append(tuple(lin.evaluate(form, values) for form in block.bindings))
    return collected


@pytest.mark.parametrize(
    ("rows", "columns", "threads", "vector"),
    [(8, 9, 7, 1), (4, 18, 12, 1), (5, 3, 64, 1), (6, 4, 5, 2), (2, 8, 3, 4), (1, 10, 4, 1)],
)
def test_the_same_instances_in_the_same_order(rows: int, columns: int, threads: int, vector: int) -> None:
    s = _fetch(rows, columns, threads, vector)
    plain = unflattened(s.program)
    label = "A.shared"
    assert _instances(plain, label) == _instances(s.program, label) != []
    assert not any(isinstance(atom, lin.Quotient) for form in plain.blocks[label].bindings for atom, _ in form.terms), (
        "no loop is divided any more"
    )
    assert [loop.label for loop in plain.enclosing("C")] == [loop.label for loop in s.program.enclosing("C")]
    assert str(s.verify()) == "proved"


def test_other_orders_stay_as_they_are() -> None:
    """By columns instead of rows, and what is needed only in part."""
    s = Schedule(lower(product(6, 6, 4)))
    m, n, k = s.get_loops(s.get_block("C"))
    s.reorder(n, m, k)
    fused = s.fuse(n, m)
    s.split(fused, [None, 5])
    assert unflattened(s.program) == s.program


def test_only_what_is_divided_changes() -> None:
    s = Schedule(lower(product(8, 8, 8)))
    loops = s.get_loops(s.get_block("C"))
    for loop in loops:
        s.split(loop, [None, 4])
    assert unflattened(s.program) == s.program
    assert all(isinstance(node, Loop) for node in s.program.body) and len(blocks_in(*s.program.body)) == 1


def test_a_wrong_fetch_is_still_refuted() -> None:
    s = _fetch(8, 9, 7)
    original = read(find_function(s.original, None))

    def elsewhere(block: Block) -> Block:
        """A copy that reads the first column only."""
        access = block.reads[0]
        index = (access.index[0], access.index[1].scaled(0))
        return replace(block, reads=(replace(access, index=index),))

    def shorter(block: Block) -> Block:
        """A copy that leaves the last element out."""
        return replace(block, guard=tuple(replace(c, form=c.form - lin.constant(1)) for c in block.guard))

    for change in (elsewhere, shorter):
        wrong = s.program.map_blocks(lambda b, change=change: change(b) if b.label == "A.shared" else b)  # type: ignore[misc]
        assert verify_schedule(wrong, original).answer == "refuted"


def test_a_reduction_stays_as_it_is() -> None:
    """Its init stands elsewhere, and would move: here all sums go into one cell, which is refuted."""
    s = Schedule(lower(product(3, 2, 6)))
    m, n, k = s.get_loops(s.get_block("C"))
    s.reorder(n, m, k)
    s.fuse(m, k)
    assert unflattened(s.program) == s.program

    def elsewhere(block: Block) -> Block:
        index = (block.writes[0].index[0].scaled(0), block.writes[0].index[1])
        return replace(block, writes=(replace(block.writes[0], index=index),))

    wrong = s.program.map_blocks(elsewhere)
    assert verify_schedule(wrong, read(find_function(s.original, None))).answer == "refuted"


@pytest.mark.parametrize("sizes", [(4, 6, 10), (3, 5, 8), (2, 6, 4)])
def test_loops_that_are_divided_become_two(sizes: tuple[int, int, int]) -> None:
    s = Schedule(lower(product(*sizes)))
    m, n, k = s.get_loops(s.get_block("C"))
    out = s.cache_write(s.get_block("C"))
    s.fuse(m, n)
    outer, _ = s.split(k, [None, 2])
    s.fuse(*s.get_loops(out))
    plain = unfused(s.program)
    for label in ("C", "C.local"):
        assert _instances(plain, label) == _instances(s.program, label) != []
        forms = plain.blocks[label].bindings
        assert not any(isinstance(atom, lin.Quotient) for form in forms for atom, _ in form.terms)
    assert s.label(outer) == "k.0" and unfused(plain) == plain
    assert str(s.verify()) == "proved"


def test_a_loop_that_is_partly_a_reduction_stays_while_an_init_depends_on_it() -> None:
    s = Schedule(lower(product(4, 4, 6)))
    _, n, k = s.get_loops(s.get_block("C"))
    s.fuse(n, k)
    assert unfused(s.program) == s.program
    assert str(s.verify()) == "proved"


def test_unequal_tiles_on_many_blocks_are_proved() -> None:
    """Fused blocks and fused warps, of which isl alone made numbers that it could not get rid of."""
    a, b = te.placeholder((4096, 4096), "f16", name="A"), te.placeholder((4096, 4096), "f16", name="B")
    s = Schedule(lower(te.function("mm", [a, b], [te.nn.matmul(a, b, dtype="f32", name="C")])))
    recipes.tile_on_warps(s, s.get_block("C"), None, recipes.WarpTiles((2, 2), (2, 8), 2))
    assert str(s.verify()) == "proved"


ROWS = """
builtin.module {
  func.func @f(%A: memref<2x3xf32>, %C: memref<2xf32>) attributes {outputs = 1 : i64} {
    loop.for "i" %i = 2 {
      loop.for "k" %k = LENGTH {
        loop.block "C" [i = 2 at %i, reduce k = 3 at PLACE] combine [add] (%a = %A[i, k] : memref<2x3xf32>)
            -> (%C[i] : memref<2xf32>) origin "C"[i, k] {
          loop.yield %a : f32
        }
      }
    }
    func.return
  }
}
"""
TWICE = """
builtin.module {
  func.func @f(%A: memref<2x3xf32>, %C: memref<2xf32>) attributes {outputs = 1 : i64} {
    loop.for "l" %l = 12 {
      %B = loop.alloc "B" : memref<2x3xf32>
      loop.block "B" [i = 2 at (%l floordiv 3) mod 2, k = 3 at %l mod 3] (%a = %A[i, k] : memref<2x3xf32>)
          -> (%B[i, k] : memref<2x3xf32>) {
        loop.yield %a : f32
      }
      loop.block "C" [i = 2 at (%l floordiv 3) mod 2, reduce k = 3 at %l mod 3] combine [add]
          (%a = %B[i, k] : memref<2x3xf32>) -> (%C[i] : memref<2xf32>) origin "C"[i, k] {
        loop.yield %a : f32
      }
    }
    func.return
  }
}
"""


def _program(text: str) -> Program:
    return read(find_function(parse(text), None))


@pytest.mark.parametrize(
    "wrong", [ROWS.replace("LENGTH", "6").replace("PLACE", "%k mod 3"), TWICE], ids=["a loop", "another block's loop"]
)
def test_a_sum_is_not_cleared_in_each_half_of_a_loop(wrong: str) -> None:
    """The init stands before the loop of a reduction: two loops for it must not hide that all is added twice."""
    original = _program(ROWS.replace("LENGTH", "3").replace("PLACE", "%k"))
    verdict = verify_schedule(_program(wrong), original)
    assert str(verdict) == "refuted: a contribution to 'C' occurs twice, by block 'C'"
