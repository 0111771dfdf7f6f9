"""The smallest Schedule: a copy, a script that round-trips, and refusals."""

import numpy as np
import pytest

import compiler
from compiler.driver import parse
from compiler.errors import ScheduleError
from compiler.schedule import Schedule
from tests.operators import CASES, inputs


def test_a_schedule_is_built_like_its_function() -> None:
    function = CASES["matmul-3"]()
    kernel = compiler.build(function)
    schedule = Schedule(parse(kernel.text("loop")))
    arrays = inputs(function)
    np.testing.assert_array_equal(compiler.build(schedule)(*arrays), kernel(*arrays))
    assert schedule.function.sym_name.data == "matmul"


def test_the_script_round_trips() -> None:
    schedule = Schedule(parse(compiler.build(CASES["matmul-0"]()).text("loop")))
    assert str(parse(str(schedule))) == str(schedule)
    assert "transform.named_sequence @schedule" in str(schedule)


def test_the_original_is_untouched() -> None:
    module = parse(compiler.build(CASES["matmul-0"]()).text("loop"))
    before = str(module)
    next(iter(Schedule(module).function.body.block.ops)).detach()
    assert str(module) == before


def test_refusals() -> None:
    with pytest.raises(ScheduleError, match="is not at the loop level"):
        Schedule(CASES["matmul-0"]().module)
    with pytest.raises(ScheduleError, match="not of a str"):
        Schedule("text")  # type: ignore[arg-type]
