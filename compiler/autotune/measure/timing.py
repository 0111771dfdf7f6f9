"""Samples of a call until their median is known, each beside a probe of the machine's rate at that moment.

A sample whose threads were off their processors is repeated; see `compiler.targets.cpu.presence`. The time of a call on
one thread is that on its processor, so that what remains of a disturbance does not count.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from statistics import median
from typing import Protocol

from compiler.autotune.measure.limits import Sampling
from compiler.targets.cpu.ceilings import Reading
from compiler.targets.cpu.presence import QUIET, Disturbance, Taken, timed, timed_each, undisturbed

Call = Callable[[], None]


class ArrangedCall(ABC):
    """A call whose operands are set up before each call: `arrange` does that, and gives the call to time."""

    @abstractmethod
    def arrange(self) -> Call:
        """Put the operands in place, and give the call."""

    def __call__(self) -> None:
        """Both."""
        self.arrange()()


_OF_MEDIAN = 1.2533 * 1.4826
"""The standard error of a median is 1.25 deviations over the root of the count; a deviation 1.48 median ones."""


LONGEST = 0.02
"""Seconds after which a probe of the ceiling has seen enough: a short one reads too little, a long one costs trials."""


class Probe(Protocol):
    """What tells how fast the machine is just now."""

    def probe(self, seconds: float) -> Reading:
        """Operations (or bytes) per second, measured over about that many seconds."""


class YardstickProbe:
    """A candidate of a known cost as a probe: its time says what the machine can do for such programs now.

    Whatever slows the machine, the cores, the caches or the memory, slows two candidates of one program more alike than
    a candidate and a loop in registers. It takes several calls for a probe: where one `is_long`, it is no better than
    the machine's ceiling, whose probes are steadier.
    """

    def __init__(self, call: Call, cost: float, threads: int = 1) -> None:
        self._call, self._cost, self._threads = call, cost, threads
        self._taken = undisturbed(lambda repeat: taken(call, 1, threads)).taken.present

    @property
    def is_long(self) -> bool:
        """Whether one call takes longer than a probe should."""
        return self._taken > LONGEST

    def probe(self, seconds: float) -> Reading:
        """Operations per second, now: its cost over what a call takes."""
        calls = max(1, round(min(seconds, LONGEST) / max(self._taken, 1e-7)))
        sampled = undisturbed(lambda repeat: taken(self._call, max(1, calls >> repeat), self._threads))
        self._taken = sampled.taken.present
        return Reading(self._cost / self._taken, sampled.disturbance)


@dataclass(frozen=True)
class TimedSample:
    """Seconds of a call, the probe's rate beside it, and how both were disturbed, repeats included."""

    seconds: float
    rate: float
    disturbance: Disturbance = QUIET

    @property
    def cost(self) -> float:
        """What the machine could have done meanwhile, in operations (or bytes)."""
        return self.seconds * self.rate


@dataclass(frozen=True)
class Samples:
    """The samples that count, and how all that were taken were disturbed."""

    kept: tuple[TimedSample, ...]
    disturbance: Disturbance


@dataclass(frozen=True)
class Clock:
    """The method of timing calls: the probe beside them, the number of threads (several sleep between samples), and the
    action before a disturbed sample is repeated."""

    ceiling: Probe
    sampling: Sampling
    threads: int = 1
    between: Callable[[], object] = bool

    def samples(self, call: Call, seconds: float) -> Samples:
        """Samples of a call whose first took those seconds."""
        start = time.perf_counter()
        calls = self.calls(call, seconds)
        samples: list[TimedSample] = []
        while len(samples) < self.sampling.most:
            samples.append(self.sample(call, calls))
            spent = time.perf_counter() - start
            if spent >= self.sampling.seconds or self._is_known(samples):
                break
        return chosen(samples, self.sampling.least)

    def calls(self, call: Call, seconds: float) -> int:
        """How many calls a sample takes; where a first one was short, by another that finds the caches warm. What is
        done before each call counts here: many of them would take long."""
        once = seconds if seconds >= self.sampling.min_seconds else max(timed(call).present, 1e-7)
        return max(1, ceil(self.sampling.min_seconds / once))

    def sample(self, call: Call, calls: int) -> TimedSample:
        """A sample of so many calls, fewer where it is repeated: a short one finds a quiet moment sooner. The probe
        takes as long a time, or LONGEST."""

        def take(repeat: int) -> Taken:
            if self.threads > 1 or repeat:
                call()
            return taken(call, max(1, calls >> repeat), self.threads)

        sampled = undisturbed(take, between=self.between)
        beside = self.ceiling.probe(min(sampled.taken.seconds, LONGEST))
        return TimedSample(sampled.taken.present, beside.rate, sampled.disturbance + beside.disturbance)

    def _is_known(self, samples: list[TimedSample]) -> bool:
        """Whether there are enough samples, and their spread says so; a few of a busy machine may agree by chance."""
        disturbed = any(sample.disturbance.matters for sample in samples)
        enough = len(samples) >= self.sampling.least * (2 if disturbed else 1)
        return enough and standard_error([sample.cost for sample in samples]) <= self.sampling.spread


def taken(call: Call, calls: int = 1, threads: int = 1) -> Taken:
    """What some calls take; of arranged ones, without what that takes."""
    if isinstance(call, ArrangedCall):
        return timed_each(call.arrange, calls, threads)
    return timed(call, calls, threads)


def chosen(samples: Sequence[TimedSample], fewest: int) -> Samples:
    """The clean samples, if there are enough; else the less disturbed half of all, but enough. Rejected samples count
    as repeated."""
    clean = [sample for sample in samples if not sample.disturbance.used]
    ranked = sorted(samples, key=lambda sample: (sample.disturbance.used, sample.disturbance.share))
    kept = clean if len(clean) >= fewest else ranked[: max(fewest, len(samples) // 2)]
    total = sum((sample.disturbance for sample in samples), QUIET)
    used = sum(sample.disturbance.used > 0 for sample in kept)
    return Samples(tuple(kept), replace(total, repeated=total.repeated + len(samples) - len(kept), used=used))


def standard_error(costs: list[float]) -> float:
    """The standard error of the median, as a part of it."""
    middle = median(costs)
    return _OF_MEDIAN * median(abs(cost - middle) for cost in costs) / sqrt(len(costs)) / middle
