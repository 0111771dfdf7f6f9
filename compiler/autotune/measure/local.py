"""`LocalExecutor`: the executor of this machine. Builders work side by side; then one runner, alone.

While something is timed nothing is built, no worker starts and no reference is computed: with one processor they would
take it from what is timed, with several they would take its caches and its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import median
from typing import Any

from compiler.autotune.measure.builder import BuilderSetup, Built
from compiler.autotune.measure.folder import Folder
from compiler.autotune.measure.gpu_builder import PATIENCE, GpuBuilderSetup
from compiler.autotune.measure.gpu_runner import GpuRunnerSetup
from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.reference import ReferenceSetup
from compiler.autotune.measure.runner import MeasureJob, RunnerSetup, SampleJob, Yardstick
from compiler.autotune.measure.subject import Subject
from compiler.autotune.measure.worker import Setup
from compiler.autotune.measure.worker_pool import WorkerPool, caps
from compiler.autotune.measure.worker_process import Death
from compiler.autotune.outcome import MEASURED, Outcome, together
from compiler.targets.cpu.openmp import cores

SHORTER = 0.7
"""A candidate of less than this part of the cost of that beside which others are timed takes its place."""


@dataclass(frozen=True)
class Roles:
    """What workers do for a target: the setups of its builders, from a subject and bytes of memory, and of its runner,
    from a subject, limits and the path of the reference; and how many times as long as others builders may take."""

    builder: Callable[[Subject, int], Setup]
    runner: Callable[[Subject, Limits, str], Setup]
    patience: float = 1.0


CPU = Roles(BuilderSetup, RunnerSetup)
GPU = Roles(GpuBuilderSetup, GpuRunnerSetup, PATIENCE)


class LocalExecutor:
    """Worker processes of this machine.

    The first candidate is timed beside the machine's ceiling, the others beside that candidate where a call of it is
    short, unless `calibrate` has named one.

    The reference is computed once, in a process of its own while the first candidates are built, and read from a file
    by each runner. Work raises InputError for a program that cannot be compiled, TargetError where workers cannot
    start.
    """

    def __init__(self, subject: Subject, limits: Limits, builders: int | None = None) -> None:
        self._folder = Folder()
        self._pools: list[WorkerPool] = []
        self._yard: Yardstick | None = None
        self._aside = ThreadPoolExecutor(1)
        try:
            path = str(self._folder.path / "reference")
            count = builders or cores()
            roles = CPU if subject.target == "cpu" else GPU
            built = roles.builder(subject, limits.memory_bytes)
            start = limits.start_seconds
            self.builders = self._pool(WorkerPool(built, count, caps(1), roles.patience * limits.build_seconds, start))
            reference = self._pool(WorkerPool(ReferenceSetup(subject, path), 1, caps(cores()), start, start))
            self._reference = self._aside.submit(_computed, reference)
            self._runner = partial(
                WorkerPool, roles.runner(subject, limits, path), 1, caps(subject.threads), limits.run_seconds, start
            )
        except BaseException:
            self.close()
            raise

    @cached_property
    def runner(self) -> WorkerPool:
        """The runner, once there is a reference."""
        self._reference.result()
        return self._pool(self._runner())

    def _pool(self, pool: WorkerPool) -> WorkerPool:
        self._pools.append(pool)
        return pool

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        """See `Executor`."""
        for number, reply in self.builders.map(scripts):
            yield number, _outcome(reply) if isinstance(reply, Death) else reply

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        """See `Executor`."""
        self.builders.settle()
        jobs = _Jobs(len(candidates), lambda number: MeasureJob(candidates[number].artefact, self._yard))
        for number, reply in self.runner.map(jobs):
            outcome = _of(reply, candidates[number])
            self._consider(candidates[number], outcome)
            yield number, outcome

    def calibrate(self, built: Built, cost: float) -> None:
        """See `Executor`."""
        self._yard = Yardstick(0, built.artefact, cost)

    def _consider(self, built: Built, outcome: Outcome) -> None:
        """Time what follows beside a candidate: the first that is right, and one that is much faster."""
        if outcome.ranks and (self._yard is None or outcome.cost < SHORTER * self._yard.cost):
            number = 0 if self._yard is None else self._yard.number + 1
            self._yard = Yardstick(number, built.artefact, outcome.cost)

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """See `Executor`; one that fails takes no further turns. What the machine can do is the same for all samples of
        a round, the median of what was found beside each: noise of probes does not tell candidates apart."""
        self.builders.settle()
        found = [Outcome(MEASURED, build_seconds=built.seconds) for built in candidates]
        for _ in range(rounds):
            turns: dict[int, Outcome] = {}
            for number, built in enumerate(candidates):
                if found[number].ok:
                    ((_, reply),) = self.runner.map([SampleJob(built.artefact, self._yard)])
                    turns[number] = _of(reply, built)
            rates = [rate for one in turns.values() if one.ok for rate in one.rates]
            for number, one in turns.items():
                found[number] = _with(found[number], replace(one, rates=(median(rates),)) if one.ok else one)
        return found

    def close(self) -> None:
        """End all workers."""
        for pool in self._pools:
            pool.close()
        self._aside.shutdown(wait=True)
        self._folder.close()


class _Jobs(Sequence[object]):
    """Jobs that are made when a worker is free for them, by what is known then."""

    def __init__(self, count: int, make: Callable[[int], object]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: Any) -> Any:
        return self._make(number)


def _computed(reference: WorkerPool) -> None:
    """The reference is computed, and the process that did it ends."""
    list(reference.map([None]))
    reference.close()


def _outcome(death: Death) -> Outcome:
    return Outcome(death.kind, reason=death.reason)


def _of(reply: Outcome | Death, built: Built) -> Outcome:
    outcome = _outcome(reply) if isinstance(reply, Death) else reply
    return replace(outcome, build_seconds=built.seconds)


def _with(so_far: Outcome, one: Outcome) -> Outcome:
    """An outcome with one more sample, or the failure instead."""
    if not one.ok:
        return one
    return replace(
        so_far,
        seconds=(*so_far.seconds, *one.seconds),
        rates=(*so_far.rates, *one.rates),
        disturbance=together((so_far.disturbance, one.disturbance)),
    )
