"""Whether a thread had its processor while it was timed, how many processors there are, and the probes of ceilings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from compiler.targets.cpu import ceilings, openmp, presence
from compiler.targets.cpu.presence import Disturbance, Sample, sample_undisturbed, time_calls, time_each_call
from compiler.types import machines, processors

CLEAN, DISTURBED = Sample(1.0), Sample(1.0, 0.4)


@pytest.mark.parametrize(
    ("taken", "is_clean"),
    [
        (Sample(1e-2), True),
        (Sample(1e-2, 0.9e-3), True),
        (Sample(1e-2, 1.1e-3), False),
        (Sample(1e-2, switches=1), True),
        (Sample(1e-2, switches=3), False),
        (Sample(1.0, switches=50), True),
        (Sample(1e-2, stolen=2e-3), False),
    ],
)
def test_a_sample_is_clean_where_its_thread_was_on_its_processor(taken: Sample, is_clean: bool) -> None:
    assert taken.is_clean == is_clean


def test_times_of_a_call() -> None:
    taken = Sample(0.4, 0.1, calls=4)
    assert taken.wall == pytest.approx(0.1) and taken.present == pytest.approx(0.075) and taken.share == 0.25
    assert Sample(1.0, 1.0).present > 0, "rates are divided by it"


@pytest.mark.parametrize(
    ("samples", "best", "repeated", "used"),
    [
        ([CLEAN], CLEAN, 0, 0),
        ([DISTURBED, DISTURBED, CLEAN], CLEAN, 2, 0),
        ([DISTURBED, Sample(1.0, 0.2), DISTURBED, DISTURBED], Sample(1.0, 0.2), 3, 1),
    ],
)
def test_a_disturbed_sample_is_repeated_a_few_times(
    samples: list[Sample], best: Sample, repeated: int, used: int
) -> None:
    before: list[int] = []
    actual = sample_undisturbed(lambda repeat: samples[repeat], seconds=inf, between=lambda: before.append(0))
    assert actual.sample == best and len(before) == repeated
    away = sum(sample.away for sample in samples)
    assert actual.disturbance == Disturbance(len(samples), pytest.approx(away), repeated, used)


def test_no_repeat_begins_after_its_time() -> None:
    assert sample_undisturbed(lambda repeat: DISTURBED, seconds=1.5).disturbance.repeated == 1


def test_a_disturbance_is_said_where_it_matters() -> None:
    actual = Disturbance(8.0, 2.0, 5, 1) + Disturbance(2.0, 0.0, 0, 0)
    said = "the machine was busy: off the processor for 20% of the measured time, 5 samples repeated, "
    assert actual.matters and str(actual) == said + "1 used although disturbed"
    assert not Disturbance().matters and not Disturbance(1.0, 0.01, 3).matters and Disturbance(1.0, 0.01, 1, 1).matters


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Clocks that a test moves, and nothing else that would tell of the machine."""
    now = {"perf_counter": 100.0, "thread_time": 5.0}
    for name in now:
        monkeypatch.setattr(presence.time, name, lambda name=name: now[name])
    monkeypatch.setattr(presence, "_has_fine_clock", lambda: True)
    monkeypatch.setattr(presence, "_stolen_ticks", dict)
    monkeypatch.setattr(presence, "_STEAL", presence._Steal())
    return now


def step(now: dict[str, float], **passed: float) -> Callable[[], None]:
    def call() -> None:
        for name, seconds in passed.items():
            now[name] += seconds

    return call


