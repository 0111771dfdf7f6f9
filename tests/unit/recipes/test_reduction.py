"""The rule for long reductions into few results: when it applies, that it is right and runs side by side."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.autotune.task import SearchTask
from compiler.recipes.rules import RULES
from compiler.schedule import Schedule
from compiler.space.derivation import preferred
from compiler.types.machines import MACHINES, Machine
from tests.programs import applied
from tests.programs import matmul as product

MACHINE = Machine("test", "", "", 2, 512, 32, 48 << 10, 1 << 20, 32 << 20)


def columns(n: int, k: int) -> te.Function:
    """The sum of each column."""
    a, r = te.placeholder((k, n), name="A"), te.reduce_axis(k, "k")
    return te.function("columns", [a], te.compute((n,), lambda i: te.sum(a[r, i], r), name="S"))


def rows(m: int, k: int) -> te.Function:
    """The variance of each row."""
    return applied(lambda x: te.nn.var(x, 1, name="V"), (m, k), name="rows")


def sketches(function: te.Function, threads: int) -> list[str]:
    task = SearchTask(function, threads=threads, machine=MACHINE)
    return [sketch.name for sketch in task.space.sketches]


def test_it_is_for_few_results_of_long_sums_on_several_threads() -> None:
    assert sketches(product(8, 16, 4096), 2)[:2] == ["C: in parts", "C: no sums in parts; C: gebp unpacked"]
    assert "C: in parts" not in sketches(product(8, 16, 4096), 1)
    assert "C: in parts" not in sketches(product(8, 16, 128), 2)
    assert "C: in parts" not in sketches(product(256, 256, 4096), 2)
    assert "C: in parts" not in sketches(product(1, 32, 4096), 2)  # each thread has results of its own
    assert sketches(columns(20, 5000), 2)[0] == "S: in parts"
    assert "V.mean.sum: in parts" in sketches(rows(8, 4096), 2)[0]
    assert not any("in parts" in sketch for sketch in sketches(rows(64, 4096), 2))


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (product(8, 12, 1000), lambda a, b: a @ b),
        (product(5, 3, 999), lambda a, b: a @ b),
        (product(1, 12, 777), lambda a, b: a @ b),
        (columns(20, 999), lambda a: a.sum(axis=0)),
    ],
)
def test_every_number_of_parts_is_right(function: te.Function, reference: object) -> None:
    task = SearchTask(function, threads=2)
    sketch = task.space.sketches[0]
    assert sketch.name.endswith("in parts") and sketch.sizes == (4,)
    for position in range(4):
        schedule = task.schedule_of(sketch.text((position,)))
        assert str(schedule.verify()) == "proved"
        assert [loop.label for loop in schedule.program.loops.values() if loop.kind == "parallel"] == ["r0.0"]
        kernel = compiler.build(schedule, threads=2)
        random = np.random.default_rng(position)
        inputs = [random.standard_normal(a.shape, dtype=np.float32) for a in kernel.arguments[:-1]]
        np.testing.assert_allclose(kernel(*inputs), reference(*inputs), rtol=1e-3, atol=1e-3)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("rows", "columns", "dtype"), [(1, 1000, "f32"), (1, 77, "i8"), (3, 100, "f32"), (4, 48, "f64")]
)
def test_positions_are_reduced_by_halves_of_vectors(rows: int, columns: int, dtype: str) -> None:
    """Ties go to the first position, and NaN wins, as in numpy."""
    a = te.placeholder((rows, columns), dtype, name="A")
    f = te.function("f", [a], te.nn.argmax(a, axis=1))
    scheduled = preferred(Schedule(compiler.lower(f)), RULES, MACHINES["avx2"]).draft.schedule
    kinds = [loop.kind for block in scheduled.program.blocks for loop in scheduled.program.enclosing(block)]
    assert kinds.count("vectorized") >= 3 and scheduled.verify()
    kernel = compiler.build(scheduled, threads=1)
    for seed in range(4):
        x = (
            np.random.default_rng(seed)
            .integers(0, 5, (rows, columns))
            .astype({"f32": np.float32, "f64": np.float64, "i8": np.int8}[dtype])
        )
        if dtype.startswith("f") and seed == 3:
            x[:, columns // 2 :: 7] = np.nan
        np.testing.assert_array_equal(kernel(x), np.argmax(x, axis=1))
