"""Scripts that random search once found to go wrong: each is refused now, or right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.errors import ScheduleError
from compiler.schedule import Handle, Schedule
from tests.schedules import agree, lowered, mm_exp_mm


def loop(s: Schedule, block: str, label: str) -> Handle:
    return next(h for h in s.get_loops(s.get_block(block)) if s.label(h) == label)


def row_sums(columns: int = 3) -> te.Function:
    a, r = te.placeholder((4, columns), name="A"), te.reduce_axis(columns, "r")
    return te.function("f", [a], [te.compute((4,), lambda i: te.sum(a[i, r], axis=r), name="C")])


def doubled() -> te.Function:
    a = te.placeholder((6, 5), name="A")
    return te.function("f", [a], [te.compute((6, 5), lambda i, j: a[i, j] * 2, name="C")])


def shifted(both: bool) -> te.Function:
    a = te.placeholder((4, 5), name="A")
    x = te.compute((4, 5), lambda i, j: a[i, j] * 2, name="X")
    c = te.compute((4, 5), lambda i, j: x.padded(0)[i, j - 2] + (x[i, j] if both else 1), name="C")
    return te.function("f", [a], [c])


def chain() -> te.Function:
    a = te.placeholder((5,), name="A")
    x = te.compute((5,), lambda i: a[i] * 2, name="X")
    y = te.compute((5,), lambda i: x[i] + 1, name="Y")
    return te.function("f", [a], [te.compute((5,), lambda i: y.padded(0)[i - 2] + y[i], name="C")])


def rfactor_of_a_guarded_loop(s: Schedule) -> None:
    s.split(loop(s, "C", "r"), [1, 5])
    s.rfactor(s.get_block("C"), loop(s, "C", "r.1"))


def fuse_after_rfactor(s: Schedule) -> None:
    s.split(loop(s, "C", "r"), [1, 5, 4])
    s.rfactor(s.get_block("C"), loop(s, "C", "r.1"))
    s.fuse(loop(s, "C.rf", "r.1"), loop(s, "C.rf", "r.2"))


def compute_partial_results_at(s: Schedule) -> None:
    s.rfactor(s.get_block("C"), loop(s, "C", "r"))
    s.compute_at(s.get_block("C.rf"), loop(s, "C", "r"))


def decompose_partial_results(s: Schedule) -> None:
    s.split(loop(s, "C", "r"), [None, 3])
    s.rfactor(s.get_block("C"), loop(s, "C", "r.1"))
    s.decompose_reduction(s.get_block("C.rf"), loop(s, "C.rf", "i"))


def copy_out_inwards(s: Schedule) -> None:
    i, j = s.get_loops(s.get_block("C"))
    _, out = s.stage(i, "C")
    s.reverse_compute_at(out, j)


def consumer_of_a_shift(s: Schedule) -> None:
    s.reverse_compute_at(s.get_block("C"), loop(s, "X", "i"))


def target_in_a_loop(s: Schedule) -> None:
    s.split(loop(s, "C", "i"), [None, 4, 3])
    s.compute_at(s.get_block("Y"), loop(s, "C", "i.0"))
    s.reverse_inline(s.get_block("Y"))


def stage_with_the_init_outside(s: Schedule) -> None:
    i, r = s.get_loops(s.get_block("C"))
    s.reorder(r, i)
    s.stage(i, "C")


def partition_of_a_guarded_reduction(s: Schedule) -> None:
    s.split(loop(s, "C", "r"), [None, 4])
    s.partition(loop(s, "C", "r.1"), 1)


@pytest.mark.parametrize(
    ("function", "script"),
    [
        (row_sums(), rfactor_of_a_guarded_loop),
        (row_sums(), fuse_after_rfactor),
        (row_sums(), compute_partial_results_at),
        (row_sums(6), decompose_partial_results),
        (doubled(), copy_out_inwards),
        (shifted(True), consumer_of_a_shift),
        (shifted(False), consumer_of_a_shift),
        (chain(), target_in_a_loop),
        (row_sums(), stage_with_the_init_outside),
        (row_sums(9), partition_of_a_guarded_reduction),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_refused_or_right(function: te.Function, script: Callable[[Schedule], None]) -> None:
    s = Schedule(lowered(function))
    try:
        script(s)
    except ScheduleError as error:
        assert len(str(error)) > 20
    assert agree(s.program, function)
    assert s.verify().answer == "proved"


def test_a_number_that_comes_back_is_a_new_loop() -> None:
    s = Schedule(lowered(mm_exp_mm()))
    copy = s.cache_write(s.get_block("C"))
    old = s.get_loops(copy)[-1]
    s.inline(copy)
    _, inner = s.split(s.get_loops(s.get_block("F"))[0], [None, 4])
    s.unroll(inner)
    with pytest.raises(ScheduleError, match="consumed by 'inline'"):
        s.unroll(old)


def test_conditional_reads_at_quotients_and_remainders() -> None:
    """LLVM 22.1 vectorizes such a loop wrongly: from the second vector on it reads from the start of the buffer."""
    text = """
    func.func @f(%A: memref<3x9xf32>, %B: memref<3x9xf32>) attributes {outputs = 1 : i64} {
      loop.for "i" %i = 27 {
        loop.block "B" [i = 3 at %i floordiv 9, j = 9 at %i mod 9]
            (%a = %A[i, j - 1] where (j - 1 >= 0) else 0.0 : memref<3x9xf32>, %c = %A[i, j] : memref<3x9xf32>,
             %b = %A[i, j + 1] where (7 - j >= 0) else 0.0 : memref<3x9xf32>) -> (%B[i, j] : memref<3x9xf32>) {
          %0 = arith.addf %a, %b : f32
          %1 = arith.addf %0, %c : f32
          loop.yield %1 : f32
        }
      }
      func.return
    }"""
    a = np.arange(27, dtype=np.float32).reshape(3, 9)
    padded = np.pad(a, [(0, 0), (1, 1)])
    np.testing.assert_array_equal(compiler.build(text)(a), padded[:, :-2] + padded[:, 2:] + a)
