"""Recurrences: blocks that read their own results of an earlier iteration, proved, moved, and stored in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from xdsl.parser import Parser

from compiler import universe
from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.verify.prove import verify_schedule
from compiler.interpret.loop import run
from compiler.program import body
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError

MAXIMA = """
func.func @maxima(%A: memref<4x6xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  %M = loop.alloc "M" : memref<4x6xf32>
  loop.for "i" %i = 4 {
    loop.for "t" %t = 6 {
      loop.block "M" [i = 4 at %i, t = 6 at %t]
          (%m = %M[i, t - 1] where (t - 1 >= 0) else -2.0 : memref<4x6xf32>, %a = %A[i, t] : memref<4x6xf32>)
          -> (%M[i, t] : memref<4x6xf32>) origin "M"[i, t] {
        %c = arith.constant 0.5 : f32
        %0 = arith.mulf %m, %c : f32
        %1 = arith.addf %0, %a : f32
        loop.yield %1 : f32
      }
    }
  }
  loop.for "j" %j = 4 {
    loop.block "Y" [j = 4 at %j] (%m = %M[j, 5] : memref<4x6xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      loop.yield %m : f32
    }
  }
  func.return
}
"""


def maxima(old: str = "", new: str = "") -> Schedule:
    return Schedule(Parser(universe.context(), MAXIMA.replace(old, new) if old else MAXIMA).parse_module())


def check(s: Schedule) -> None:
    """The schedule is proved, and computes M[t] = M[t - 1] / 2 + A[t] from -2 on."""
    assert str(s.verify()) == "proved"
    a, y = np.random.default_rng(0).random((4, 6), np.float32), np.empty(4, np.float32)
    run(s.module, [a, y])
    wanted = np.full(4, -2.0, np.float32)
    for t in range(6):
        wanted = wanted * np.float32(0.5) + a[:, t]
    np.testing.assert_array_equal(y, wanted)


def in_place(s: Schedule) -> None:
    """Run all rows in one loop over t, with one element of M for each."""
    i, t = s.get_loops("M")
    s.reorder(t, i)
    s.transform_layout(s.get_block("M"), "M", lambda i, t: (i,))


def test_former_results_may_be_overwritten() -> None:
    s = maxima()
    in_place(s)
    assert s.program.buffers["M"].shape == (4,)
    check(s)


def test_a_reader_takes_all_iterations_with_it() -> None:
    s = maxima()
    s.compute_at(s.get_block("M"), s.get_loops("Y")[0])
    assert s.program.buffers["M"].shape == (1, 6)
    check(s)


def test_the_first_value_is_written_before_the_loop() -> None:
    s = maxima()
    in_place(s)
    s.decompose_reduction(s.get_block("M"), s.get_loops("M")[0])
    assert not s.program.blocks["M"].reads[0].where and "M.init" in s.program.blocks
    check(s)


ACCEPTED: dict[str, Callable[[Schedule], object]] = {
    "parallel rows": lambda s: s.parallel(s.get_loops("M")[0]),
    "vectors of rows": lambda s: [s.reorder(*s.get_loops("M")[::-1]), s.vectorize(s.get_loops("M")[1])],
    "cut": lambda s: s.split(s.get_loops("M")[1], [None, 4]),
    "the first apart": lambda s: s.partition(s.get_loops("M")[1], 1),
    "results as they are made": lambda s: s.reverse_compute_at(s.get_block("Y"), s.get_loops("M")[0]),
    "a copy of each result": lambda s: s.cache_write(s.get_block("M"), "local"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_other_steps(name: str) -> None:
    s = maxima()
    ACCEPTED[name](s)
    check(s)


REFUSED: dict[str, tuple[Callable[[Schedule], object], str]] = {
    "backwards": (lambda s: s.reverse(s.get_loops("M")[1]), "reads M"),
    "concurrent": (lambda s: s.parallel(s.get_loops("M")[1]), "iterations of loop 't' depend on each other"),
    "inlined": (lambda s: s.inline(s.get_block("M")), "reads elements of 'M' that it has not written"),
    "one place for all rows": (
        lambda s: s.transform_layout(s.get_block("M"), "M", lambda i, t: (t,)),
        "to the place of",
    ),
    "a first value in each place": (
        lambda s: s.decompose_reduction(s.get_block("M"), s.get_loops("M")[1]),
        "it does not read what it overwrites in 'M' in all iterations",
    ),
    "a first value of each row": (
        lambda s: [in_place(s), s.decompose_reduction(s.get_block("M"), s.get_loops("M")[1])],
        "it does not read what it overwrites in 'M' in all iterations",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_steps_that_are_refused(name: str) -> None:
    step, reason = REFUSED[name]
    with pytest.raises(ScheduleError, match=reason):
        step(maxima())


def test_a_first_value_needs_its_buffer_beside_the_loop() -> None:
    s = maxima()
    in_place(s)
    s.split(s.get_loops("M")[0], [2, 3])
    with pytest.raises(ScheduleError, match="is not conditional on the first iteration of the loop alone"):
        s.decompose_reduction(s.get_block("M"), s.get_loops("M")[1])


FAULTS = {
    "two iterations back": ("%M[i, t - 1] where (t - 1 >= 0)", "%M[i, t - 2] where (t - 2 >= 0)"),
    "another first value": ("else -2.0", "else 2.0"),
    "another row": ("%M[i, t - 1] where", "%M[3 - i, t - 1] where"),
    "the last but one": ("%M[j, 5]", "%M[j, 4]"),
    "a condition too late": ("where (t - 1 >= 0)", "where (t - 2 >= 0)"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_refuted(name: str) -> None:
    assert str(verify_schedule(maxima(*FAULTS[name]).program, maxima().program)).startswith("refuted")


def test_a_first_value_that_is_missing_is_refuted() -> None:
    s = maxima()
    in_place(s)
    s.decompose_reduction(s.get_block("M"), s.get_loops("M")[0])
    init = s.program.blocks["M.init"]
    assert isinstance(init.body[0], body.Apply)
    without = s.program.replaced("M.init", lambda _: []).pruned()
    assert str(verify_schedule(without, maxima().program)).startswith("refuted")
    short = s.program.replaced(
        "M.init", lambda _: [replace(init, guard=(Condition(lin.constant(2) - init.bindings[0]),))]
    )
    assert str(verify_schedule(short, maxima().program)).startswith("refuted")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%M[i, t - 1] where (t - 1 >= 0)", "%M[i, t + 1] where (4 - t >= 0)"),
        ("%M[i, t - 1] where (t - 1 >= 0)", "%M[i, 5 - t] where (t - 1 >= 0)"),
        ("%M[i, t - 1] where (t - 1 >= 0)", "%M[i - 1, t - 1] where (t - 1 >= 0, i - 1 >= 0)"),
        ("t = 6 at %t]", "t = 6 at 5 - %t]"),
    ],
)
def test_an_original_that_reads_what_is_not_there_is_undecided(old: str, new: str) -> None:
    s = maxima(old, new)
    assert str(s.verify()) == "undecided: block 'M' of the original reads 'M' before it is finished"