def test_one_thread_is_watched_by_its_cpu_time(clock: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    actual = time_calls(step(clock, perf_counter=1.0, thread_time=0.75), 4)
    assert (actual.seconds, actual.away, actual.calls) == (4.0, 1.0, 4)
    assert time_calls(step(clock, perf_counter=1.0, thread_time=1.5)).away == 0.0
    monkeypatch.setattr(presence, "_has_fine_clock", lambda: False)
    assert time_calls(step(clock, perf_counter=1.0)).away == 0.0, "a clock of coarse steps tells nothing"


def test_several_threads_are_watched_by_what_they_wait(
    clock: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a thread that spins nor one that sleeps hides or pretends that another had to wait."""
    waits = {"1": 4.0, "2": 1.0}
    monkeypatch.setattr(presence, "_run_queue_waits", lambda: dict(waits))

    def call() -> None:
        clock["perf_counter"] += 1.0
        waits["2"] += 0.25
        waits["3"] = 0.125

    actual = time_calls(call, threads=2)
    assert (actual.seconds, actual.away) == (1.0, 0.25)
    monkeypatch.setattr(presence, "_run_queue_waits", dict)
    assert time_calls(step(clock, perf_counter=1.0), threads=2).away == 0.0, "nothing says how long they wait"


def test_what_is_arranged_before_a_call_counts_for_nothing(
    clock: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(step(clock, perf_counter=1.0, thread_time=1.0 - away) for away in (0.0, 0.25, -0.5))

    def arrange() -> Callable[[], None]:
        step(clock, perf_counter=8.0, thread_time=4.0)()
        return next(calls)

    actual = time_each_call(arrange, 3)
    assert (actual.seconds, actual.away, actual.calls) == (3.0, 0.25, 3), "one call's gain makes up for no other's loss"
    monkeypatch.setattr(presence, "_run_queue_waits", lambda: {"1": clock["perf_counter"] / 90})
    several = time_each_call(lambda: step(clock, perf_counter=9.0), 2, threads=2)
    assert (several.seconds, several.away) == (18.0, pytest.approx(0.2))


def test_time_that_other_guests_steal_is_a_disturbance(
    clock: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = {"cpu0": 10, "cpu1": 1000}
    monkeypatch.setattr(presence, "_stolen_ticks", lambda: dict(ticks))
    time_calls(step(clock, perf_counter=1.0, thread_time=1.0))
    ticks["cpu1"] += int(presence._TICKS * 0.5)
    actual = time_calls(step(clock, perf_counter=2.0, thread_time=2.0))
    assert actual.stolen == pytest.approx(0.5) and actual.away == 0.0 and not actual.is_clean
    again = time_calls(step(clock, perf_counter=2.0, thread_time=2.0))
    assert again.is_clean


def test_a_thread_that_sleeps_is_off_its_processor() -> None:
    assert presence._has_fine_clock() is False or time_calls(lambda: time.sleep(0.02)).share > 0.5


# --- ceilings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", [ceilings.Arithmetic, ceilings.Bandwidth])
def test_a_disturbed_probe_is_repeated_and_counts_the_time_on_the_processors(
    kind: type[ceilings.Arithmetic] | type[ceilings.Bandwidth], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ceiling = kind(threads)
    taken: list[int] = []

    def half(self: ceilings._ProbeLoop, seconds: float) -> Sample:
        taken.append(max(1, round(self._speed * seconds)))
        return Sample(2.0, 1.0, calls=1000)

    monkeypatch.setattr(ceilings._ProbeLoop, "_sample", half)
    actual = ceiling.probe(0.02)
    assert actual.rate == pytest.approx(1000 * ceiling._units) and actual.disturbance.used == 1
    assert len(taken) == 1, "it took longer than repeats may"


def test_a_thread_of_a_probe_that_begins_late_had_to_wait() -> None:
    together = ceilings._merge_thread_samples([(1.0, Sample(2.0, 0.5)), (2.0, Sample(2.0))])
    assert (together.seconds, together.away) == (3.0, 1.0) and not together.is_clean


@pytest.mark.parametrize(("share", "shown"), [(None, None), (0.5, 0.5), (1.0, 1.0), (1.004, 1.004), (1.006, None)])
def test_no_share_above_100_percent_is_credible(share: float | None, shown: float | None) -> None:
    assert ceilings.plausible_share(share) == shown


# --- processors -----------------------------------------------------------------------------------------------------

UNIFIED = "0::/user/job\n", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
FIRST = (
    "12:cpuset:/\n4:cpu,cpuacct:/docker/17\n0::/\n",
    "tmpfs /sys/fs/cgroup tmpfs ro 0 0\ncgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
)


@pytest.mark.parametrize(
    ("system", "files", "expected"),
    [
        (UNIFIED, {}, inf),
        (UNIFIED, {"user/job/cpu.max": "max 100000\n"}, inf),
        (UNIFIED, {"user/job/cpu.max": "150000 100000\n"}, 1.5),
        (UNIFIED, {"user/job/cpu.max": "400000 100000\n", "user/cpu.max": "200000 100000\n"}, 2.0),
        (UNIFIED, {"cpu.max": "50000 100000\n"}, 0.5),
        (UNIFIED, {"user/other/cpu.max": "50000 100000\n"}, inf),
        (UNIFIED, {"user/job/cpu.max": "nonsense\n"}, inf),
        (FIRST, {"cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, inf),
        (FIRST, {"cpu,cpuacct/cpu.cfs_quota_us": "100000\n", "cpu,cpuacct/cpu.cfs_period_us": "50000\n"}, 2.0),
        (
            FIRST,
            {
                "cpu,cpuacct/docker/17/cpu.cfs_quota_us": "100000\n",
                "cpu,cpuacct/docker/17/cpu.cfs_period_us": "100000\n",
            },
            1.0,
        ),
        (("", ""), {}, inf),
    ],
)
def test_a_quota_is_that_of_the_control_groups_around(
    system: tuple[str, str], files: dict[str, str], expected: float, tmp_path: Path
) -> None:
    groups, mounts = system
    written = {"proc/self/cgroup": groups, "proc/self/mounts": mounts}
    for name, text in (written | {f"sys/fs/cgroup/{name}": text for name, text in files.items()}).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert processors.quota(tmp_path) == expected


@pytest.mark.parametrize(("allowed", "quota", "expected"), [(4, inf, 4), (4, 2.5, 2), (4, 0.5, 1), (2, 8.0, 2)])
def test_there_are_as_many_processors_as_can_be_kept_busy(
    allowed: int, quota: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda task: set(range(allowed)), raising=False)
    monkeypatch.setattr(processors, "quota", lambda: quota)
    assert processors.processors() == expected == openmp.cores()
    assert machines.processors is processors.processors, "there is one function that says so"
