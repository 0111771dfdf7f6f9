"""The protocol: contenders take turns on the same fresh inputs, and a wrong result has no time.

A round runs every contender once: its output is poisoned with NaN, its call is timed, a probe of the machine's ceiling
runs beside it for as long, and its result is compared with the float64 reference. With several threads each is measured
when the idle threads of the others have stopped spinning and its own are awake: see `settle`.

A call that follows upon anything else is cold, be it another contender, the comparison, the probe, or 2 ms of sleep: on
a shared machine a product of 0.3 ms then takes 0.45, one of torch's up to twice its time. So short calls are made
several times in succession, as many for each contender as the fastest makes in `BURST`. Each is timed, on a poisoned
output, and counts; the last one's result is compared. The longest time in a row is that of a cold call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from secrets import randbits
from statistics import median

import numpy as np

from benchmarks.bounded import Array, Bounded
from benchmarks.contenders import Contender, Settings, limit_threads
from benchmarks.workload import Step, Workload
from compiler.errors import StrataError
from compiler.targets.cpu.ceilings import Arithmetic, Bandwidth, Ceiling

ROUNDS = 9
"""The rounds after which medians mean something."""
SECONDS = 60.0
"""The default budget for the rounds of one workload."""
BURST = 4e-3
"""Seconds that the calls of a round last, for each contender, at least."""
SETTLED = 0.1
"""Seconds after which idle threads sleep: OpenBLAS's spin for 2^26 cycles, a libgomp's for 6 ms."""

CEILINGS: dict[str, type[Arithmetic] | type[Bandwidth]] = {"flops": Arithmetic, "bytes": Bandwidth}
"""The ceiling of each limit of a workload."""


@dataclass(frozen=True)
class Plan:
    """How long to measure: rounds, and the seconds after which no further round begins."""

    rounds: int = ROUNDS
    seconds: float = SECONDS


@dataclass(frozen=True)
class Sample:
    """One timed call, and the ceiling beside it in units of work per second."""

    seconds: float
    ceiling: float


@dataclass
class Run:
    """One contender at work on its own output; `wrong` is what is wrong with its result, if something is."""

    contender: Contender
    step: Step
    out: Array
    samples: list[Sample] = field(default_factory=list)
    wrong: str | None = None

    @property
    def seconds(self) -> float | None:
        """The median time of a call; none before the first, and none for a wrong result."""
        return median(s.seconds for s in self.samples) if self.samples and self.wrong is None else None


@dataclass
class Measurement:
    """What is known of one workload so far; `stopped` says why there are fewer rounds than planned.

    calls: how many each contender makes in succession in a round.
    """

    workload: Workload
    settings: Settings
    plan: Plan
    seed: int
    runs: list[Run] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    calls: int = 1
    rounds: int = 0
    stopped: str | None = None
    interrupted: bool = False


Watch = Callable[[Measurement], None]


def measure(
    workload: Workload,
    contenders: Sequence[Contender],
    settings: Settings | None = None,
    plan: Plan | None = None,
    seed: int | None = None,
    watch: Watch = lambda measurement: None,
) -> Measurement:
    """Measure a workload; `watch` sees the measurement after every sample.

    Contenders that refuse are left out and named. An interruption ends the measurement, not the program: what was
    measured is kept. Without a seed the inputs are new each time.
    """
    chosen = randbits(32) if seed is None else seed
    measurement = Measurement(workload, settings or Settings(), plan or Plan(), chosen)
    try:
        with limit_threads(measurement.settings.threads):
            _measure(measurement, contenders, watch)
    except KeyboardInterrupt:
        measurement.interrupted = True
        measurement.stopped = "it was interrupted"
    return measurement


def _measure(measurement: Measurement, contenders: Sequence[Contender], watch: Watch) -> None:
    workload, settings = measurement.workload, measurement.settings
    inputs = workload.draw(measurement.seed)
    expected = workload.expected(inputs)
    for contender in contenders:
        out = np.empty(workload.shape, np.float32)
        try:
            step = contender.bind(workload, settings, inputs, out)
        except StrataError as error:
            measurement.left_out[contender.name] = str(error)
            continue
        measurement.runs.append(Run(contender, step, out))
    warm = [_warm(run, expected) for run in measurement.runs]
    right = [seconds for run, seconds in zip(measurement.runs, warm, strict=True) if run.wrong is None]
    measurement.calls = max(1, ceil(BURST / min(right, default=BURST)))
    watch(measurement)
    _take_rounds(measurement, expected, _ceiling(workload, settings), watch)


def _ceiling(workload: Workload, settings: Settings) -> Ceiling:
    ceiling: Ceiling = CEILINGS[workload.limit](settings.threads)
    ceiling.rate(0.0)
    return ceiling


def _warm(run: Run, expected: Bounded) -> float:
    """Seconds of a contender's second call."""
    return _calls(run, 2, expected)[-1]


def _calls(run: Run, count: int, expected: Bounded) -> list[float]:
    """Seconds of each of several calls in succession, each on a poisoned output; the last result is looked at."""
    seconds = []
    for _ in range(count):
        run.out.fill(np.nan)
        start = time.perf_counter()
        result = run.step()
        seconds.append(time.perf_counter() - start)
    run.wrong = run.wrong or fault(result, expected)
    return seconds


def _take_rounds(measurement: Measurement, expected: Bounded, ceiling: Ceiling, watch: Watch) -> None:
    start = time.perf_counter()
    for done in range(measurement.plan.rounds):
        spent = time.perf_counter() - start
        if done and spent + spent / done > measurement.plan.seconds:
            measurement.stopped = f"the budget of {measurement.plan.seconds:g} s ended"
            return
        for run in measurement.runs:
            if run.wrong is None:
                settle(run.step, measurement.settings.threads)
                seconds = _calls(run, measurement.calls, expected)
                beside = ceiling.rate(sum(seconds))
                run.samples += [Sample(one, beside) for one in seconds]
            watch(measurement)
        measurement.rounds += 1


def settle(step: Callable[[], object], threads: int) -> None:
    """With several threads: wait until the idle ones of other libraries sleep, then let a step wake its own.

    Threads that look for work while they have none take a core from the contender that is measured.
    """
    if threads > 1:
        time.sleep(SETTLED)
        step()


def fault(result: Array, expected: Bounded) -> str | None:
    """What is wrong with a result, in a few words; nothing for a right one."""
    if result.shape != expected.value.shape:
        return f"its shape is {result.shape}, not {expected.value.shape}"
    close = np.abs(result - expected.value) <= expected.tolerance()
    if close.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~close)[0])
    count = close.size - int(np.count_nonzero(close))
    return f"{count} of {close.size} elements, at {place} {result[place]:.6g} for {expected.value[place]:.6g}"
