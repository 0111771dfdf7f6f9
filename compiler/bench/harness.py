"""The protocol: contenders run in turns on the same new inputs, and a wrong result has no time.

A round probes the machine's ceiling, then runs every contender once: its output is poisoned with NaN, its call is
timed, and its result is compared with the float64 reference. With several threads the ceiling and each contender are
measured when the idle threads of the others have stopped spinning and their own are awake: see `settle`.

All contenders have the same ceiling: the median of the probes whose threads were not off their processors. If a
contender is above it, the probe was disturbed: it is repeated, and if that does not help there is no ceiling.

A call that follows upon anything else is cold, be it another contender, the comparison, the probe, or 2 ms of sleep: on
a shared machine a product of 0.3 ms then takes 0.45, one of torch's up to twice its time. So short calls are made
several times in succession, as many for each contender as the fastest makes in `BURST`. Each is timed, on a poisoned
output, and counts; the last one's result is compared. The longest time in a row is that of a cold call.

A call whose thread was off its processor (see `compiler.targets.cpu.presence`) does not count; the calls of that round
are repeated, a few times. Where all were disturbed the least disturbed one counts, and the row is marked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from secrets import randbits
from statistics import median

import numpy as np

from compiler.bench.contenders import Contender, Settings
from compiler.bench.error_bounds import Array, Bounded
from compiler.bench.workload import Step, Workload
from compiler.support.errors import StrataError
from compiler.targets.cpu.ceilings import Arithmetic, Bandwidth, Ceiling, ProbeReading, plausible_share
from compiler.targets.cpu.presence import QUIET, REPEAT_SECONDS, REPEATS, Disturbance, Sample, time_calls

ROUNDS = 9
"""The default number of rounds, enough for meaningful medians."""
SECONDS = 60.0
"""The default budget in seconds for the rounds of one workload."""
BURST = 4e-3
"""The seconds of the fastest contender's calls in a round; the other contenders make as many calls."""
SETTLED = 0.1
"""Seconds after which idle threads sleep: those of OpenBLAS spin for 2^26 cycles, those of libgomp for 6 ms."""

PROBE = 0.02
"""The seconds of a probe of the ceiling."""
REPROBES = 3
"""The maximum repetitions of the probe if a contender is above the ceiling."""

CEILINGS: dict[str, type[Arithmetic] | type[Bandwidth]] = {"flops": Arithmetic, "bytes": Bandwidth}
"""Map each limit of a workload to the class of its ceiling."""


@dataclass(frozen=True)
class Plan:
    """The duration of a measurement: rounds, and the seconds within which a further round must be expected to end; the
    first round always runs.

    >>> strata.bench.Plan(rounds=3).seconds
    60.0
    """

    rounds: int = ROUNDS
    seconds: float = SECONDS


@dataclass
class Run:
    """A contender with its step, a function that runs it and returns the result, its output array, seconds of each
    counted call, disturbance, and its result's fault or None."""

    contender: Contender
    step: Step
    out: Array
    samples: list[float] = field(default_factory=list)
    disturbance: Disturbance = QUIET
    wrong: str | None = None

    @property
    def seconds(self) -> float | None:
        """The median seconds of a call; None before the first one, and for a wrong result."""
        return median(self.samples) if self.samples and self.wrong is None else None


@dataclass
class Measurement:
    """The state of the measurement of a workload; `stopped` is the reason for fewer rounds than planned, None without
    one.

    calls: the calls in succession of each contender in a round. probes: of the ceiling, in units of work per second.
    left_out: the reason for which a contender does not run, by its name. rounds: the completed ones. runs: the
    contenders that run. seed: that of the inputs. interrupted: whether Ctrl-C ended it.

    >>> workload = strata.bench.workloads.find("matmul:4x8x2")
    >>> settings = strata.bench.contenders.Settings()
    >>> measurement = strata.bench.Measurement(workload, settings, strata.bench.Plan(rounds=3), seed=0)
    >>> measurement.rounds, measurement.runs
    (0, [])
    """

    workload: Workload
    settings: Settings
    plan: Plan
    seed: int
    runs: list[Run] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    probes: list[ProbeReading] = field(default_factory=list)
    calls: int = 1
    rounds: int = 0
    stopped: str | None = None
    interrupted: bool = False

    @property
    def ceiling(self) -> float | None:
        """The ceiling in units of work per second: the median of the probes, or the fastest one if a contender exceeds
        the median. Disturbed probes count only if all are. None before the first probe, and if a contender exceeds all
        probes that count, by more than rounding to whole percents."""
        rates = [probe.rate for probe in self.probes if not probe.disturbance.used] or [
            probe.rate for probe in self.probes
        ]
        fastest = max(self.rates, default=0.0)
        tops = (median(rates), max(rates)) if rates else ()
        return next((top for top in tops if plausible_share(fastest / top) is not None), None)

    @property
    def rates(self) -> Iterator[float]:
        """The units of work per second of each contender with a time."""
        return (self.workload.work / run.seconds for run in self.runs if run.seconds is not None)


Watch = Callable[[Measurement], None]


