"""`Timer`: checks and times built candidates on this machine, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from statistics import median
from typing import TypeVar

from compiler.autotune.measure.builder import BuilderSetup, Built
from compiler.autotune.measure.gpu_runner import GpuRunnerSetup
from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.runner import MeasureJob, RunnerSetup, SampleJob, Yardstick
from compiler.database.outcome import MEASURED, Outcome, total_disturbance
from compiler.driver.reference.cases import ReferenceJob
from compiler.driver.reference.subject import Subject
from compiler.support.errors import InputError, TargetError
from compiler.support.processes import Death, unnamed_file
from compiler.support.worker import Refused, Reply, Setup, Unable
from compiler.support.worker_pool import WorkerPool
from compiler.targets.cpu.openmp import cores
from compiler.targets.registry import target_named

RUNNERS: Mapping[str, Callable[[Subject, Limits, str], Setup]] = {"cpu": RunnerSetup, "gpu": GpuRunnerSetup}
"""The setup of a runner process, by families of targets."""
Result = TypeVar("Result")
SHORTER = 0.7
"""A candidate cheaper than this factor times the yardstick's cost becomes the yardstick."""


class Timer:
    """One runner process of this machine, and the reference with which it compares results.

    The first candidate is timed beside the machine's ceiling. Then it is the yardstick, beside which others are timed
    if a call of it is short; `calibrate` sets another one. `quiet` is called before anything is timed, to wait for
    starting workers.

    The reference of a subject is computed once, by a builder process, and passed to runners in `file`, an unnamed file
    that builder and runners inherit. A caller with builders lets one of them do `reference_job` beside the first
    candidates, and passes the reply to `referenced`; else a builder starts for it. Methods raise InputError for a
    program that cannot be compiled, TargetError where workers cannot start.
    """

    def __init__(self, subject: Subject, limits: Limits, quiet: Callable[[], None] = lambda: None) -> None:
        self.limits = limits
        self._quiet = quiet
        self._yardsticks: dict[Subject, Yardstick] = {}
        self._runner: WorkerPool | None = None
        self._opened = ExitStack()
        self.file = self._opened.enter_context(unnamed_file()).fileno()
        self._subject, self._is_referenced, self._is_turned = subject, False, False

    def switch_subject(self, subject: Subject) -> None:
        """Switch to candidates of another subject."""
        if subject != self._subject:
            self._subject, self._is_referenced, self._is_turned = subject, False, False

    @property
    def reference_job(self) -> ReferenceJob | None:
        """The job that computes the subject's reference, to be done before anything is timed; None once done."""
        return None if self._is_referenced else ReferenceJob(self._path, cores(), self.limits.start_seconds)

    def referenced(self, reply: Reply) -> None:
        """Process the reply to `reference_job`: the reference of the subject is then done. Raises InputError for a
        program that cannot be compiled, TargetError for a worker that could not start or died."""
        if isinstance(reply, Refused):
            raise InputError(reply)
        if isinstance(reply, Unable | Death):
            reason = reply.reason if isinstance(reply, Death) else reply
            raise TargetError(f"the processes that measure cannot start: {reason}")
        self._is_referenced = True

    @property
    def runner(self) -> WorkerPool:
        """The runner process of the subject; computes the reference first if it is missing."""
        if (job := self.reference_job) is not None:
            with closing(self._worker(BuilderSetup(self._subject, self.limits.memory_bytes), 1)) as builder:
                ((_, reply),) = builder.map([job])
            self.referenced(reply)
        if self._runner is None:
            self._runner = self._worker(self._runner_setup, self._subject.threads)
        elif not self._is_turned:
            self._runner.switch_subject(self._runner_setup)
        self._is_turned = True
        return self._runner

    @property
    def _runner_setup(self) -> Setup:
        kind = RUNNERS[target_named(self._subject.target).family]
        return kind(self._subject, self.limits, self._path)

    @property
    def _path(self) -> str:
        """The path of the reference's file, as workers open it."""
        return f"/dev/fd/{self.file}"

    def _worker(self, setup: Setup, threads: int) -> WorkerPool:
        """Start one worker that inherits the file of the reference."""
        limits = self.limits
        pool = WorkerPool(setup, 1, worker_environment(threads), limits.run_seconds, limits.start_seconds, (self.file,))
        self._opened.callback(pool.close)
        return pool

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        """Time candidates one after the other: yield the position of each with its outcome, in order."""
        self._quiet()
        for number, reply in self.runner.map(candidates, lambda built: MeasureJob(built.artefact, self._yardstick)):
            outcome = _of(reply, candidates[number])
            self._consider(candidates[number], outcome)
            yield number, outcome

    def calibrate(self, built: Built, cost: float) -> None:
        """Make a candidate of a known `Outcome.cost` the yardstick beside which later candidates are timed."""
        self._yardsticks[self._subject] = Yardstick(0, built.artefact, cost)

    @property
    def _yardstick(self) -> Yardstick | None:
        return self._yardsticks.get(self._subject)

    def _consider(self, built: Built, outcome: Outcome) -> None:
        """Make a candidate the yardstick if it is the first right one, or costs less than SHORTER times the current."""
        yardstick = self._yardstick
        if outcome.is_comparable and (yardstick is None or outcome.cost < SHORTER * yardstick.cost):
            number = 0 if yardstick is None else yardstick.number + 1
            self._yardsticks[self._subject] = Yardstick(number, built.artefact, outcome.cost)

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """Time candidates in turns, each once a round, and return their outcomes; one that fails takes no further
        turns. All samples of a round get the same rate, the median over the round, so that noise of the probes does not
        rank candidates."""
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


def worker_environment(threads: int) -> dict[str, str]:
    """The environment of a worker, by variable: `threads` threads for parallel loops, one for numpy's libraries."""
    return {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def outcome_of(reply: Result | Death) -> Result | Outcome:
    """A worker's reply; if the worker died, the outcome that states how."""
    return Outcome(reply.kind, reason=reply.reason) if isinstance(reply, Death) else reply


def _of(reply: Outcome | Death, built: Built) -> Outcome:
    return replace(outcome_of(reply), build_seconds=built.seconds)


def _with(so_far: Outcome, sample: Outcome) -> Outcome:
    """Append the samples of an outcome to those of another; a failed sample replaces it."""
    if not sample.ok:
        return sample
    return replace(
        so_far,
        seconds=(*so_far.seconds, *sample.seconds),
        rates=(*so_far.rates, *sample.rates),
        disturbance=total_disturbance((so_far.disturbance, sample.disturbance)),
    )
