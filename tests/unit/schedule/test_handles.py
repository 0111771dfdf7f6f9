"""Handles on loops follow a block that moves: see `State`."""

import copy

import pytest

from strata import Schedule, te
from strata.errors import ScheduleError
from strata.schedule import outline


def doubled(rows: int, columns: int) -> te.Function:
    X = te.placeholder((rows, columns), name="X")
    T = te.compute((rows, columns), lambda i, j: X[i, j] * 2.0, name="T")
    return te.function("doubled", [X], te.compute((rows, columns), lambda i, j: T[i, j] + 1.0, name="S"))


def replays(s: Schedule, program: te.Function) -> bool:
    return outline(Schedule(program).apply(str(s)).program) == outline(s.program)


def test_a_handle_follows_its_loop_into_another_nest() -> None:
    program = doubled(8, 16)
    s = Schedule(program)
    i, (_, tj) = s.get_loops("S")[0], s.get_loops("T")
    s.compute_at("T", i)
    assert s.label(tj) == "T.j" and s.extent(tj) == 16
    s.vectorize(tj)
    assert "T.j = 16 vectorized" in outline(s.program)
    assert replays(s, program) and s.verify()


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
def test_one_script_for_every_size_of_a_tile(rows: int) -> None:
    """The loop over one row of a tile is gone, and its handle is used all the same."""
    program = doubled(8, 16)
    s = Schedule(program)
    i, _ = s.get_loops("S")
    ti, tj = s.get_loops("T")
    outer, _ = s.split(i, [None, rows])
    s.compute_at("T", outer)
    assert s.extent(ti) == rows
    _, lanes = s.split(tj, [None, 8])
    s.reorder(ti, lanes)
    s.unroll(ti)
    s.vectorize(lanes)
    assert replays(s, program) and s.verify()


def test_a_consumer_that_moves_keeps_its_handles() -> None:
    program = doubled(8, 16)
    s = Schedule(program)
    (ti, _), (si, sj) = s.get_loops("T"), s.get_loops("S")
    s.reverse_compute_at("S", ti)
    assert (s.extent(si), s.extent(sj)) == (1, 16)
    s.vectorize(sj)
    assert replays(s, program) and s.verify()


def test_a_loop_of_one_iteration_moves_on_with_its_block() -> None:
    program = doubled(8, 16)
    s = Schedule(program)
    si, sj = s.get_loops("S")
    ti, tj = s.get_loops("T")
    s.compute_at("T", si)
    s.reorder(ti, tj)
    assert "T.i = 1" in outline(s.program) or "\n  i" in outline(s.program)
    s.compute_at("T", sj)
    assert s.extent(ti) == s.extent(tj) == 1
    assert replays(s, program) and s.verify()


def test_the_loops_of_a_split_axis_are_consumed() -> None:
    """Which of the two the new loop would be is not said."""
    s = Schedule(doubled(8, 16))
    i, _ = s.get_loops("S")
    _, tj = s.get_loops("T")
    outer, _ = s.split(tj, [None, 4])
    s.compute_at("T", i)
    with pytest.raises(ScheduleError, match="consumed by 'compute_at'"):
        s.vectorize(outer)


def test_a_loop_of_one_iteration_is_gone_with_its_block() -> None:
    X, Y = te.placeholder((16,), name="X"), te.placeholder((8, 16), name="Y")
    T = te.compute((16,), lambda i: X[i] * 2.0, name="T")
    s = Schedule(te.function("rows", [X, Y], te.compute((8, 16), lambda o, i: Y[o, i] + T[i], name="S")))
    unit = s.add_unit_loop("T.i")
    s.compute_at("T", "S.o")
    assert s.extent(unit) == 1
    s.inline("T")
    with pytest.raises(ScheduleError, match="consumed by 'inline'"):
        s.unroll(unit)


def test_a_refused_step_puts_no_loop_into_the_program() -> None:
    s = Schedule(doubled(8, 16))
    i, j = s.get_loops("S")
    ti, _ = s.get_loops("T")
    s.compute_at("T", i)
    before, text = s.program, str(s)
    with pytest.raises(ScheduleError, match="perfectly nested"):
        s.fuse(ti, j)
    assert s.program is before and str(s) == text and s.extent(ti) == 1
    forked, handles = s.fork()
    forked.unroll(handles[ti])
    assert s.program is before and "unrolled" in outline(forked.program)
    assert outline(copy.copy(s).program) == outline(before)
