"""Programs that also return what they compute on the way: right, and still by rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import compiler
from benchmarks.additional_outputs import PROGRAMS, with_outputs
from compiler import te
from compiler.autotune import SearchTask
from compiler.driver import parse
from compiler.schedule import Schedule, library, replay
from tests.sample import pairs, some

ROWS, LENGTH = 24, 80
NAMES = ["add_softmax", "softmax", "layer_norm", "add_and_norm"]


def arrays(f: te.Function) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, t.shape).astype(np.float32) for t in f.inputs]


def check(f: te.Function, make: Callable[[SearchTask], Schedule], threads: int = 1) -> Schedule:
    task = SearchTask(func=f, threads=threads)
    s = make(task)
    assert s.verify()
    expected, got = compiler.build(f)(*arrays(f)), compiler.build(s, threads=threads)(*arrays(f))
    for one, two in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
    return s


def preferred(task: SearchTask) -> Schedule:
    return replay(parse(task.space.script(task.space.defaults[0]), "script"), task.module)


@pytest.mark.parametrize(("name", "threads"), pairs(NAMES, [1, 2]))
def test_rows_share_a_loop_with_every_additional_output(name: str, threads: int) -> None:
    for outputs, f in with_outputs(PROGRAMS[name](ROWS, LENGTH)).items():
        if outputs:
            s = check(f, preferred, threads)
            assert len([node for node in s.program.body if hasattr(node, "extent")]) == 1, outputs


def test_attention_with_additional_outputs_is_right() -> None:
    for f in some(with_outputs(PROGRAMS["attention"](ROWS, 16)).values(), 4):
        check(f, preferred)


def test_a_result_of_other_rows_is_refused() -> None:
    x = te.placeholder((ROWS, LENGTH), name="X")
    k = te.reduce_axis(ROWS, "k")
    total = te.compute((1, LENGTH), lambda i, j: te.sum(x[k, j], axis=k), name="total")
    y = te.compute((ROWS, LENGTH), lambda i, j: x[i, j] - total[0, j], name="Y")
    f = te.function("centred", [x], [total, y])
    s = Schedule(compiler.lower(f))
    with pytest.raises(compiler.errors.ScheduleError):
        library.by_rows(s, s.get_block("Y"))
    check(f, preferred)
