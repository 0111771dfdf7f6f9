"""The rules for what moves elements: when they apply, that their scripts are proved and their results exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import compiler
from compiler import recipes, te
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
CASES: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor], str]] = {
    "max pool": ((1, 2, 11, 14), lambda x: nn.max_pool2d(x, 3, 2, 1), "windows"),
    "transpose": ((37, 50), nn.transpose, "transposed"),
    "average pool": ((1, 2, 9, 8), lambda x: nn.avg_pool2d(x, 3, 1, 1), "windows"),
    "whole vectors": ((64, 32), nn.transpose, "transposed"),
    "flip": ((3, 70), lambda x: nn.flip(x, 1), "as written"),
    "channels last": ((2, 17, 5, 21), lambda x: nn.transpose(x, (0, 2, 3, 1)), "transposed"),
}


@pytest.mark.parametrize("name", some(CASES, 2))
def test_moving(name: str) -> None:
    shape, make, rule = CASES[name]
    x = te.placeholder(shape, "f32", "X")
    task = SearchTask(te.function("f", [x], make(x)), threads=1)
    derivation = preferred(task.schedule, RULES, task.machine, 1)
    assert rule in derivation.name
    schedule = derivation.draft.schedule
    assert str(verify_schedule(schedule.program, task.schedule.program)) == "proved"
    kernel, written = (compiler.build(scheduled, threads=1) for scheduled in (schedule, task.schedule))
    given = draw(written.arguments[0], np.random.default_rng(0))
    np.testing.assert_allclose(kernel(given), written(given), rtol=1e-6)


def test_what_they_refuse() -> None:
    x = te.placeholder((40, 40), "f32", "X")
    s = Schedule(compiler.lower(te.function("f", [x], nn.relu(x))))
    (label,) = s.program.blocks
    with pytest.raises(ScheduleError, match="does not read along one axis and write along another"):
        recipes.transposed(s, s.get_block(label), 8)
    with pytest.raises(ScheduleError, match="it is no reduction"):
        recipes.windows(s, s.get_block(label))
