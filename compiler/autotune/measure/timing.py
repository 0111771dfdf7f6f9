"""Samples of a call until their median is known, each with a probe beside it of what the machine can do just now."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import median
from typing import Protocol

from compiler.autotune.measure.limits import Sampling

Call = Callable[[], None]

_OF_MEDIAN = 1.2533 * 1.4826
"""The standard error of a median is 1.25 deviations over the root of the count; a deviation 1.48 median ones."""


LONGEST = 0.02
"""Seconds after which a probe of the ceiling has seen enough: a short one reads too little, a long one costs trials."""


class Probe(Protocol):
    """What tells how fast the machine is just now."""

    def rate(self, seconds: float) -> float:
        """Operations (or bytes) per second, measured over about that many seconds."""


class Yardstick:
    """A candidate of a known cost as a probe: what it takes now says what the machine can do for such programs.

    Whatever slows the machine, the cores, the caches or the memory, slows two candidates of one program more alike than
    a candidate and a loop in registers. It takes several calls for a probe: where one `is_long`, it is no better than
    the machine's ceiling, whose probes are steadier.
    """

    def __init__(self, call: Call, cost: float) -> None:
        self._call, self._cost = call, cost
        self._taken = time_of(call)

    @property
    def is_long(self) -> bool:
        """Whether one call takes longer than a probe should."""
        return self._taken > LONGEST

    def rate(self, seconds: float) -> float:
        """Operations per second, now: its cost over what a call takes."""
        count = max(1, round(min(seconds, LONGEST) / max(self._taken, 1e-7)))
        self._taken = time_of(self._call, count) / count
        return self._cost / self._taken


@dataclass(frozen=True)
class Clock:
    """How calls are timed: beside which probe, and whether their threads sleep between samples."""

    ceiling: Probe
    sampling: Sampling
    sleeps: bool = False

    def samples(self, call: Call, seconds: float) -> list[tuple[float, float]]:
        """Seconds of a call and the probe's rate, for each sample; a first call took those seconds."""
        start = time.perf_counter()
        calls = self.calls(call, seconds)
        found: list[tuple[float, float]] = []
        while len(found) < self.sampling.most:
            found.append(self.sample(call, calls))
            spent = time.perf_counter() - start
            if spent >= self.sampling.seconds or (len(found) >= self.sampling.least and self._is_known(found)):
                break
        return found

    def calls(self, call: Call, seconds: float) -> int:
        """How many calls a sample takes; where a first one was short, by another that finds the caches warm."""
        once = seconds if seconds >= self.sampling.min_seconds else max(time_of(call), 1e-7)
        return max(1, ceil(self.sampling.min_seconds / once))

    def sample(self, call: Call, calls: int) -> tuple[float, float]:
        """Seconds of a call, the mean of so many, and the probe's rate over as long a time, or over LONGEST."""
        if self.sleeps:
            call()
        seconds = time_of(call, calls)
        return seconds / calls, self.ceiling.rate(min(seconds, LONGEST))

    def _is_known(self, found: list[tuple[float, float]]) -> bool:
        return standard_error([seconds * rate for seconds, rate in found]) <= self.sampling.spread


def standard_error(costs: list[float]) -> float:
    """The standard error of the median, as a part of it."""
    middle = median(costs)
    return _OF_MEDIAN * median(abs(cost - middle) for cost in costs) / sqrt(len(costs)) / middle


def time_of(call: Call, calls: int = 1) -> float:
    """Seconds that some calls take."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start
