"""What every test of a schedule asks: the same results as the evaluator, interpreted and compiled, and a replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import compiler
from compiler.interpret import loop as loop_interpreter
from compiler.interpret import te as evaluator
from compiler.intrinsics import INTRINSICS
from compiler.pipeline.source import parse
from compiler.schedule import Schedule, replay
from compiler.te import Function
from compiler.types.machines import host


def drawn(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray[Any, Any]:
    """An array of small integers of a te dtype."""
    kinds = {"f32": np.float32, "u8": np.uint8, "i8": np.int8, "bf16": ml_dtypes.bfloat16}
    return rng.integers(0 if dtype.startswith("u") else -4, 5, shape).astype(kinds[dtype])


def lacks(intrinsic: str) -> str:
    """The features that the machine lacks for an intrinsic, in words; nothing where it has them."""
    return INTRINSICS[intrinsic].lacking(host().present)


def check(
    function: Function, apply: Callable[[Schedule], object], native: bool = True, rtol: float = 1e-6, atol: float = 0.0
) -> Schedule:
    """Apply a schedule; interpret, compile and replay what comes out. The inputs are small integers, so that sums and
    products are exact in every order; where they are not, the tolerances are what may come of that."""
    schedule = Schedule(compiler.lower(function))
    apply(schedule)
    rng = np.random.default_rng(0)
    arrays = [drawn(rng, t.shape, t.dtype) for t in function.inputs]
    (want,) = evaluator.evaluate(function.module, arrays)
    out = np.full_like(want, np.nan if want.dtype.kind == "f" else 77)
    loop_interpreter.run(schedule.module, [*arrays, out])
    np.testing.assert_allclose(out, want, rtol=rtol, atol=atol)
    if native:
        np.testing.assert_allclose(compiler.build(schedule)(*arrays), want, rtol=10 * rtol, atol=atol)
    again = replay(parse(str(schedule)), schedule)
    assert str(again.module) == str(schedule.module)
    assert str(again) == str(schedule)
    return schedule
