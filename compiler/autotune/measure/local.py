"""The executors of this machine: builders in parallel, then one runner alone.

During timing nothing is built, no worker starts and no reference is computed: these would take the runner's processor
time, or with several processors its caches and memory bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compiler.autotune.measure.builder import BuilderSetup, BuildScript, Built, cpu_building
from compiler.autotune.measure.gpu_builder import PATIENCE, GpuBuilder
from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.timer import Timer, outcome_of, worker_environment
from compiler.database.outcome import ESTIMATED, Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.worker import Setup
from compiler.support.worker_pool import WorkerPool
from compiler.targets.cpu.openmp import cores
from compiler.targets.registry import target_named


@dataclass(frozen=True)
class Builders:
    """The builders of a family of targets. building: makes the function that builds the scripts of a subject. patience:
    a factor on the time limit of a build."""

    building: Callable[[Subject], BuildScript]
    patience: float = 1.0


BUILDERS: Mapping[str, Builders] = {"cpu": Builders(cpu_building), "gpu": Builders(GpuBuilder, PATIENCE)}
"""The builders by families of targets."""


def builders_of(
    subject: Subject,
    limits: Limits,
    count: int | None,
    environment: Mapping[str, str] | None = None,
    files: Sequence[int] = (),
) -> WorkerPool:
    """Start `count` builders of a subject, by default one a core. Builders on a GPU's subject have PATIENCE times the
    limit of build seconds. They inherit the open file descriptors `files`, and `environment` is added to theirs."""
    builders = BUILDERS[target_named(subject.target).family]
    setup, seconds = builder_of(subject, limits), builders.patience * limits.build_seconds
    environment = {**worker_environment(1), **(environment or {})}
    return WorkerPool(setup, count or cores(), environment, seconds, limits.start_seconds, files)


def builder_of(subject: Subject, limits: Limits) -> Setup:
    """Return the setup of a worker that builds a subject's candidates."""
    return BuilderSetup(subject, limits.memory_bytes, BUILDERS[target_named(subject.target).family].building)


class EstimatingExecutor:
    """The executor for a GPU that is not present: builds and simulates candidates, and estimates their times."""

    def __init__(
        self, subject: Subject, limits: Limits, builders: int | None = None, files: Sequence[int] = ()
    ) -> None:
        self.limits = limits
        self.builders = builders_of(subject, limits, builders, files=files)

    def switch_subject(self, subject: Subject) -> None:
        """Switch the builders to candidates of another subject."""
        self.builders.switch_subject(builder_of(subject, self.limits))

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        """Build scripts: yield the position of each with Built or the outcome of its failure, as they finish."""
        for number, reply in self.builders.map(scripts):
            yield number, outcome_of(reply)

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        """Yield the position and the estimate of each candidate, in order."""
        for number, built in enumerate(candidates):
            yield number, Outcome(ESTIMATED, (built.artefact.estimate,), (1.0,), build_seconds=built.seconds)

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """The estimates of the candidates; turns do not change them."""
        return [outcome for _, outcome in self.run(candidates)]

    def calibrate(self, built: Built, cost: float) -> None:
        """Do nothing: estimates need no yardstick."""

    def close(self) -> None:
        """End all workers."""
        self.builders.close()


class LocalExecutor(EstimatingExecutor):
    """The executor that measures on this machine: builder processes, and a `Timer` with the runner process."""

    def __init__(self, subject: Subject, limits: Limits, builders: int | None = None) -> None:
        self.timer = Timer(subject, limits, lambda: self.builders.settle())
        try:
            super().__init__(subject, limits, builders, (self.timer.file,))
        except BaseException:
            self.timer.close()
            raise

    def switch_subject(self, subject: Subject) -> None:
        """Switch the builders and the timer to candidates of another subject."""
        super().switch_subject(subject)
        self.timer.switch_subject(subject)

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        """Build scripts: yield the position of each with Built or the outcome of its failure, as they finish. The first
        batch of a subject also computes its reference."""
        job = self.timer.reference_job
        reference_jobs = [] if job is None else [job]
        for number, reply in self.builders.map([*reference_jobs, *scripts]):
            if number < len(reference_jobs):
                self.timer.referenced(reply)
            else:
                yield number - len(reference_jobs), outcome_of(reply)

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        """Time candidates one after the other: yield the position of each with its outcome, in order."""
        return self.timer.run(candidates)

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """Time candidates in turns, each once a round, and return their outcomes."""
        return self.timer.compare(candidates, rounds)

    def calibrate(self, built: Built, cost: float) -> None:
        """Make a candidate of a known `Outcome.cost` the yardstick beside which later candidates are timed."""
        self.timer.calibrate(built, cost)

    @property
    def runner(self) -> WorkerPool:
        """The runner process; computes the reference first if it is missing."""
        return self.timer.runner

    def close(self) -> None:
        """End all workers."""
        super().close()
        self.timer.close()
