"""What every test of a schedule asks: the same results as the evaluator, interpreted and compiled, and a replay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import compiler
from compiler.driver import parse
from compiler.interpret import loop as loop_interpreter
from compiler.interpret import te as evaluator
from compiler.schedule import Schedule, replay
from compiler.te import Function


def check(function: Function, apply: Callable[[Schedule], object], native: bool = True) -> Schedule:
    """Apply a schedule; interpret, compile and replay what comes out. The inputs are small integers, so that sums and
    products are exact in every order."""
    schedule = Schedule(compiler.lower(function))
    apply(schedule)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, t.shape).astype(np.float32) for t in function.inputs]
    (want,) = evaluator.evaluate(function.module, arrays)
    out = np.full_like(want, np.nan)
    loop_interpreter.run(schedule.module, [*arrays, out])
    np.testing.assert_allclose(out, want, rtol=1e-6)
    if native:
        np.testing.assert_allclose(compiler.build(schedule)(*arrays), want, rtol=1e-5)
    again = replay(parse(str(schedule)), schedule)
    assert str(again.module) == str(schedule.module)
    assert str(again) == str(schedule)
    return schedule
