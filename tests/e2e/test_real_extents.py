"""The default of CUDA at extents of networks, and of random programs: nothing is refused."""

from __future__ import annotations

import pytest

from compiler.driver.devices import function
from compiler.support.errors import TargetError
from compiler.targets.cuda import CudaKernel, nvrtc
from tests.fuzz import launches
from tests.real_extents import Case, cases, report
from tests.sample import some

CASES = list(cases())


def test_every_architecture_has_cases() -> None:
    assert len({case.arch for case in CASES}) == 11 and len({case.dtype for case in CASES}) == 10


@pytest.mark.parametrize("case", some(CASES, 311), ids=lambda case: case.name)
def test_each_operator(case: Case) -> None:
    """Refusals and launches beyond limits are faults; the command lists spills and schedules that are not the first."""
    said = report(case, nvrtc.is_available())
    assert said is None or " spills " in said or said.startswith("not the first"), said


@pytest.mark.parametrize("first", some(range(0, 1000, 4), 125))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 4):
        launches.check(seed)


def test_what_is_refused_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in CASES if case.operator.name == "softmax")

    def refuse(*arguments: object) -> CudaKernel:
        raise TargetError("kernel softmax has too many threads")

    monkeypatch.setattr(function, "in_default_order", refuse)
    monkeypatch.setattr(function, "TRIED", 0)
    assert report(case, False) == "refused: kernel softmax has too many threads"
