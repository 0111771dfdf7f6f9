"""Whether a thread had its processor while it was timed; and samples that are repeated until it had.

On a shared machine a thread loses its processor to other processes, to its control group's quota or to other guests.
The wall time of such a sample says nothing about the code that was timed. One thread is watched by its CPU time;
several by how long they waited for a processor, which neither a thread that spins nor one that has no work changes.
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

AWAY = 0.1
"""The share of a sample for which its thread may be off its processor."""
OFTEN = 100.0
"""Involuntary context switches a second that a quiet machine does not have."""
REPEATS = 3
"""How often a disturbed sample is repeated, at most."""
PATIENCE = 0.3
"""Seconds that a sample and its repeats take before no further repeat begins."""
MATTERS = 0.02
"""The share of all samples' time away from which on a reader is told."""
WINDOW = 0.1
"""Seconds over which the time stolen by other guests is taken: /proc/stat counts it in hundredths."""
SHORTEST = 1e-9
"""Seconds that a thread was on its processor at least, or it would not have come back."""
FINE = 1e-3
"""Seconds of the steps of a CPU clock that tells something about a sample."""


@dataclass(frozen=True)
class Taken:
    """What some calls took: seconds of wall time, and the seconds of these when the thread (of several that which
    waited longest) was off its processor; involuntary context switches; seconds stolen by other guests, roughly."""

    seconds: float
    away: float = 0.0
    switches: int = 0
    stolen: float = 0.0
    calls: int = 1

    @property
    def is_clean(self) -> bool:
        """Whether the thread was on its processor but for a moment."""
        rarely = self.switches <= 1 + OFTEN * self.seconds
        return rarely and max(self.away, self.stolen) <= AWAY * self.seconds

    @property
    def share(self) -> float:
        """The share of the time for which the thread was off its processor."""
        return max(self.away, self.stolen) / self.seconds if self.seconds > 0 else 0.0

    @property
    def wall(self) -> float:
        """Seconds of a call."""
        return self.seconds / self.calls

    @property
    def present(self) -> float:
        """Seconds of a call without those when its thread was off its processor."""
        return max(self.seconds - self.away, SHORTEST) / self.calls


@dataclass(frozen=True)
class Disturbance:
    """How far samples were disturbed, including rejected ones: the seconds of the samples, the seconds away, the number
    of repeats, and the number of samples used although none of their repeats was clean."""

    seconds: float = 0.0
    away: float = 0.0
    repeated: int = 0
    used: int = 0

    def __add__(self, other: Disturbance) -> Disturbance:
        return Disturbance(*map(add, astuple(self), astuple(other)))

    @property
    def share(self) -> float:
        """The share of the time for which the thread was off its processor."""
        return self.away / self.seconds if self.seconds > 0 else 0.0

    @property
    def matters(self) -> bool:
        """Whether a reader of the results should know."""
        return self.share >= MATTERS or self.used > 0

    def __str__(self) -> str:
        said = f"the machine was busy: off the processor for {self.share:.0%} of the measured time"
        used = f", {self.used} used although disturbed" if self.used else ""
        return f"{said}, {self.repeated} sample{'' if self.repeated == 1 else 's'} repeated{used}"


QUIET = Disturbance()
"""Nothing disturbed."""


@dataclass(frozen=True)
class Sampled:
    """A clean sample, or the least disturbed one of several; and how disturbed all of them were."""

    taken: Taken
    disturbance: Disturbance


def undisturbed(
    take: Callable[[int], Taken],
    seconds: float = PATIENCE,
    between: Callable[[], object] = bool,
) -> Sampled:
    """A sample that is taken again while it is disturbed; `take` is given how often it was taken before.

    `between` is called before each repeat. Repeats are bounded by their number, and none begins after some seconds.
    """
    every = [take(0)]
    while not every[-1].is_clean and len(every) <= REPEATS and sum(taken.seconds for taken in every) < seconds:
        between()
        every.append(take(len(every)))
    best = min(every, key=lambda taken: (not taken.is_clean, taken.share))
    away = sum(max(taken.away, taken.stolen) for taken in every)
    used = 0 if best.is_clean else 1
    return Sampled(best, Disturbance(sum(taken.seconds for taken in every), away, len(every) - 1, used))


