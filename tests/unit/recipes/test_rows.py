"""The rule for what works along rows: what it takes into its loops, proved and right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.analysis.rows import rows_of
from compiler.analysis.verify.prove import verify_schedule
from compiler.autotune.task import SearchTask
from compiler.driver.reference.cases import draw
from compiler.recipes.rules import RULES
from compiler.schedule import Schedule
from compiler.space.derivation import preferred
from compiler.support.errors import ScheduleError
from compiler.te.tensor import Tensor
from tests.sample import some

nn = te.nn
Made = Callable[[], te.Function]


def _on(make: Callable[[Tensor], object], *shape: int, dtype: str = "f32") -> Made:
    def made() -> te.Function:
        x = te.placeholder(shape, dtype, "X")
        return te.function("f", [x], make(x))

    return made


def _both(x: Tensor) -> list[Tensor]:
    total = nn.add(x, 1.0)
    return [total, nn.softmax(total)]


def _statistics(x: Tensor) -> list[Tensor]:
    mean = nn.mean(x, (0, 2, 3), keepdims=True)
    return [nn.sub(x, mean), mean]


def _embedded() -> te.Function:
    ids, table = te.placeholder((5,), "i32", "I"), te.placeholder((11, 37), "f32", "T")
    return te.function("f", [ids, table], nn.softmax(nn.embedding(ids, table)))


CASES: dict[str, tuple[Made, str]] = {
    "both read": (_on(_both, 5, 141), "by rows"),
    "statistics": (_on(_statistics, 3, 5, 7, 9), "by rows"),
    "gathered": (_embedded, "by rows"),
    "over the first axis": (_on(lambda x: nn.softmax(x, 0), 21, 45), "by columns"),
    "sum of columns": (_on(lambda x: nn.sum(x, 0), 33, 80), "by columns"),
    "sum of ragged columns": (_on(lambda x: nn.sum(x, 0), 33, 71), "as written"),
    "sum of rows": (_on(lambda x: nn.sum(x, -1), 9, 134), "by rows"),
    "argmax": (_on(lambda x: nn.argmax(x, -1), 6, 130), "by rows"),
    "global pool": (_on(nn.global_avg_pool, 1, 6, 11, 13), "by rows"),
    "f64": (_on(nn.logsumexp, 6, 65, dtype="f64"), "by rows"),
}


@pytest.mark.parametrize("name", some(CASES, 2))
def test_by_rows(name: str) -> None:
    make, rule = CASES[name]
    function = make()
    task = SearchTask(function, threads=1)
    derivation = preferred(task.schedule, RULES, task.machine, 1)
    assert rule in derivation.name
    schedule = derivation.draft.schedule
    assert str(verify_schedule(schedule.program, task.schedule.program)) == "proved"
    kernel, written = (compiler.build(scheduled, threads=1) for scheduled in (schedule, task.schedule))
    rng = np.random.default_rng(0)
    inputs = [draw(argument, rng) for argument in written.arguments[: -written.outputs]]
    for left, right in zip(_several(kernel(*inputs)), _several(written(*inputs)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


def _several(outputs: object) -> tuple[object, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def test_rows_are_what_nothing_reduces() -> None:
    x, w = te.placeholder((4, 6), name="X"), te.placeholder((6,), name="W")
    scaled = nn.mul(x, nn.exp(w))
    program = Schedule(compiler.lower(te.function("f", [x, w], nn.softmax(scaled, -1)))).program
    rows = rows_of(program, list(program.blocks)[-1], program.blocks)
    assert rows is not None
    first, *others = program.blocks
    assert list(rows.axes) == others and program.blocks[first].spatial == 1  # exp(w) has no rows
    assert set(rows.axes.values()) == {(0,)}


def test_rows_without_a_loop_are_refused() -> None:
    x, w = te.placeholder((1, 1), name="X"), te.placeholder((4, 6), name="W")
    s = Schedule(compiler.lower(te.function("f", [x, w], nn.mul(w, nn.exp(x)))))
    producer, consumer = (s.get_block(label) for label in s.program.blocks)
    s.compute_at(producer, s.get_loops(consumer)[0])
    with pytest.raises(ScheduleError, match="no loop runs over its rows"):
        recipes.by_rows(s, producer)
