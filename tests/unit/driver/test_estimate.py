"""The cheap estimate: programs that gain nothing from a schedule stay as they are written."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.autotune.task import SearchTask
from compiler.driver.choice.estimate import estimate
from compiler.driver.choice.preferred import preferred_schedule
from compiler.space.derivation import in_default_order
from compiler.te.tensor import Tensor
from compiler.types.machines import Machine

MACHINE = Machine("test", "", "", 2, 256, 16, 32 << 10, 512 << 10, 8 << 20)
nn = te.nn


def _task(*shape: int, make: object, dtype: str = "f32", other: Tensor | None = None) -> SearchTask:
    """What `make` makes of an input of a shape, and of another input where there is one."""
    x: Tensor = te.placeholder(shape, dtype, name="X")
    inputs = [x] if other is None else [x, other]
    return SearchTask(te.function("f", inputs, make(*inputs)), threads=1, machine=MACHINE)  # type: ignore[operator]


def _padded(x: Tensor) -> Tensor:
    """A pad by one before each dimension and two behind."""
    return nn.pad(x, ((1, 2),) * len(x.shape))


PLAIN = {
    "bytes padded where they are computed": ((2, 16, 128, 32), lambda x: _padded(nn.relu(x)), "i8", None),
    "integers padded where they are computed": ((66, 1), lambda y, x: nn.mul(y, _padded(x)), "i32", (63, 256)),
    "a function in each of padded rows": ((1, 1), lambda x, y: nn.mul(_padded(nn.relu(y)), x), "f32", (7, 256)),
}
SCHEDULED = {
    "a product": ((64, 64), lambda x: nn.matmul(x, x)),
    "a transpose": ((256, 256), nn.transpose),
    "a pooling": ((1, 16, 56, 56), lambda x: nn.max_pool2d(x, 3, 2, 1)),
    "rows beyond L2": ((600, 512), nn.softmax),
    "places at quotients": ((1, 8, 28, 28), lambda x: nn.resize_bilinear(x, (56, 56))),
    "a position": ((64, 128), lambda x: nn.argmax(x, -1)),
    "what is reduced of columns within L2": ((38, 24, 13, 8), lambda x: nn.sum(x, 0)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_it_stays_as_written(name: str) -> None:
    shape, make, dtype, second_shape = PLAIN[name]
    second = None if second_shape is None else te.placeholder(second_shape, dtype, name="Y")
    assert preferred_schedule(_task(*shape, make=make, dtype=dtype, other=second)) is None


def test_a_product_of_one_row_is_scheduled() -> None:
    weights: Tensor = te.placeholder((2048, 1000), name="W")
    assert preferred_schedule(_task(1, 2048, make=nn.matmul, other=weights)) is not None


@pytest.mark.parametrize("name", SCHEDULED)
def test_it_is_scheduled(name: str) -> None:
    shape, make = SCHEDULED[name]
    assert preferred_schedule(_task(*shape, make=make)) is not None


def test_short_rows_that_are_gathered_stay_as_written() -> None:
    places: Tensor = te.placeholder((13,), "i32", name="I")
    task = _task(256, 100, make=_gathered_softmax, other=places)
    assert preferred_schedule(task) is None


def _gathered_softmax(x: Tensor, places: Tensor) -> list[Tensor]:
    """Some columns, and their softmax by rows: two results."""
    columns = nn.gather(x, places, 1)
    return [columns, nn.softmax(columns)]


def test_padded_elements_are_moved_without_masks() -> None:
    task = _task(7, 256, 128, make=lambda x: [p := nn.pad(x, ((1, 0), (1, 1), (1, 1))), nn.sum(p, 2)])
    schedule = preferred_schedule(task)
    assert schedule is not None
    (pad,) = (block for block in schedule.program.blocks.values() if any(access.where for access in block.reads))
    assert "vectorized" not in {loop.kind for loop in schedule.program.enclosing(pad.label)}


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