def measure(
    workload: Workload,
    contenders: Sequence[Contender],
    settings: Settings | None = None,
    plan: Plan | None = None,
    seed: int | None = None,
    watch: Watch = lambda measurement: None,
) -> Measurement:
    """Measure a workload; `watch` is called with the measurement once before the rounds, then after each contender's
    samples of a round.

    Contenders whose `bind` raises a StrataError are listed in `left_out`. An interruption ends the measurement, with
    its samples. Without a seed the inputs are new each time.
    """
    from threadpoolctl import threadpool_limits

    chosen = randbits(32) if seed is None else seed
    measurement = Measurement(workload, settings or Settings(), plan or Plan(), chosen)
    try:
        with threadpool_limits(limits=measurement.settings.threads):
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
    ceiling: Ceiling = CEILINGS[workload.limit](settings.threads)
    ceiling.probe(0.0)
    _take_rounds(measurement, expected, ceiling, watch)
    for _ in range(REPROBES):
        if measurement.ceiling is None:
            _probe(measurement, ceiling)


def _probe(measurement: Measurement, ceiling: Ceiling) -> None:
    """Add a probe of the ceiling of PROBE seconds, taken when threads of other libraries have stopped spinning."""
    settle(lambda: ceiling.probe(0.0), measurement.settings.threads)
    measurement.probes.append(ceiling.probe(PROBE))


def _warm(run: Run, expected: Bounded) -> float:
    """Call a contender twice, check the second result against `expected`, return the wall seconds of that call."""
    return _calls(run, 2, expected, 1)[-1].wall


def _calls(run: Run, count: int, expected: Bounded, threads: int) -> list[Sample]:
    """Time `count` calls in succession, each on an output filled with NaN; check the last result (`run.wrong`).
    threads: those a call uses, whose preemption a sample counts."""
    samples = []
    result = run.out

    def call() -> None:
        nonlocal result
        result = run.step()

    for _ in range(count):
        run.out.fill(np.nan)
        samples.append(time_calls(call, 1, threads))
    run.wrong = run.wrong or fault(result, expected)
    return samples


def _sample(run: Run, count: int, expected: Bounded, threads: int) -> None:
    """Add a round's samples of a contender to the run: at most `count` undisturbed calls, or the least disturbed one if
    all are disturbed. Bursts of `count` calls are repeated for these, at most REPEATS times and until the calls took
    REPEAT_SECONDS."""
    samples, clean, bursts = list[Sample](), list[Sample](), 0
    while bursts <= REPEATS and len(clean) < count and sum(call.seconds for call in samples) < REPEAT_SECONDS:
        samples += _calls(run, count, expected, threads)
        clean = [call for call in samples if call.is_clean][:count]
        bursts += 1
    kept = clean or [min(samples, key=lambda call: call.share)]
    run.samples += [call.wall for call in kept]
    away = sum(call.share * call.seconds for call in samples)
    used = len(kept) - len(clean)
    repeated = sum(not call.is_clean for call in samples) - used
    run.disturbance += Disturbance(sum(call.seconds for call in samples), away, repeated, used)


def _take_rounds(measurement: Measurement, expected: Bounded, ceiling: Ceiling, watch: Watch) -> None:
    start = time.perf_counter()
    threads = measurement.settings.threads
    for done in range(measurement.plan.rounds):
        spent = time.perf_counter() - start
        if done and spent + spent / done > measurement.plan.seconds:
            measurement.stopped = f"the budget of {measurement.plan.seconds:g} s ended"
            return
        _probe(measurement, ceiling)
        for run in measurement.runs:
            if run.wrong is None:
                settle(run.step, threads)
                _sample(run, measurement.calls, expected, threads)
            watch(measurement)
        measurement.rounds += 1


def settle(step: Callable[[], object], threads: int) -> None:
    """For several threads: wait until idle threads of other libraries sleep, then wake the step's own by a call.

    Idle threads that spin take cores from the measured contender.
    """
    if threads > 1:
        time.sleep(SETTLED)
        step()


def fault(output: Array, expected: Bounded) -> str | None:
    """The fault of a wrong result as a sentence, with its shape, or the worst element, its error and its tolerance;
    None for a right one.

    >>> workload = strata.bench.workloads.find("matmul:4x8x2")
    >>> A, B = workload.draw(seed=0)
    >>> strata.bench.fault(A @ B, workload.expected([A, B])) is None
    True
    >>> strata.bench.fault(A, workload.expected([A, B]))
    'its shape is (4, 8), not (4, 2)'
    """
    if output.shape != expected.value.shape:
        return f"its shape is {output.shape}, not {expected.value.shape}"
    error, allowed = np.abs(output - expected.value), np.broadcast_to(expected.tolerance(), expected.value.shape)
    close = error <= allowed
    if close.all():
        return None
    excess = np.where(close, 0.0, np.nan_to_num(error / allowed, nan=np.inf))
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    count = close.size - int(np.count_nonzero(close))
    worst = f"error {error[place]:.1e}, allowed {allowed[place]:.1e}"
    difference = f"{output[place]:.6g} for {expected.value[place]:.6g}"
    return f"{count} of {close.size} elements, the worst at {place}: {difference}, {worst}"
