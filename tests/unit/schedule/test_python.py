"""A script as Python records the same script, without handles that nothing uses."""

from __future__ import annotations

import ast

import pytest

from compiler import lower
from compiler.bench.schedules import SCRIPTS
from compiler.bench.workloads import FAMILIES, find
from compiler.schedule import Schedule
from compiler.schedule.python import as_python
from compiler.support.errors import StrataError
from compiler.types.machines import host
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


def _check(schedule: Schedule) -> None:
    """The Python of a schedule's script gives the same program, by the same Python, whose names are all used."""
    names: dict = {}
    text = as_python(schedule.script)
    exec(text, names)
    other = Schedule(schedule.original)
    names["schedule"](other)
    assert str(other.module) == str(schedule.module)
    assert as_python(other.script) == text
    (function,) = ast.parse(text).body
    found = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id not in ("s", "_")]
    given = {node.id for node in found if isinstance(node.ctx, ast.Store)}
    assert given <= {node.id for node in found if isinstance(node.ctx, ast.Load)}


@pytest.mark.parametrize("name", primitives.PROGRAMS)
def test_examples(name: str) -> None:
    schedule = Schedule(lower(primitives.PROGRAMS[name]()))
    try:
        getattr(primitives, name)(schedule)
    except StrataError:
        return
    _check(schedule)


@pytest.mark.parametrize("family", FAMILIES)
def test_schedules_of_the_workloads(family: str) -> None:
    schedule = Schedule(lower(find(f"{family}:{SMALL[family]}").function()))
    SCRIPTS[family](schedule, host(), 1)
    _check(schedule)


def test_it_reads_well() -> None:
    schedule = Schedule(lower(primitives.matmul()))
    c = schedule.get_block("C")
    m, *_ = schedule.get_loops(c)
    schedule.get_loops(schedule.get_block("C"))
    schedule.sample_categorical([8, 16], decision=0)
    outer, _ = schedule.split(m, [None, schedule.sample_categorical([2, 4], decision=1)])
    schedule.parallel(outer)
    schedule.split("n", [None, 4])
    assert as_python(schedule.script).splitlines() == [
        "def schedule(s):",
        "    C = s.get_block('C')",
        "    m, _, _ = s.get_loops(C)",
        "    C_1 = s.get_block('C')",
        "    _, n, _ = s.get_loops(C_1)",
        "    param = s.sample_categorical([2, 4], decision=1)",
        "    m_0, _ = s.split(m, [None, param])",
        "    s.parallel(m_0)",
        "    s.split(n, [None, 4])",
    ]
