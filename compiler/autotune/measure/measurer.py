"""`Measurer`: from scripts to outcomes, by an `Executor` that builds and runs candidates."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol

from compiler.autotune.measure.builder import Built
from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.local import EstimatingExecutor, LocalExecutor
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.targets.cpu.openmp import cores
from compiler.targets.registry import target_named

Say = Callable[[str], object]
"""A callback that receives the step of a batch, such as `building 3 of 8`."""


def ignore_step(words: str) -> None:
    """The default of `say`: does nothing."""


class Executor(Protocol):
    """Builds and runs candidates. A candidate that fails is an outcome, never an exception. Positions refer to the
    argument sequence. Nothing is built during timing on one machine."""

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        """Build scripts: yield the position of each with Built or the outcome of its failure, as they finish."""

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        """Time candidates one after the other: yield the position of each with its outcome, in order."""

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """Time candidates in turns on one machine, each once a round, and return their outcomes."""

    def calibrate(self, built: Built, cost: float) -> None:
        """Make a candidate of a known `Outcome.cost` the yardstick beside which later candidates are timed."""

    def switch_subject(self, subject: Subject) -> None:
        """Switch to candidates of another subject, of the same target and number of threads."""

    def close(self) -> None:
        """End all workers and jobs."""


class Measurer:
    """Measures candidates of one subject; a context manager that ends its workers.

        with Measurer(Subject(str(compiler.lower(function)))) as measurer:
            for position, outcome in measurer.measure(scripts): ...

    The default executor is processes of this machine, with `builders` builders, by default one a core, and `limits` on
    each candidate, by default `Limits()`. An `executor` has its own builders and limits: `limits` is then ignored, and
    `builders` is only the number of scripts built before they are timed. Candidates for a GPU that is not present are
    simulated, and their times estimated. Methods raise InputError for a program that cannot be compiled, TargetError
    where workers cannot start.
    """

    def __init__(
        self,
        subject: Subject,
        limits: Limits | None = None,
        builders: int | None = None,
        executor: Executor | None = None,
    ) -> None:
        is_local = target_named(subject.target).is_local(subject.arch)
        kind = LocalExecutor if is_local else EstimatingExecutor
        self._wave = builders or cores()
        self._executor: Executor = executor or kind(subject, limits or Limits(), builders)

    def __enter__(self) -> Measurer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers. Idempotent."""
        self._executor.close()

    @property
    def places(self) -> int:
        """The number of candidates that workers hold beyond one batch: 0, since nothing is built during timing."""
        return 0

    @property
    def notes(self) -> list[str]:
        """Sentences about the workers: none, since they are of this machine."""
        return []

    def switch_subject(self, subject: Subject) -> None:
        """Measure candidates of another subject, of the same target and as many threads, with the same workers."""
        self._executor.switch_subject(subject)

    def measure(self, scripts: Sequence[str], say: Say = ignore_step) -> Generator[tuple[int, Outcome]]:
        """Build and time scripts: yield the position of each and its outcome, in order; `say` receives the steps.

        As many scripts as there are builders are built together and timed before the next are built: outcomes arrive
        before the whole batch is built, and nothing is built during timing.
        """
        for first in range(0, len(scripts), self._wave):
            wave = scripts[first : first + self._wave]
            say(f"building {first + len(wave)} of {len(scripts)}")
            built: dict[int, Built] = {}
            failed = dict(self._built(wave, built))
            say(f"measuring {first + len(wave)} of {len(scripts)}")
            measured = self._executor.run([built[position] for position in sorted(built)])
            for position in range(len(wave)):
                yield first + position, failed[position] if position in failed else next(measured)[1]

    def _built(self, scripts: Sequence[str], built: dict[int, Built]) -> Iterator[tuple[int, Outcome]]:
        """Build scripts: yield the outcomes of those that fail, and insert the others into `built` by position."""
        for position, build in self._executor.build(scripts):
            if isinstance(build, Outcome):
                yield position, build
            else:
                built[position] = build

    def calibrate(self, script: str, cost: float) -> None:
        """Make a script of a known cost the yardstick of the next candidates, so that their costs compare with those of
        the earlier run that measured it. Has no effect if the script cannot be built."""
        built: dict[int, Built] = {}
        list(self._built([script], built))
        for build in built.values():
            self._executor.calibrate(build, cost)

    def compare(self, scripts: Sequence[str], rounds: int) -> list[Outcome]:
        """Time a few scripts in turns, A B C A B C ..., one sample of each a round, and return their outcomes in order,
        failed builds included."""
        built: dict[int, Built] = {}
        outcomes = dict(self._built(scripts, built))
        positions = sorted(built)
        compared = self._executor.compare([built[position] for position in positions], rounds)
        outcomes.update(zip(positions, compared, strict=True))
        return [outcomes[position] for position in range(len(scripts))]
