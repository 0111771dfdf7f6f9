"""The runner process: check the results of an artefact, then time it."""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.network import NetworkCall, empty_like, native_call
from compiler.autotune.measure.timing import Call, Clock, Samples, YardstickProbe, select_samples, taken
from compiler.database.outcome import MEASURED, NETWORK, Outcome
from compiler.dialects.functions import SLOT_ALIGNMENT
from compiler.driver.reference.cases import ReferenceCase, ReferenceCases
from compiler.driver.reference.subject import Subject
from compiler.driver.reference.tolerance import fault, poison
from compiler.driver.units.unit import Unit
from compiler.support.errors import TargetError
from compiler.targets.arguments import Argument, Array, new_array
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.ceilings import Arithmetic, Bandwidth, plausible_share
from compiler.types.machines import host

if TYPE_CHECKING:
    from compiler.autotune.measure.builder import TargetArtefact

CHECKED = 2
"""The number of sets of inputs on which a candidate is checked."""
REPROBES = 2
"""The maximum number of times that a candidate with a rate above the ceiling is timed again."""
HELD = 32
"""The maximum number of candidates that stay loaded while they take turns."""
HELD_BYTES = 1 << 30
"""The maximum number of bytes in the copies of constants of candidates that stay loaded."""


@dataclass(frozen=True)
class Yardstick:
    """A candidate of a known cost, beside which others are timed. `number` identifies it among others of a subject."""

    number: int
    artefact: Unit
    cost: float


@dataclass(frozen=True)
class RunnerJob:
    """A job of a runner: an artefact, timed beside a yardstick or, without one, the machine's ceiling."""

    artefact: TargetArtefact
    yardstick: Yardstick | None = None


class MeasureJob(RunnerJob):
    """The job to check an artefact and time it."""


class SampleJob(RunnerJob):
    """The job to take one sample of an artefact, which is loaded and checked the first time."""


@dataclass(frozen=True)
class RunnerSetup:
    """The setup of a runner process: a job is a MeasureJob or a SampleJob, its reply an Outcome. `path` is the file of
    the reference."""

    subject: Subject
    limits: Limits
    path: str

    @property
    def memory_bytes(self) -> int:
        """The bytes that a candidate may map beyond the size of the process at its start."""
        return self.limits.memory_bytes

    def start(self) -> Runner:
        """Restrict the process to as many cores as threads, read the reference, warm the probe; return the runner."""
        threads = self.subject.threads
        affinity = Affinity(threads)
        reference: ReferenceCases = pickle.loads(Path(self.path).read_bytes())
        kind = Arithmetic if reference.limit == "flops" else Bandwidth
        clock = Clock(kind(threads), self.limits.sampling, threads, affinity.move)
        clock.ceiling.probe(0.0)
        return Runner(reference, clock, Random(self.subject.seed), self.subject.timing == NETWORK)


