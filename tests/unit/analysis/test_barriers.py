"""Where threads wait for each other: as few barriers as the dependences need, and why each stands."""

from __future__ import annotations

import pytest

import compiler
from compiler import te
from compiler.analysis.barriers import barriers
from compiler.program.tree import Loop, Program
from compiler.schedule import Schedule
from compiler.support.errors import LoweringError
from strata.passes import lower_to_kernels, parse
from tests.gpu_schedules import product, tiled


def named(program: Program) -> dict[str, str]:
    """The barriers of all kernels, by the name of the node before which they stand."""
    collected = {}
    for node in program.body:
        assert isinstance(node, Loop)
        for key, barrier in barriers(program, node).items():
            collected[program.loops[key].label if isinstance(key, int) else str(key)] = str(barrier)
    return collected


def test_a_tiled_product_needs_two() -> None:
    """One after the fetch, one before the next fetch; none for what each thread keeps."""
    assert named(tiled(product()).program) == {
        "m.1": "C[0,2,k=0] reads A.shared[0,0], which another thread writes in A.shared[0,0]",
        "ax0_ax1.0": "A.shared[1,8] overwrites A.shared[1,0], which another thread reads in C[1,0,k=0]",
    }


def test_one_round_needs_one() -> None:
    assert list(named(tiled(product(16, 16, 8)).program)) == ["m.1"]


def test_two_halves_need_one_a_round() -> None:
    """While one half is read the other is written."""
    s = tiled(product(16, 16, 32))
    read = {label: s.get_block(label) for label in ("A.shared", "B.shared")}
    for block in read.values():
        s.double_buffer(block)
    before = named(s.program)
    assert len(before) <= 2


def rows(shared: bool) -> Schedule:
    """Y[i, j] = X[i, 31 - j] + 1, through a buffer that is written by one thread and read by another."""
    x = te.placeholder((4, 32), name="X")
    t = te.compute((4, 32), lambda i, j: x[i, j] + 1.0, name="T")
    y = te.compute((4, 32), lambda i, j: t[i, 31 - j] if shared else t[i, j], name="Y")
    s = Schedule(compiler.lower(te.function("rows", [x], y)))
    i, j = s.get_loops(s.get_block("Y"))
    s.compute_at(s.get_block("T"), i)
    s.set_scope(s.get_block("T"), "shared")
    s.bind(s.get_loops(s.get_block("T"))[-1], "thread_x")
    s.bind(j, "thread_x")
    s.bind(i, "block_x")
    return s


def test_copies_that_nobody_waits_for_need_one_even_for_their_own_thread() -> None:
    s = rows(shared=False)
    s.annotate(s.get_loops(s.get_block("T"))[-1], "async", 1)
    (said,) = named(s.program).values()
    assert said.startswith("Y[0,0] reads T[0,0]")


def test_what_a_thread_reads_of_itself_needs_none() -> None:
    assert named(rows(shared=False).program) == {}
    (said,) = named(rows(shared=True).program).values()
    assert said.startswith("Y[0,31] reads T[0,0], which another thread writes in T[0,0]")


TOGETHER = """
builtin.module {
  func.func @f(%X: memref<2x32xf32>, %S: memref<2x32xf32>, %D: memref<2x32xf32>) attributes {outputs = 2 : i64} {
    loop.for "b" %b = 1 block_x {
      loop.for "y" %y = 2 thread_y {
        loop.for "a" %a = 32 thread_x {
          loop.block "S" [i = 2 at %y, j = 32 at %a] (%x = %X[i, j] : memref<2x32xf32>)
              -> (%S[i, j] : memref<2x32xf32>) {
            loop.yield %x : f32
          }
        }
        loop.for "c" %c = 32 thread_x {
          loop.block "D" [i = 2 at %y, j = 32 at %c] (%x = %S[i, PLACE] : memref<2x32xf32>)
              -> (%D[i, j] : memref<2x32xf32>) {
            loop.yield %x : f32
          }
        }
      }
    }
    func.return
  }
}
"""


def test_blocks_inside_the_same_thread_loops_need_no_barrier_or_are_refused() -> None:
    own = parse(TOGETHER.replace("PLACE", "j"))
    assert lower_to_kernels(own) is not None, "each thread reads what it has written"
    with pytest.raises(LoweringError, match="'S' and 'D' stand inside the same thread loops, where nobody waits"):
        lower_to_kernels(parse(TOGETHER.replace("PLACE", "-j + 31")))
