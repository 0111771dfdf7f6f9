"""Samples of a call until their median is precise enough, each beside a probe of the machine's current rate.

A sample whose threads were preempted is repeated; see `compiler.targets.cpu.presence`. The time of a call on one thread
is the time on its processor, so that a remaining disturbance does not count.
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
from compiler.targets.cpu.ceilings import ProbeReading
from compiler.targets.cpu.presence import QUIET, Disturbance, Sample, sample_undisturbed, time_calls, time_each_call

Call = Callable[[], None]


class ArrangedCall(ABC):
    """A call whose operands are set up before each execution, outside the timed region."""

    @abstractmethod
    def arrange(self) -> Call:
        """Set up the operands, and return the call to time."""

    def __call__(self) -> None:
        """Set up the operands and call."""
        self.arrange()()


_OF_MEDIAN = 1.2533 * 1.4826
"""The factor from the median absolute deviation, over the root of the count, to the standard error of the median, for
normal samples: the error is 1.2533 standard deviations over that root, and a standard deviation 1.4826 median ones."""


LONGEST = 0.02
"""The maximum seconds of a probe: a shorter one is less precise, a longer one delays trials."""


class Probe(Protocol):
    """A measurement of the machine's current rate."""

    def probe(self, seconds: float) -> ProbeReading:
        """Measure the rate in operations (or bytes) per second, for about `seconds`."""


class YardstickProbe:
    """A candidate of a known cost as a probe: the rate is its cost over its current time. threads: of its call.

    Contention for cores, caches or memory slows two candidates of one program more alike than a candidate and a loop in
    registers. A probe takes several calls. If one call `is_long`, the probe of the machine's ceiling is steadier.
    """

    def __init__(self, call: Call, cost: float, threads: int = 1) -> None:
        self._call, self._cost, self._threads = call, cost, threads
        self._taken = sample_undisturbed(lambda repeat: taken(call, 1, threads)).sample.present

    @property
    def is_long(self) -> bool:
        """Whether one call takes longer than a probe should."""
        return self._taken > LONGEST

    def probe(self, seconds: float) -> ProbeReading:
        """Measure the rate, the known cost over the current seconds of a call, for about `seconds`, at most LONGEST."""
        calls = max(1, round(min(seconds, LONGEST) / max(self._taken, 1e-7)))
        sampled = sample_undisturbed(lambda repeat: taken(self._call, max(1, calls >> repeat), self._threads))
        self._taken = sampled.sample.present
        return ProbeReading(self._cost / self._taken, sampled.disturbance)


@dataclass(frozen=True)
class TimedSample:
    """A sample. seconds: of one call. rate: of the probe beside it, in operations or bytes per second. disturbance: of
    both, repeats included."""

    seconds: float
    rate: float
    disturbance: Disturbance = QUIET

    @property
    def cost(self) -> float:
        """The operations (or bytes) that the machine could have done in the time of a call."""
        return self.seconds * self.rate


@dataclass(frozen=True)
class Samples:
    """The selected samples of a call, and the disturbance of all samples that were taken."""

    selected: tuple[TimedSample, ...]
    disturbance: Disturbance


@dataclass(frozen=True)
class Clock:
    """Times calls in samples, each beside a probe. ceiling: the probe of the machine's rate. sampling: the number and
    length of samples. threads: those of the call; above 1 a call precedes each sample, since threads sleep between
    samples. between: called before a disturbed sample is repeated."""

    ceiling: Probe
    sampling: Sampling
    threads: int = 1
    between: Callable[[], object] = bool

    def samples(self, call: Call, seconds: float) -> Samples:
        """Sample a call whose first execution took `seconds`, until the median is precise enough, `sampling.seconds`
        are spent or `sampling.max_samples` are taken."""
        start = time.perf_counter()
        calls = self.calls(call, seconds)
        samples: list[TimedSample] = []
        while len(samples) < self.sampling.max_samples:
            samples.append(self.sample(call, calls))
            spent = time.perf_counter() - start
            if spent >= self.sampling.seconds or self._is_known(samples):
                break
        return select_samples(samples, self.sampling.min_samples)

    def calls(self, call: Call, seconds: float) -> int:
        """The number of calls of a sample: `min_seconds` over the time of a call, rounded up. If the first call took
        less than `min_seconds`, a second one with warm caches is timed, its `arrange` included, since that is repeated
        with each call."""
        once = seconds if seconds >= self.sampling.min_seconds else max(time_calls(call).present, 1e-7)
        return max(1, ceil(self.sampling.min_seconds / once))

    def sample(self, call: Call, calls: int) -> TimedSample:
        """Time a sample of `calls` calls, then probe for as long, at most LONGEST seconds. A repeat of a disturbed
        sample has half as many calls: a short one fits into a quiet moment sooner.
        """

        def take(repeat: int) -> Sample:
            if self.threads > 1 or repeat:
                call()
            return taken(call, max(1, calls >> repeat), self.threads)

        sampled = sample_undisturbed(take, between=self.between)
        beside = self.ceiling.probe(min(sampled.sample.seconds, LONGEST))
        return TimedSample(sampled.sample.present, beside.rate, sampled.disturbance + beside.disturbance)

    def _is_known(self, samples: list[TimedSample]) -> bool:
        """Whether there are enough samples, twice as many if one was disturbed, and their median is precise enough."""
        disturbed = any(sample.disturbance.matters for sample in samples)
        enough = len(samples) >= self.sampling.min_samples * (2 if disturbed else 1)
        return enough and standard_error([sample.cost for sample in samples]) <= self.sampling.spread


def taken(call: Call, calls: int = 1, threads: int = 1) -> Sample:
    """Time `calls` calls together, each of which runs on `threads` threads, without the `arrange` of an ArrangedCall;
    the seconds of the sample are those of one call."""
    if isinstance(call, ArrangedCall):
        return time_each_call(call.arrange, calls, threads)
    return time_calls(call, calls, threads)


def select_samples(samples: Sequence[TimedSample], fewest: int) -> Samples:
    """The undisturbed samples if they are at least `fewest`; else the less disturbed half, at least `fewest`. Rejected
    samples count as repeated."""
    clean = [sample for sample in samples if not sample.disturbance.used]
    ranked = sorted(samples, key=lambda sample: (sample.disturbance.used, sample.disturbance.share))
    used_samples = clean if len(clean) >= fewest else ranked[: max(fewest, len(samples) // 2)]
    total = sum((sample.disturbance for sample in samples), QUIET)
    used = sum(sample.disturbance.used > 0 for sample in used_samples)
    return Samples(
        tuple(used_samples), replace(total, repeated=total.repeated + len(samples) - len(used_samples), used=used)
    )


def standard_error(costs: list[float]) -> float:
    """The standard error of the median, relative to the median. Of 1.0, 1.1, 1.3, 1.0: median 1.05, median deviation
    0.05, so 1.858 * 0.05 / 2 / 1.05 = 0.044."""
    middle = median(costs)
    return _OF_MEDIAN * median(abs(cost - middle) for cost in costs) / sqrt(len(costs)) / middle
