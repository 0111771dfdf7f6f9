"""Timing that detects preemption, and repeats disturbed samples.

On a shared machine a thread loses its processor to other processes, to its control group's quota or to other guests.
The wall time of such a sample does not measure the code. A single thread is observed by its CPU time, several by their
wait in run queues, which is the same for threads that spin and for threads without work.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache
from operator import add
from pathlib import Path

MAX_AWAY_SHARE = 0.1
"""A clean sample is off the processor for at most this share of its time."""
MAX_SWITCH_RATE = 100.0
"""A clean sample has at most this many involuntary context switches a second, plus one."""
REPEATS = 3
"""The most repeats of a disturbed sample."""
REPEAT_SECONDS = 0.3
"""No further repeat begins after this many seconds of a sample and its repeats."""
REPORTED_SHARE = 0.02
"""Results report a disturbance of at least this share of the time of all samples."""
WINDOW = 0.1
"""The seconds over which steal time is averaged: /proc/stat counts it in hundredths of a second."""
MIN_PRESENT_SECONDS = 1e-9
"""The least seconds on the processor, to divide by."""
FINE_STEP_SECONDS = 1e-3
"""A CPU clock with coarser steps is not used."""


@dataclass(frozen=True)
class Sample:
    """The time of some calls. seconds: wall time. away: seconds off the processor, of several threads of the one that
    waited longest. switches: involuntary context switches. stolen: an estimate of the seconds stolen by other guests of
    the host. calls: their number."""

    seconds: float
    away: float = 0.0
    switches: int = 0
    stolen: float = 0.0
    calls: int = 1

    @property
    def is_clean(self) -> bool:
        """Whether its time off the processor and its involuntary switches are below the limits."""
        is_rarely_switched = self.switches <= 1 + MAX_SWITCH_RATE * self.seconds
        return is_rarely_switched and max(self.away, self.stolen) <= MAX_AWAY_SHARE * self.seconds

    @property
    def share(self) -> float:
        """The share of the time off the processor, or stolen if that is more; 0 for a sample of no time."""
        return max(self.away, self.stolen) / self.seconds if self.seconds > 0 else 0.0

    @property
    def wall(self) -> float:
        """Wall seconds of a call, on average. Requires a call."""
        return self.seconds / self.calls

    @property
    def present(self) -> float:
        """Seconds of a call on the processor, above 0; stolen time counts as present."""
        return max(self.seconds - self.away, MIN_PRESENT_SECONDS) / self.calls


@dataclass(frozen=True)
class Disturbance:
    """The disturbance of samples, rejected ones included: their seconds, the seconds off the processor, the number of
    repeats, and the number of disturbed samples in use because no repeat was clean. `used` is the last of these.

    >>> disturbance = strata.targets.Disturbance(seconds=2.0, away=0.5, repeated=3)
    >>> disturbance.share
    0.25
    >>> print(disturbance)
    the machine was busy: off the processor for 25% of the measured time, 3 samples repeated
    """

    seconds: float = 0.0
    away: float = 0.0
    repeated: int = 0
    used: int = 0

    def __add__(self, other: Disturbance) -> Disturbance:
        return Disturbance(*map(add, astuple(self), astuple(other)))

    @property
    def share(self) -> float:
        """The share of the time off the processor or stolen; 0 without samples."""
        return self.away / self.seconds if self.seconds > 0 else 0.0

    @property
    def matters(self) -> bool:
        """Whether to report the disturbance: its share is at least REPORTED_SHARE, or a disturbed sample is in use."""
        return self.share >= REPORTED_SHARE or self.used > 0

    def __str__(self) -> str:
        description = f"the machine was busy: off the processor for {self.share:.0%} of the measured time"
        used = f", {self.used} used although disturbed" if self.used else ""
        return f"{description}, {self.repeated} sample{'' if self.repeated == 1 else 's'} repeated{used}"


QUIET = Disturbance()
"""No disturbance."""


@dataclass(frozen=True)
class SampleResult:
    """A clean sample, or the least disturbed of several, and the disturbance of all of them."""

    sample: Sample
    disturbance: Disturbance


def sample_undisturbed(
    take: Callable[[int], Sample], seconds: float = REPEAT_SECONDS, between: Callable[[], object] = bool
) -> SampleResult:
    """Measure a sample by `take`, whose argument is the number of former tries, and repeat it while it is disturbed, up
    to REPEATS times. `between` is called before each repeat. No repeat begins once the samples together have taken
    `seconds`. The best one is clean, or else has the least share. Return the best sample, and the disturbance of all.
    """
    samples = [take(0)]
    while not samples[-1].is_clean and len(samples) <= REPEATS and sum(sample.seconds for sample in samples) < seconds:
        between()
        samples.append(take(len(samples)))
    best = min(samples, key=lambda sample: (not sample.is_clean, sample.share))
    away = sum(max(sample.away, sample.stolen) for sample in samples)
    used = 0 if best.is_clean else 1
    return SampleResult(best, Disturbance(sum(sample.seconds for sample in samples), away, len(samples) - 1, used))


def time_calls(call: Callable[[], object], calls: int = 1, threads: int = 1) -> Sample:
    """Time `calls` calls, at least one, in a row, as one sample. Each works on `threads` threads; if that is 1, on the
    calling thread."""
    switches, away_clock = _switches(threads), _thread_away_clock() if threads == 1 else _process_away_clock()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = time.perf_counter() - start
    away = min(max(away_clock(seconds), 0.0), seconds)
    return Sample(seconds, away, _switches(threads) - switches, _STEAL.share() * seconds, calls)


def time_each_call(arrange: Callable[[], Callable[[], object]], calls: int = 1, threads: int = 1) -> Sample:
    """Time `calls` calls, at least one, one by one, as one sample of the sum; `arrange` prepares and returns the next
    call, and is not timed. Each works on `threads` threads; if that is 1, on the calling thread. Run queue waits of
    several threads cover `arrange` too: all of them count."""
    switches, team = _switches(threads), None if threads == 1 else _process_away_clock()
    seconds = away = 0.0
    loop_start = time.perf_counter()
    for _ in range(calls):
        call = arrange()
        away_clock, start = _thread_away_clock(), time.perf_counter()
        call()
        elapsed = time.perf_counter() - start
        seconds += elapsed
        away += max(away_clock(elapsed), 0.0) if team is None else 0.0
    loop_seconds = time.perf_counter() - loop_start
    away = min(away if team is None else max(team(loop_seconds), 0.0), seconds)
    scaled_switches = round((_switches(threads) - switches) * seconds / loop_seconds)
    return Sample(seconds, away, scaled_switches, _STEAL.share() * seconds, calls)


def _switches(threads: int) -> int:
    """Return the involuntary context switches so far: of the calling thread, or with several threads, or where the
    system has no figures of threads, of the process."""
    who = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF) if threads == 1 else resource.RUSAGE_SELF
    return resource.getrusage(who).ru_nivcsw


AwayClock = Callable[[float], float]
"""A function from the seconds since its creation to the seconds without a processor among them."""


def _thread_away_clock() -> AwayClock:
    """Return a clock, started now, of the calling thread's wall time minus CPU time; it shows 0 if the CPU clock is too
    coarse."""
    start = time.thread_time()
    return lambda seconds: seconds - (time.thread_time() - start) if _has_fine_clock() else 0.0


def _process_away_clock() -> AwayClock:
    """Return a clock, started now, of the longest run queue wait of a thread of the process. A sleeping thread does not
    wait, so uneven work is no disturbance. The CPU time of the process is no measure: threads without work use none,
    and idle threads that spin hide the waits of others. On a system without these figures the clock shows 0, and only
    involuntary switches reveal a disturbance."""
    before = _run_queue_waits()
    return lambda seconds: max((wait - before.get(task, 0.0) for task, wait in _run_queue_waits().items()), default=0.0)


def _run_queue_waits() -> dict[str, float]:
    """Return each thread's seconds in run queues, by its id; empty if the system has no such figures, incomplete if a
    thread ends meanwhile."""
    by_thread = {}
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/schedstat", encoding="ascii") as file:
                by_thread[task] = int(file.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):  # the thread has ended, or the system has no such figures
        pass
    return by_thread


@cache
def _has_fine_clock() -> bool:
    """Return whether the CPU clock of a thread has steps that are short beside a sample: some count timer ticks."""
    before, until = time.thread_time(), time.perf_counter() + 10 * FINE_STEP_SECONDS
    while time.perf_counter() < until:
        now = time.thread_time()
        if now != before:
            return now - before < FINE_STEP_SECONDS
    return False


class _Steal:
    """The share of the processors' time that other guests stole in the last WINDOW."""

    def __init__(self) -> None:
        self._window_start, self._ticks_before, self._last_share = 0.0, dict[str, int](), 0.0

    def share(self) -> float:
        """Return the largest share that one of this process's processors lost, counted anew when WINDOW seconds have
        passed, else the former one; 0 if the system has no such figures."""
        now = time.perf_counter()
        if now - self._window_start >= WINDOW:
            stolen, window_seconds = _stolen_ticks(), now - self._window_start
            lost_ticks = max(
                (ticks - self._ticks_before[name] for name, ticks in stolen.items() if name in self._ticks_before),
                default=0,
            )
            self._last_share = min(1.0, lost_ticks / _TICKS / window_seconds)
            self._window_start, self._ticks_before = now, stolen
        return self._last_share


_TICKS = os.sysconf("SC_CLK_TCK")
_STEAL = _Steal()


def _stolen_ticks() -> dict[str, int]:
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return {}
    rows = [line.split() for line in lines if line.startswith("cpu")]
    return {row[0]: int(row[8]) for row in rows if row[0] in {f"cpu{n}" for n in allowed} and len(row) > 8}
