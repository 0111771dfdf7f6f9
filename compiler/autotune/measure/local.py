"""The executors of this machine: builders work side by side; then one runner, alone.

During timing nothing is built, no worker starts and no reference is computed: with one processor they would take its
time, with several its caches and its memory bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compiler.autotune.measure.builder import BuilderSetup, BuildScript, Built, cpu_building
from compiler.autotune.measure.gpu_builder import PATIENCE, GpuBuilder
from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.timer import Timer, caps, outcome_of
from compiler.database.outcome import ESTIMATED, Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.worker import Setup
from compiler.support.worker_pool import WorkerPool
from compiler.targets.cpu.openmp import cores
from compiler.targets.registry import target_named


@dataclass(frozen=True)
class Builders:
    """The builders of a family of targets: what builds scripts, and in how many times the usual seconds."""

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
    """The builders of a subject's target, as many as cores where not stated; `environment` is added to theirs, and they
    inherit the open `files`."""
    builders = BUILDERS[target_named(subject.target).family]
    setup, seconds = builder_of(subject, limits), builders.patience * limits.build_seconds
    environment = {**caps(1), **(environment or {})}
    return WorkerPool(setup, count or cores(), environment, seconds, limits.start_seconds, files)


def builder_of(subject: Subject, limits: Limits) -> Setup:
    """What makes a worker a builder of a subject's candidates."""
    return BuilderSetup(subject, limits.memory_bytes, BUILDERS[target_named(subject.target).family].building)


class EstimatingExecutor:
    """The executor where the GPU is not at hand: candidates are built and simulated; see `Executor`."""

    def __init__(
        self, subject: Subject, limits: Limits, builders: int | None = None, files: Sequence[int] = ()
    ) -> None:
        self.limits = limits
        self.builders = builders_of(subject, limits, builders, files=files)

    def turn_to(self, subject: Subject) -> None:
        """See `Executor`."""
        self.builders.turn_to(builder_of(subject, self.limits))

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        """See `Executor`."""
        for number, reply in self.builders.map(scripts):
            yield number, outcome_of(reply)

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        """The estimate."""
        for number, built in enumerate(candidates):
            yield number, Outcome(ESTIMATED, (built.artefact.estimate,), (1.0,), build_seconds=built.seconds)

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """The estimate."""
        return [outcome for _, outcome in self.run(candidates)]

    def calibrate(self, built: Built, cost: float) -> None:
        """Nothing is timed."""

    def close(self) -> None:
        """End all workers."""
        self.builders.close()


class LocalExecutor(EstimatingExecutor):
    """Worker processes of this machine: builders, and a `Timer`, whose docstring says what is timed beside what."""

    def __init__(self, subject: Subject, limits: Limits, builders: int | None = None) -> None:
        self.timer = Timer(subject, limits, lambda: self.builders.settle())
        try:
            super().__init__(subject, limits, builders, (self.timer.file,))
        except BaseException:
            self.timer.close()
            raise

    def turn_to(self, subject: Subject) -> None:
        """See `Executor`."""
        super().turn_to(subject)
        self.timer.turn_to(subject)

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        """See `Executor`; before the first candidates of a subject the reference begins."""
        job = self.timer.reference_job
        before = [] if job is None else [job]
        for number, reply in self.builders.map([*before, *scripts]):
            if number < len(before):
                self.timer.referenced(reply)
            else:
                yield number - len(before), outcome_of(reply)

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        """See `Executor`."""
        return self.timer.run(candidates)

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """See `Executor`."""
        return self.timer.compare(candidates, rounds)

    def calibrate(self, built: Built, cost: float) -> None:
        """See `Executor`."""
        self.timer.calibrate(built, cost)

    @property
    def runner(self) -> WorkerPool:
        """The process that times, once there is a reference."""
        return self.timer.runner

    def close(self) -> None:
        """End all workers."""
        super().close()
        self.timer.close()