def timed(call: Callable[[], object], calls: int = 1, threads: int = 1) -> Taken:
    """Time some calls, which work on that many threads: where it is one, on the calling one."""
    switches, waited = _switches(threads), _alone() if threads == 1 else _team()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = time.perf_counter() - start
    away = min(max(waited(seconds), 0.0), seconds)
    return Taken(seconds, away, _switches(threads) - switches, _STEAL.share() * seconds, calls)


def timed_each(arrange: Callable[[], Callable[[], object]], calls: int = 1, threads: int = 1) -> Taken:
    """Time some calls one by one: `arrange` gives the next call, and its own time does not count.

    Of several threads that wait for a processor it is not known when, so that all of it counts.
    """
    switches, team = _switches(threads), None if threads == 1 else _team()
    seconds = away = 0.0
    begun = time.perf_counter()
    for _ in range(calls):
        call = arrange()
        waited, start = _alone(), time.perf_counter()
        call()
        taken = time.perf_counter() - start
        seconds += taken
        away += max(waited(taken), 0.0) if team is None else 0.0
    passed = time.perf_counter() - begun
    away = min(away if team is None else max(team(passed), 0.0), seconds)
    switched = round((_switches(threads) - switches) * seconds / passed)
    return Taken(seconds, away, switched, _STEAL.share() * seconds, calls)


def _switches(threads: int) -> int:
    """The involuntary context switches so far: of the calling thread where there is one, of all where there are
    several."""
    who = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF) if threads == 1 else resource.RUSAGE_SELF
    return resource.getrusage(who).ru_nivcsw


Waited = Callable[[float], float]
"""Of the seconds that have passed since it was made, those without a core."""


def _alone() -> Waited:
    """What the CPU time of the calling thread lacks of the wall time; none where the clock's steps are too coarse."""
    start = time.thread_time()
    return lambda seconds: seconds - (time.thread_time() - start) if _has_fine_clock() else 0.0


def _team() -> Waited:
    """What that thread of the process waited for a core which waited longest.

    A thread that sleeps does not wait, so that uneven work is no disturbance. The CPU time of the process would not do:
    serial work leaves threads without any, and idle threads that spin hide what others lack. Where the system does not
    say how long threads wait, their involuntary switches alone tell.
    """
    before = _waits()
    return lambda seconds: max((wait - before.get(task, 0.0) for task, wait in _waits().items()), default=0.0)


def _waits() -> dict[str, float]:
    """The seconds for which each thread has waited for a processor, by its number; empty where nothing says so."""
    by_thread = {}
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/schedstat", encoding="ascii") as file:
                by_thread[task] = int(file.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):  # it has ended meanwhile, or the system keeps no such figures
        pass
    return by_thread


@cache
def _has_fine_clock() -> bool:
    """Whether the CPU clock of a thread moves in steps that are small beside a sample: some count timer ticks."""
    before, until = time.thread_time(), time.perf_counter() + 10 * FINE
    while time.perf_counter() < until:
        now = time.thread_time()
        if now != before:
            return now - before < FINE
    return False


class _Steal:
    """The share of the last WINDOW that other guests of the machine took from the processors of this process."""

    def __init__(self) -> None:
        self._at, self._before, self._last = 0.0, dict[str, int](), 0.0

    def share(self) -> float:
        """The share, of the processor that lost most; 0 where nothing says so."""
        now = time.perf_counter()
        if now - self._at >= WINDOW:
            stolen, passed = _stolen(), now - self._at
            lost = max(
                (ticks - self._before[name] for name, ticks in stolen.items() if name in self._before), default=0
            )
            self._last = min(1.0, lost / _TICKS / passed)
            self._at, self._before = now, stolen
        return self._last


_TICKS = os.sysconf("SC_CLK_TCK")
_STEAL = _Steal()


def _stolen() -> dict[str, int]:
    """The ticks that were stolen from each processor that the process may use."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return {}
    rows = [line.split() for line in lines if line.startswith("cpu")]
    return {row[0]: int(row[8]) for row in rows if row[0] in {f"cpu{n}" for n in allowed} and len(row) > 8}
