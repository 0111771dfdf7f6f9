"""The cheap estimate: programs that gain nothing from a schedule stay as they are written."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.autotune.space.rules.derive import in_default_order
from compiler.autotune.task import SearchTask
from compiler.defaults.choice import preferred_schedule
from compiler.defaults.plain import estimate
from compiler.targets.machine import Machine
from compiler.te.tensor import Tensor

MACHINE = Machine("test", "", "", 2, 256, 16, 32 << 10, 512 << 10, 8 << 20)
nn = te.nn


def _task(*shape: int, make: object) -> SearchTask:
    x: Tensor = te.placeholder(shape, name="X")
    return SearchTask(te.function("f", [x], make(x)), threads=1, machine=MACHINE)  # type: ignore[operator]


PLAIN = {
    "short rows": ((64, 13, 5), lambda x: nn.sub(x, nn.max(x, 1, keepdims=True))),
    "what is added": ((32, 64), lambda x: nn.add(x, 1.0)),
}
SCHEDULED = {
    "a product": ((64, 64), lambda x: nn.matmul(x, x)),
    "a transpose": ((256, 256), nn.transpose),
    "a pooling": ((1, 16, 56, 56), lambda x: nn.max_pool2d(x, 3, 2, 1)),
    "rows beyond L2": ((600, 512), nn.softmax),
    "places at quotients": ((1, 8, 28, 28), lambda x: nn.resize_bilinear(x, (56, 56))),
    "a position": ((64, 128), lambda x: nn.argmax(x, -1)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_it_stays_as_written(name: str) -> None:
    shape, make = PLAIN[name]
    assert preferred_schedule(_task(*shape, make=make)) is None


@pytest.mark.parametrize("name", SCHEDULED)
def test_it_is_scheduled(name: str) -> None:
    shape, make = SCHEDULED[name]
    assert preferred_schedule(_task(*shape, make=make)) is not None


def test_what_does_not_step_by_one_element_counts_more() -> None:
    task = _task(64, 64, make=lambda x: nn.add(nn.transpose(x), 1.0))
    across, added = task.schedule.program, _task(64, 64, make=lambda x: nn.add(x, 1.0)).schedule
    along = in_default_order(added, MACHINE).program
    assert estimate(across, MACHINE) > 10 * estimate(along, MACHINE)
    wide = Machine("test", "", "", 2, 512, 32, 32 << 10, 512 << 10, 8 << 20)
    assert estimate(along, wide) == estimate(along, MACHINE) / 2


def test_loops_that_are_fused_count_as_one() -> None:
    schedule = _task(64, 24, make=lambda x: nn.add(x, 1.0)).schedule
    apart = estimate(schedule.program, MACHINE)
    (block,) = schedule.program.blocks
    schedule.fuse(*schedule.get_loops(schedule.get_block(block)))
    assert estimate(schedule.program, MACHINE) == apart
