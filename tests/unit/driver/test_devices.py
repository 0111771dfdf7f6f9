"""`usable_kernel`: the next schedule where a kernel is refused; the program's groups and their verdicts."""

from __future__ import annotations

import pytest

import compiler
from compiler import te
from compiler.driver.devices.function import TRIED, usable_kernel
from compiler.pipeline.loops import lower
from compiler.schedule import Schedule
from compiler.space.derivation import in_default_order
from compiler.support.errors import LoweringError, TargetError
from compiler.targets.registry import target_named

P = te.placeholder


def product() -> Schedule:
    """An unscheduled product with an epilogue."""
    a, b = P((64, 48), name="A"), P((48, 32), name="B")
    return Schedule(lower(te.function("f", [a, b], te.nn.relu(te.nn.matmul(a, b, name="C"), name="D"))))


class Maker:
    """A maker of kernels that refuses the first ones."""

    def __init__(self, refused: int, error: Exception) -> None:
        self.refused, self.error, self.scripts = refused, error, list[str]()

    def __call__(self, schedule: Schedule) -> str:
        self.scripts.append(str(schedule.script))
        if len(self.scripts) <= self.refused:
            raise self.error
        return self.scripts[-1]


@pytest.mark.parametrize("error", [TargetError("too many bytes"), LoweringError("no such loop")])
def test_the_next_schedule_is_taken_where_a_kernel_is_refused(error: Exception) -> None:
    target, original = target_named("cuda"), product()
    machine = target.machine("sm_80")
    first = usable_kernel(original, target, machine, 1, Maker(0, error))
    assert first.refused == "" and first.verdict
    maker = Maker(2, error)
    third = usable_kernel(original, target, machine, 1, maker)
    assert maker.scripts[0] == first.kernel and len(set(maker.scripts)) == 3 and third.kernel == maker.scripts[2]
    assert third.refused == str(error) and third.verdict


def test_at_last_the_default_order_of_loops() -> None:
    target, original = target_named("cuda"), product()
    machine, error = target.machine("sm_80"), TargetError("too many bytes")
    maker = Maker(1 << 20, error)
    with pytest.raises(TargetError, match="too many bytes"):
        usable_kernel(original, target, machine, 1, maker)
    default = str(in_default_order(original, machine).script)
    assert maker.scripts[-1] == default and 3 < len(maker.scripts) <= TRIED + 1
    last = usable_kernel(original, target, machine, 1, Maker(len(maker.scripts) - 1, error))
    assert last.kernel == default and last.refused == str(error)


def test_the_groups_of_a_kernel() -> None:
    """Equal groups are one, with the number of its calls, and its kernels are launched that often."""
    x = value = P((64, 64), name="X")
    weights = [P((64, 64), name=f"W{n}") for n in range(6)]
    for n, w in enumerate(weights):
        value = te.nn.relu(te.nn.matmul(value, w, name=f"A{n}"), name=f"B{n}")
    kernel = compiler.build(te.function("net", [x, *weights], value), "cuda", schedule="auto", arch="sm_90")
    assert sum(group.occurrences for group in kernel.groups) > len(kernel.groups)
    assert all(group.source == "model" and group.verdict == "proved" and group.hash for group in kernel.groups)
    assert kernel.arch == "sm_90" and len({launch.name for launch in kernel.launches}) < len(kernel.launches)


def test_threads_are_the_cpus() -> None:
    x = P((6, 16), name="X")
    function = te.function("f", [x], te.nn.relu(x, name="Y"))
    with pytest.raises(TargetError, match="threads are the CPU's, not cuda's"):
        compiler.build(function, "cuda", threads=2, schedule="auto")
