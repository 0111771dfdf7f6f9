"""A script as Python records the same script."""

from __future__ import annotations

import pytest

from compiler import lower
from compiler.bench.schedules import SCRIPTS
from compiler.bench.workloads import FAMILIES, find
from compiler.errors import StrataError
from compiler.schedule import Schedule
from compiler.schedule.python import as_python
from compiler.targets.machine import host
from examples import primitives

SMALL = {
    "mm_exp_mm": "40x50x60x70",
    "matmul": "40x50x60",
    "batched": "3x20x30x40",
    "conv": "20x9x9x20",
    "conv_grad_weight": "2x5x9x9",
    "conv_grad_weight_steps": "2x5x9x9",
    "softmax": "20x100",
    "layernorm": "20x100",
    "swish": "20x100",
    "attention": "2x40x30",
    "mlp": "20x30x40x10",
}


def _again(schedule: Schedule) -> str:
    """The script that the Python of a schedule's script records."""
    names: dict = {}
    exec(as_python(schedule.script), names)
    other = Schedule(schedule.original)
    names["schedule"](other)
    return str(other.script)


@pytest.mark.parametrize("name", primitives.PROGRAMS)
def test_examples(name: str) -> None:
    schedule = Schedule(lower(primitives.PROGRAMS[name]()))
    try:
        getattr(primitives, name)(schedule)
    except StrataError:
        return
    assert _again(schedule) == str(schedule.script)


@pytest.mark.parametrize("family", FAMILIES)
def test_schedules_of_the_workloads(family: str) -> None:
    schedule = Schedule(lower(find(f"{family}:{SMALL[family]}").function()))
    SCRIPTS[family](schedule, host(), 1)
    assert _again(schedule) == str(schedule.script)


def test_it_reads_well() -> None:
    schedule = Schedule(lower(primitives.matmul()))
    c = schedule.get_block("C")
    m, *_ = schedule.get_loops(c)
    schedule.split(m, [None, schedule.sample_categorical([2, 4], decision=1)])
    assert as_python(schedule.script).splitlines() == [
        "def schedule(s):",
        "    C = s.get_block('C')",
        "    m, n, k = s.get_loops(C)",
        "    param = s.sample_categorical([2, 4], decision=1)",
        "    m_0, m_1 = s.split(m, [None, param])",
    ]
