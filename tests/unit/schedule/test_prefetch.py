"""prefetch: results stay as they are whatever is asked for, replays, and what a later step makes of it is said."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.schedule import Handle, Schedule
from compiler.support.errors import LoweringError, ScheduleError
from tests import upstream
from tests.programs import sum_of_products
from tests.scheduled import check
from tests.upstream import Case, Failure

matmul = partial(sum_of_products, 9, 20, 12)


def panels(s: Schedule) -> list[Handle]:
    """k.0, i, j.0, k.1, j.1 with vectors along j.1."""
    i, j, k = s.get_loops(s.get_block("C"))
    k0, k1 = s.split(k, [None, 8])
    j0, j1 = s.split(j, [None, 4])
    s.reorder(k0, i, j0, k1, j1)
    s.vectorize(j1)
    return [k0, i, j0, k1, j1]


@pytest.mark.parametrize("buffer", ["A", "B", "C"])
@pytest.mark.parametrize("over", [None, 1, 2, 3])
@pytest.mark.parametrize("loop", [0, 1, 2, 3])
def test_results_stay(loop: int, over: int | None, buffer: str) -> None:
    if over is not None and over <= loop:
        return

    def apply(s: Schedule) -> None:
        loops = panels(s)
        s.prefetch(loops[loop], buffer, 2, None if over is None else loops[over])

    done = check(matmul(), apply)
    assert "memref.prefetch" in compiler.build(done).text("low")


def test_upstream_takes_the_same_text() -> None:
    if upstream.missing():
        pytest.skip(upstream.missing())
    f = matmul()
    s = Schedule(compiler.lower(f))
    loops = panels(s)
    s.prefetch(loops[0], "B", 1, over=loops[1])
    s.prefetch(loops[3], "A", 4)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, t.shape).astype(np.float32) for t in f.inputs)
    (actual,) = upstream.run([Case(compiler.build(s).text("low"), "mm", [a, b], [((9, 12), "f32")])])
    assert not isinstance(actual, Failure), str(actual)
    np.testing.assert_array_equal(actual[0], a @ b)


def test_the_innermost_accumulator_stays_in_a_register() -> None:
    s = Schedule(compiler.lower(matmul()))
    loops = panels(s)
    s.prefetch(loops[3], "C", 1)
    s.prefetch(loops[3], "A", 1)
    inner = compiler.build(s).text("low").split("scf.for %k.1")[1].split("scf.yield")[0]
    assert inner.count("memref.prefetch %C") == 2
    assert "%C" not in "".join(line for line in inner.splitlines() if "prefetch" not in line).split("iter_args")[1]


def test_a_split_of_the_outer_loop_is_said() -> None:
    s = Schedule(compiler.lower(matmul()))
    loops = panels(s)
    s.prefetch(loops[0], "B", 1, over=loops[1])
    s.split(loops[0], [None, 2])
    with pytest.raises(LoweringError, match=r"loop 'i' prefetches for loop 'k\.0', which is not around it"):
        compiler.build(s)


def test_over_a_loop_that_is_gone() -> None:
    s = Schedule(compiler.lower(matmul()))
    loops = panels(s)
    s.split(loops[1], [None, 2])
    with pytest.raises(ScheduleError, match="prefetch"):
        s.prefetch(loops[0], "B", 1, over=loops[1])


def test_scalars_and_lanes() -> None:
    """A buffer without dimensions, and a loop inside a vectorized one."""
    a, r = te.placeholder((40,), name="A"), te.reduce_axis(40, "k")
    total = te.function("total", [a], [te.compute((), lambda: te.sum(a[r], axis=r), name="C")])

    def whole(s: Schedule) -> None:
        (k,) = s.get_loops(s.get_block("C"))
        s.prefetch(k, "C", 1)
        s.prefetch(k, "A", 8)

    check(total, whole)

    def lanes(s: Schedule) -> None:
        _, j, k = s.get_loops(s.get_block("C"))
        s.vectorize(j)
        for buffer in "ABC":
            s.prefetch(k, buffer, 1)

    check(matmul(), lanes)