class Affinity:
    """The affinity mask of this process: one allowed processor a thread, the last ones first, since interrupts use the
    first; all allowed ones if they are fewer. No effect on a system without affinity masks."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._pin()

    def move(self) -> None:
        """Move to other allowed processors, if there are any. One thread, allowed [0, 1, 2]: it runs on 2, then on 1 of
        [2, 0, 1], then on 0 of [1, 2, 0]."""
        if self._threads < len(self._allowed):
            self._allowed = self._allowed[-self._threads :] + self._allowed[: -self._threads]
            self._pin()

    def _pin(self) -> None:
        """Set the affinity mask of all threads of the process to the last allowed processors."""
        for task in _tasks() if self._allowed else ():
            with suppress(ProcessLookupError):  # a thread may have ended
                os.sched_setaffinity(task, self._allowed[-self._threads :])


def _tasks() -> list[int]:
    """The thread ids of this process; [0], the calling thread, where /proc is missing."""
    try:
        return [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:
        return [0]


@dataclass(frozen=True)
class _Checked:
    """A candidate with right results: its call, the approximate seconds of one, and the calls of a sample (0:
    unset)."""

    call: Call
    seconds: float
    calls: int = 0


@dataclass(frozen=True)
class _Calls:
    """The timed call of a candidate, and the call that prepares its constants, if there is one."""

    call: Call
    prepare: Call | None = None

    def fill(self) -> None:
        """Recompute what depends on the constant inputs: the prepared constants and the copies of `network` timing."""
        if self.prepare is not None:
            self.prepare()
        if isinstance(self.call, NetworkCall):
            self.call.refresh()


class Runner:
    """The check and the timing of candidates, all on the same buffers, which are filled anew for each. `in_network`:
    operands of timed calls are in caches or memory as inside a network."""

    def __init__(self, reference: ReferenceCases, clock: Clock, random: Random, in_network: bool = False) -> None:
        self._reference = reference
        self._clock = clock
        self._random = random
        self._in_network = in_network
        case = reference.cases[0]
        self._inputs = [empty_like(array) for array in case.inputs]
        self._outs = [empty_like(expected.strict) for expected in case.expected]
        self._checked_artefacts: dict[Unit, _Checked] = {}
        self._clocks: dict[int, Clock] = {}

    def __call__(self, job: RunnerJob) -> Outcome:
        """Check and time an artefact, or sample it, as the job states. TargetError and lack of memory become Outcomes;
        any other OSError is raised."""
        try:
            return self._measured(job) if isinstance(job, MeasureJob) else self._sampled(job)
        except TargetError as error:
            return Outcome("build", reason=str(error))
        except MemoryError:
            return _MEMORY
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            return _MEMORY

    def _measured(self, job: RunnerJob) -> Outcome:
        self._checked_artefacts.clear()
        checked = self._check(job.artefact)
        if isinstance(checked, Outcome):
            return checked
        clock = self._beside(job.yardstick)
        samples = clock.samples(checked.call, checked.seconds)
        for _ in range(REPROBES if clock is self._clock else 0):
            if self._is_credible(samples):
                break
            samples = clock.samples(checked.call, checked.seconds)
        return _outcome(samples)

    def _is_credible(self, samples: Samples) -> bool:
        """Whether the rate of samples taken beside the ceiling is not above it; else a probe was disturbed. True if the
        program's work is unknown."""
        work, cost = self._reference.work, median(sample.cost for sample in samples.selected)
        return work is None or cost <= 0 or plausible_share(work / cost) is not None

    def _sampled(self, job: RunnerJob) -> Outcome:
        candidate = self._checked_artefacts.get(job.artefact)
        if candidate is None:
            checked = self._check(job.artefact)
            if isinstance(checked, Outcome):
                return checked
            if len(self._checked_artefacts) >= HELD or self._held_bytes >= HELD_BYTES:
                self._checked_artefacts.clear()
            candidate = self._checked_artefacts[job.artefact] = replace(
                checked, calls=self._clock.calls(checked.call, checked.seconds)
            )
        return _outcome(select_samples([self._beside(job.yardstick).sample(candidate.call, candidate.calls)], 1))

    def _beside(self, yardstick: Yardstick | None) -> Clock:
        """The clock whose probe is a yardstick; the clock of the last yardstick is kept. The clock of the ceiling if
        there is no yardstick, if it cannot be loaded, or if a call of it takes too long."""
        if yardstick is None:
            return self._clock
        if yardstick.number not in self._clocks:
            try:
                calls = self._bound(yardstick.artefact)
            except (TargetError, MemoryError, OSError):  # the yardstick's failure is not that of the timed candidate
                return self._clock
            calls.fill()
            probe = YardstickProbe(calls.call, yardstick.cost, self._clock.threads)
            self._clocks = {yardstick.number: self._clock if probe.is_long else replace(self._clock, ceiling=probe)}
        return self._clocks[yardstick.number]

    def _check(self, artefact: Unit) -> _Checked | Outcome:
        """Run a candidate on CHECKED random sets of inputs, and return it loaded; or an Outcome if a result is wrong by
        the reference."""
        calls = self._bound(artefact)
        inputs, outs = self._inputs, self._outs
        seconds = 0.0
        for case in self._random.sample(self._reference.cases, CHECKED):
            _fill(case, inputs, outs)
            calls.fill()
            seconds = taken(calls.call, 1, self._clock.threads).present
            wrong = wrong_result(case, outs)
            if wrong is not None:
                return Outcome("wrong", reason=wrong)
        return _Checked(calls.call, seconds)

    def _bound(self, artefact: Unit) -> _Calls:
        """The calls of a candidate on the shared buffers and on arrays for its prepared constants."""
        kernel, arrays = artefact.call.load(), [*self._inputs, *self._outs]
        outs = range(len(self._inputs), len(arrays))
        if artefact.prepare is None:
            return _Calls(self._call(kernel, arrays, [*artefact.takes, *outs]))
        prepare = artefact.prepare.load()
        prepared = list(map(_room, prepare.arguments[len(artefact.prepares) :]))
        first = native_call(prepare, [*(arrays[n] for n in artefact.prepares), *prepared])
        passes = [*artefact.takes, *range(len(arrays), len(arrays) + len(prepared)), *outs]
        return _Calls(self._call(kernel, [*arrays, *prepared], passes), first)

    def _call(self, kernel: Kernel, arrays: Sequence[Array], passes: Sequence[int]) -> Call:
        """The call of a kernel on the arrays at the positions `passes`: a NetworkCall with `network` timing, else a
        native call. arrays: the inputs, then the outputs, then the prepared constants."""
        passed = [arrays[n] for n in passes]
        if not self._in_network:
            return native_call(kernel, passed)
        inputs, outputs = len(self._inputs), len(self._inputs) + len(self._outs)
        constants = [i for i, n in enumerate(passes) if n in self._reference.constants or n >= outputs]
        written = [i for i, n in enumerate(passes) if n < inputs and i not in constants]
        return NetworkCall(kernel, passed, constants, written, host())

    @property
    def _held_bytes(self) -> int:
        """The bytes of the copies of constants of all loaded candidates."""
        return sum(
            checked.call.nbytes for checked in self._checked_artefacts.values() if isinstance(checked.call, NetworkCall)
        )


def _outcome(samples: Samples) -> Outcome:
    """The outcome MEASURED with the times and rates of the selected samples and the disturbance of all."""
    used_samples = samples.selected
    return Outcome(
        MEASURED,
        tuple(s.seconds for s in used_samples),
        tuple(s.rate for s in used_samples),
        disturbance=samples.disturbance,
    )


def _room(argument: Argument) -> Array:
    return new_array(replace(argument, alignment=SLOT_ALIGNMENT))


_MEMORY = Outcome("memory", reason="it needs more memory to run than it is allowed")


def _fill(case: ReferenceCase, inputs: Sequence[Array], outs: Sequence[Array]) -> None:
    """Copy a set of inputs into the input buffers, and poison the outputs."""
    for buffer, array in zip(inputs, case.inputs, strict=True):
        np.copyto(buffer, array)
    for out, expected in zip(outs, case.expected, strict=True):
        poison(out, expected)


def wrong_result(case: ReferenceCase, outs: Sequence[Array]) -> str | None:
    """A sentence about the first wrong output of a case; None if all are right."""
    faults = (fault(out, expected) for out, expected in zip(outs, case.expected, strict=True))
    return next((sentence for sentence in faults if sentence is not None), None)
