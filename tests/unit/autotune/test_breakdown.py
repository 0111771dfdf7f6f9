"""What groups take together, beside the whole."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.autotune.display.breakdown import Breakdown, GroupTime
from compiler.autotune.measure import network
from compiler.autotune.measure.network import NetworkCall, seconds_of
from compiler.types.machines import host

GROUPS = (GroupTime("net.group_0", 2, 3e-3), GroupTime("net.group_1", 1, 4e-6))


def test_the_difference_is_a_row_of_its_own() -> None:
    actual = Breakdown(GROUPS, 8e-3)
    assert actual.total == pytest.approx(6.004e-3) and actual.difference == pytest.approx(1.996e-3)
    assert list(actual.rows()) == [
        ("net.group_0", "2", "3 ms", "6 ms", "75.0%"),
        ("net.group_1", "1", "4 us", "4 us", "0.1%"),
        ("sum of groups", "", "", "6 ms", "75.0%"),
        ("whole, measured", "", "", "8 ms", "100.0%"),
        ("difference", "", "", "2 ms", "25.0%"),
    ]
    assert actual.table().row_count == 5
    assert actual.data()["sum_seconds"] == actual.total and actual.data()["whole_seconds"] == 8e-3


def test_a_whole_that_is_faster_than_its_groups() -> None:
    assert list(Breakdown(GROUPS, 6e-3).rows())[-1] == ("difference", "", "", "-4 us", "-0.1%")


def test_what_is_not_known_is_no_part_of_a_sum() -> None:
    actual = Breakdown((*GROUPS, GroupTime("net.group_2", 1, None)), 8e-3)
    assert actual.total is None and actual.difference is None
    assert list(actual.rows())[2:4] == [
        ("net.group_2", "1", "unknown", "unknown", ""),
        ("sum of groups", "", "", "unknown", ""),
    ]


def test_all_caches_have_other_memory_before_a_whole_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = te.placeholder((4, 8), name="X")
    kernel = compiler.build(te.function("f", [x], [te.nn.exp(x)]), threads=1)
    made: list[NetworkCall] = []

    class Kept(NetworkCall):
        def refresh(self) -> None:
            raise AssertionError("there are no constants to copy")

        def arrange(self) -> network.Call:
            made.append(self)
            return super().arrange()

    monkeypatch.setattr(network, "NetworkCall", Kept)
    assert 0 < seconds_of(kernel, host()) < 1 and len(made) >= network.CALLS + 1
    assert sum(len(next(made[0]._passing)) for _ in range(2)) * 8 >= 2 * host().l3_bytes
    assert [words.nbytes for words in made[0]._written] == [np.zeros((4, 8), np.float32).nbytes]
