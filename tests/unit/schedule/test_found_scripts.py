"""Scripts that random search once found to go wrong: each is refused now, or right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.schedule import Handle, Schedule
from compiler.support.errors import ScheduleError
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


def pair() -> te.Function:
    """U = 2 A + 1, through a temporary T."""
    a = te.placeholder((4, 4), name="A")
    t = te.compute((4, 4), lambda i, j: a[i, j] * 2.0, name="T")
    return te.function("f", [a], [te.compute((4, 4), lambda i, j: t[i, j] + 1.0, name="U")])


def padded_under(*places: Callable[..., tuple[Any, ...]], loop_number: int = 1) -> Callable[[Schedule], None]:
    """Layouts of T, then a split of one of its loops that runs over."""

    def padded_under_layouts(s: Schedule) -> None:
        t = s.get_block("T")
        for place in places:
            s.transform_layout(t, "T", place)
        s.split(s.get_loops(t)[loop_number], [None, 3], tail="pad")

    return padded_under_layouts


def padded_under_swizzle(s: Schedule) -> None:
    t = s.get_block("T")
    s.swizzle(t, 4)
    s.split(s.get_loops(t)[1], [None, 3], tail="pad")


def padded_flat_columns_first(s: Schedule) -> None:
    t = s.get_block("T")
    i, j = s.get_loops(t)
    s.reorder(j, i)
    s.transform_layout(t, "T", lambda i, j: (i * 4 + j,))
    s.split(j, [None, 3], tail="pad")


def reversed_chain() -> te.Function:
    a = te.placeholder((6,), name="A")
    t = te.compute((6,), lambda i: a[i] * 2.0, name="T")
    u = te.compute((6,), lambda i: t[i] + 1.0, name="U")
    return te.function("f", [a], [te.compute((6,), lambda i: u[5 - i], name="V")])


def padded_round_of_two_halves(s: Schedule) -> None:
    u = s.get_block("U")
    s.compute_at(s.get_block("T"), s.get_loops(u)[0])
    s.split(s.get_loops(u)[0], [6, None], tail="pad")
    s.double_buffer(s.get_block("T"))
    s.split(s.get_loops(u)[1], [3, None], tail="pad")


def halved() -> te.Function:
    a = te.placeholder((4,), name="A")
    return te.function("f", [a], [te.compute((4,), lambda i: a[i] * 2.0, name="T")])


def stage_of_a_stage(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("T"))
    outer, inner = s.split(i, [2, 2])
    s.reorder(inner, outer)
    s.stage(inner, "T")
    s.stage(inner, "T", "shared")


def sums() -> te.Function:
    b, k = te.placeholder((4, 6), name="B"), te.reduce_axis(6, "k")
    return te.function("g", [b], [te.compute((4,), lambda i: te.sum(b[i, k], axis=k), name="C")])


def staged_partial_sums(first: int, second: int, again: str) -> Callable[[Schedule], None]:
    """Partial sums in a window at one loop, and in one of those, or of the target, at another."""

    def stage_of_staged_sums(s: Schedule) -> None:
        block = s.get_block("C")
        i, k = s.get_loops(block)
        outer, inner = s.split(k, [None, 2])
        s.reorder(outer, i, inner)
        s.decompose_reduction(block, outer)
        s.stage((outer, i)[first], "C")
        s.stage((outer, i)[second], again, "shared")

    return stage_of_staged_sums


def rest_of_a_consumer(s: Schedule) -> None:
    s.partition(s.get_loops(s.get_block("U"))[0], 3)
    s.reverse_compute_at(s.get_block("U.1"), s.get_loops(s.get_block("T"))[0])


def two() -> te.Function:
    a = te.placeholder((4, 6), name="A")
    made = te.compute((4,), lambda i: (a[i, 0] * 2.0, a[i, 1] + 1.0), name="T")
    return te.function("f", [a], list(made))


def inlined_into_padding(s: Schedule) -> None:
    s.cache_write(s.get_block("T"))
    s.cache_write(s.get_block("T"))
    s.pack(s.get_block("T.0.local"), "T.0.local", [3])
    s.inline(s.get_block("T.0.local.local"))


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
        (pair(), padded_under(lambda i, j: (i, (i + j) % 4))),
        (pair(), padded_under(lambda i, j: (i, (3 * j) % 4))),
        (pair(), padded_under(lambda i, j: (i * 4 + j,))),
        (pair(), padded_under(lambda i, j: (i * 4 + j,), loop_number=0)),
        (pair(), padded_under(lambda i, j: (j, 3 - i), loop_number=0)),
        (pair(), padded_under_swizzle),
        (pair(), padded_flat_columns_first),
        (reversed_chain(), padded_round_of_two_halves),
        (halved(), stage_of_a_stage),
        (sums(), staged_partial_sums(0, 0, "C")),
        (sums(), staged_partial_sums(0, 1, "C.local")),
        (sums(), staged_partial_sums(1, 0, "C")),
        (pair(), rest_of_a_consumer),
        (two(), inlined_into_padding),
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
