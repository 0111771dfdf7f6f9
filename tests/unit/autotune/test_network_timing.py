"""Timing as in a network: constants from memory, other inputs just written, both outside of what is timed."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import lower, recipes
from compiler.autotune.measure import network, runner
from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.network import COPIES, NetworkCall
from compiler.autotune.measure.runner import MeasureJob, Runner, RunnerSetup, SampleJob, Yardstick
from compiler.autotune.measure.timing import Call, Clock, YardstickProbe, taken
from compiler.database.outcome import NETWORK
from compiler.driver import build_unit, with_constants
from compiler.driver.reference.cases import ReferenceCases, reference
from compiler.driver.reference.subject import Subject
from compiler.recipes import GebpTiles
from compiler.schedule import Schedule
from compiler.targets.arguments import Array
from compiler.targets.cpu import presence
from compiler.types.machines import Machine, host
from tests.measuring import quiet, started  # noqa: F401
from tests.programs import matmul
from tests.unit.autotune.test_measure import FEW, Steady

pytestmark = pytest.mark.usefixtures("quiet")
M, N, K = 48, 64, 80
SMALL = replace(host(), l3_bytes=1 << 20)


layer = partial(matmul, M, N, K, name="layer", inputs="XW", output="Y")


def fixed() -> ModuleOp:
    return with_constants(layer(), lower(layer()), ["W"])


def network_call(machine: Machine = SMALL) -> tuple[NetworkCall, list[Array]]:
    kernel = compiler.build(layer(), threads=1)
    arrays = [np.random.default_rng(0).standard_normal(a.shape).astype(a.dtype) for a in kernel.arguments]
    return NetworkCall(kernel, arrays, [1], [0], machine), arrays


def test_calls_take_turns_with_copies_that_pass_through_the_caches() -> None:
    call, (_, w, y) = network_call()
    copies = len(call._copies)
    assert call.nbytes == copies * w.nbytes and copies * (w.nbytes + 8 * len(next(call._passing))) >= 2 << 20
    call.refresh()
    for constants_copy in call._copies:
        constants_copy[0][...] = 0
    call._copies[2][0][...] = w
    outputs = []
    for _ in range(copies + 3):
        call()
        outputs.append(bool(y.any()))
    assert [n for n, right in enumerate(outputs) if right] == [2, copies + 2]


@pytest.mark.parametrize(("size", "copies"), [(0, 1), (8, COPIES), (1 << 20, 3), (9 << 20, 2), (200 << 20, 1)])
def test_how_many_copies(size: int, copies: int) -> None:
    assert network._copies(size, 2 << 20) == copies


def test_small_constants_leave_room_for_other_memory() -> None:
    passing = 2 << 20
    slices = network._slices(passing, passing // COPIES - 4096)
    assert sum(len(part) for part in slices) == passing // 8 and len(slices) >= COPIES
    assert [len(part) for part in network._slices(passing, -4096)] == [0]


def test_inputs_are_written_and_keep_their_values() -> None:
    call, (x, w, y) = network_call()
    call.refresh()
    before = x.copy()
    x[0, 0] = np.nan
    before[0, 0] = np.nan
    np.testing.assert_array_equal(call._written[0].view(np.float32), before.reshape(-1))
    call()
    np.testing.assert_array_equal(x, before)
    assert np.isnan(y[0]).all() and np.allclose(y[1:], x[1:] @ w, atol=1e-3)
    large, _ = network_call(replace(host(), l3_bytes=M * K * 4 - 1))
    assert large._written == [], "nobody finds them in a cache"


def test_bytes_are_words_where_they_can_be() -> None:
    assert network._words(np.zeros((3, 2), np.float32)).dtype == np.uint64
    assert network._words(np.zeros(3, np.int8)).dtype == np.uint8


class Slow(network.ArrangedCall):
    """A call of a second, after an hour of preparation."""

    def __init__(self, now: list[float]) -> None:
        self.now = now

    def arrange(self) -> Call:
        self.now[0] += 3600
        return self.work

    def work(self) -> None:
        self.now[0] += 1


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """A clock that only calls move."""
    passed = [0.0]
    for name in ("perf_counter", "thread_time"):
        monkeypatch.setattr(presence.time, name, lambda: passed[0])
    monkeypatch.setattr(presence, "_has_fine_clock", lambda: True)
    return passed


def test_arranging_is_not_timed_neither_of_candidates_nor_of_yardsticks(now: list[float]) -> None:
    call = Slow(now)
    assert taken(call, 3).present == 1.0
    probe = YardstickProbe(call, cost=8.0)
    assert probe.probe(1.0).rate == 8.0 and probe.is_long
    clock = Clock(Steady(), replace(FEW, min_seconds=7300.0))
    assert clock.calls(call, 0.5) == 3, "a sample does not take longer for that"
    assert clock.sample(call, 2).seconds == 1.0
    assert {s.seconds for s in clock.samples(call, 1.0).selected} == {1.0}


def packed(first: str = "b") -> Schedule:
    s = Schedule(fixed())
    recipes.tiled_gebp(s, s.get_block("Y"), GebpTiles(6, 2, 40, 2, 2), first=first)
    return s


@pytest.fixture(scope="module")
def cases() -> ReferenceCases:
    return reference(Subject(str(fixed())))


def test_a_runner_measures_as_in_a_network(cases: ReferenceCases) -> None:
    assert cases.constants == (1,)
    actual = Runner(replace(cases, work=None), Clock(Steady(), FEW), random.Random(0), in_network=True)
    prepared, plain = build_unit(packed()), build_unit(Schedule(fixed()))
    for artefact in (prepared, plain, prepared):
        assert actual(MeasureJob(artefact)).ok
        assert actual(SampleJob(artefact, Yardstick(0, plain, 1.0))).ok
    assert prepared.prepare is not None
    calls = actual._bound(prepared)
    assert isinstance(calls.call, NetworkCall) and [a.shape for a in calls.call._originals] != [(K, N)]
    calls.fill()
    for constants_copy in calls.call._copies:
        np.testing.assert_array_equal(constants_copy[0], calls.call._originals[0])
    assert not isinstance(Runner(cases, Clock(Steady(), FEW), random.Random(0))._bound(plain).call, NetworkCall)


def test_stale_copies_are_found_wrong(cases: ReferenceCases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetworkCall, "refresh", lambda call: None)
    actual = Runner(cases, Clock(Steady(), FEW), random.Random(0), in_network=True)
    assert actual(MeasureJob(build_unit(packed()))).kind == "wrong"


def test_few_candidates_are_held_where_copies_are_large(cases: ReferenceCases, monkeypatch: pytest.MonkeyPatch) -> None:
    actual = Runner(replace(cases, work=None), Clock(Steady(), FEW), random.Random(0), in_network=True)
    for count in (1, 2):
        actual(SampleJob(build_unit(packed("b" if count == 1 else ""))))
        assert len(actual._checked_artefacts) == count
    assert actual._held_bytes == sum(checked.call.nbytes for checked in actual._checked_artefacts.values())  # type: ignore[attr-defined]
    monkeypatch.setattr(runner, "HELD_BYTES", 1)
    actual(SampleJob(build_unit(Schedule(fixed()))))
    assert len(actual._checked_artefacts) == 1


def test_the_subject_says_how_it_is_timed(tmp_path: Path) -> None:
    subject = Subject(str(fixed()), timing=NETWORK)
    path = tmp_path / "reference"
    path.write_bytes(pickle.dumps(reference(subject)))
    made = started(RunnerSetup(subject, Limits(sampling=FEW), str(path)))
    assert isinstance(made._bound(build_unit(packed())).call, NetworkCall)
