"""`Timer`: checks and times candidates that are built, one at a time, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from statistics import median

from compiler.autotune.measure.builder import Built
from compiler.autotune.measure.gpu_runner import GpuRunnerSetup
from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.reference import ReferenceSetup
from compiler.autotune.measure.runner import MeasureJob, RunnerSetup, SampleJob, Yardstick
from compiler.autotune.measure.subject import Subject
from compiler.autotune.measure.worker import Setup
from compiler.autotune.measure.worker_pool import WorkerPool, caps
from compiler.autotune.measure.worker_process import Death, unnamed
from compiler.autotune.outcome import MEASURED, Outcome, together
from compiler.targets.cpu.openmp import cores

SHORTER = 0.7
"""A candidate cheaper than this part of the yardstick's cost becomes the yardstick."""


class Timer:
    """One runner process of this machine, and the reference that it compares with.

    The first candidate is timed beside the machine's ceiling, the others beside that candidate, the yardstick, where a
    call of it is short, unless `calibrate` has named one. `quiet` is called before anything is timed.

    The reference of a subject is computed once, in a process of its own while the first candidates are built, and
    handed to each runner in a file without a name, which ends with the last process that has it open. Work raises
    InputError for a program that cannot be compiled, TargetError where workers cannot start.
    """

    def __init__(self, subject: Subject, limits: Limits, quiet: Callable[[], None] = lambda: None) -> None:
        self.limits = limits
        self._quiet = quiet
        self._yardsticks: dict[Subject, Yardstick] = {}
        self._runner: WorkerPool | None = None
        self._opened = ExitStack()
        try:
            self._file = self._opened.enter_context(unnamed()).fileno()
            self._aside = ThreadPoolExecutor(1)
            self._opened.callback(self._aside.shutdown)
            self._references = self._worker(ReferenceSetup(subject, self._path), cores(), limits.start_seconds)
            self._expect(subject)
        except BaseException:
            self.close()
            raise

    def turn_to(self, subject: Subject) -> None:
        """From now on candidates are of another subject."""
        self._reference.result()
        self._references.turn_to(ReferenceSetup(subject, self._path))
        self._expect(subject, is_last=False)

    def _expect(self, subject: Subject, is_last: bool = True) -> None:
        """Let the reference of a subject be computed; as far as is known the last, or one of several."""
        self._subject, self._is_expected = subject, True
        self._reference = self._aside.submit(_computed, self._references, is_last)

    @property
    def runner(self) -> WorkerPool:
        """The runner, once there is a reference."""
        self._reference.result()
        if self._runner is None:
            self._runner = self._worker(self._runner_setup, self._subject.threads, self.limits.run_seconds)
        elif self._is_expected:
            self._runner.turn_to(self._runner_setup)
        self._is_expected = False
        return self._runner

    @property
    def _runner_setup(self) -> Setup:
        kind = RunnerSetup if self._subject.target == "cpu" else GpuRunnerSetup
        return kind(self._subject, self.limits, self._path)

    @property
    def _path(self) -> str:
        """Where the workers find the file of the reference."""
        return f"/dev/fd/{self._file}"

    def _worker(self, setup: Setup, threads: int, seconds: float) -> WorkerPool:
        """One worker that has the file of the reference."""
        pool = WorkerPool(setup, 1, caps(threads), seconds, self.limits.start_seconds, (self._file,))
        self._opened.callback(pool.close)
        return pool

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        """See `Executor`."""
        self._quiet()
        for number, reply in self.runner.map(candidates, lambda built: MeasureJob(built.artefact, self._yardstick)):
            outcome = _of(reply, candidates[number])
            self._consider(candidates[number], outcome)
            yield number, outcome

    def calibrate(self, built: Built, cost: float) -> None:
        """See `Executor`."""
        self._yardsticks[self._subject] = Yardstick(0, built.artefact, cost)

    @property
    def _yardstick(self) -> Yardstick | None:
        return self._yardsticks.get(self._subject)

    def _consider(self, built: Built, outcome: Outcome) -> None:
        """Make a candidate the yardstick: the first that is right, and one that is much faster."""
        yardstick = self._yardstick
        if outcome.ranks and (yardstick is None or outcome.cost < SHORTER * yardstick.cost):
            number = 0 if yardstick is None else yardstick.number + 1
            self._yardsticks[self._subject] = Yardstick(number, built.artefact, outcome.cost)

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """See `Executor`; one that fails takes no further turns. What the machine can do is the same for all samples of
        a round, the median of what was found beside each: noise of probes does not tell candidates apart."""
        self._quiet()
        outcomes = [Outcome(MEASURED, build_seconds=built.seconds) for built in candidates]
        for _ in range(rounds):
            turns: dict[int, Outcome] = {}
            for number, built in enumerate(candidates):
                if outcomes[number].ok:
                    ((_, reply),) = self.runner.map([SampleJob(built.artefact, self._yardstick)])
                    turns[number] = _of(reply, built)
            rates = [rate for turn in turns.values() if turn.ok for rate in turn.rates]
            for number, turn in turns.items():
                outcomes[number] = _with(outcomes[number], replace(turn, rates=(median(rates),)) if turn.ok else turn)
        return outcomes

    def close(self) -> None:
        """End the processes."""
        self._opened.close()


def _computed(references: WorkerPool, is_last: bool) -> None:
    """The reference is computed; after the last the process that did it ends."""
    list(references.map([None]))
    if is_last:
        references.close()


def outcome_of(death: Death) -> Outcome:
    """The outcome of a candidate whose worker has died."""
    return Outcome(death.kind, reason=death.reason)


def _of(reply: Outcome | Death, built: Built) -> Outcome:
    outcome = outcome_of(reply) if isinstance(reply, Death) else reply
    return replace(outcome, build_seconds=built.seconds)


def _with(so_far: Outcome, sample: Outcome) -> Outcome:
    """An outcome with one more sample, or the failure instead."""
    if not sample.ok:
        return sample
    return replace(
        so_far,
        seconds=(*so_far.seconds, *sample.seconds),
        rates=(*so_far.rates, *sample.rates),
        disturbance=together((so_far.disturbance, sample.disturbance)),
    )
