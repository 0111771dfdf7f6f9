"""`Measurer`: scripts to outcomes, by an executor that builds candidates and runs them."""

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
"""What is told in a few words how far a batch is."""


def silent(words: str) -> None:
    """Take no notice."""


class Executor(Protocol):
    """Where candidates are built and run; a candidate that fails is an outcome, never an exception.

    Positions are positions in the given sequence. Nothing is built during timing on one machine.
    """

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        """The position of each script with its artefact, or the outcome of its failure, as they finish."""

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        """The position of each candidate with its outcome, in their order."""

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """The outcomes of candidates that take turns, that many rounds, on one machine."""

    def calibrate(self, built: Built, cost: float) -> None:
        """Time what follows beside a candidate whose cost is known."""

    def turn_to(self, subject: Subject) -> None:
        """From now on candidates are of another subject, of the same target and as many threads."""

    def close(self) -> None:
        """End all that was begun."""


class Measurer:
    """Measures candidates of one subject; a context manager, whose workers end with it.

        with Measurer(Subject(str(compiler.lower(function)))) as measurer:
            for position, outcome in measurer.measure(scripts): ...

    The default executor is this machine's processes, with that many builders (as many as cores where not stated); they
    check candidates for a GPU, and estimate their times. Its work raises InputError for a program that cannot be
    compiled, TargetError where workers cannot start.
    """

    def __init__(
        self,
        subject: Subject,
        limits: Limits | None = None,
        builders: int | None = None,
        executor: Executor | None = None,
    ) -> None:
        is_at_hand = target_named(subject.target).is_at_hand(subject.arch)
        kind = LocalExecutor if is_at_hand else EstimatingExecutor
        self._wave = builders or cores()
        self._executor: Executor = executor or kind(subject, limits or Limits(), builders)

    def __enter__(self) -> Measurer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers; once is enough."""
        self._executor.close()

    @property
    def places(self) -> int:
        """How many candidates may be in flight beside those of one batch: none, since nothing is built while something
        is timed."""
        return 0

    @property
    def notes(self) -> list[str]:
        """Sentences about the workers."""
        return []

    def turn_to(self, subject: Subject) -> None:
        """Measure candidates of another subject, of the same target and as many threads, with the same workers."""
        self._executor.turn_to(subject)

    def measure(self, scripts: Sequence[str], say: Say = silent) -> Generator[tuple[int, Outcome]]:
        """The position of each script and its outcome, in their order; `say` is told what is done meanwhile.

        As many as there are builders are built together, and measured before the next: nothing waits for a whole batch,
        and nothing is built while something is measured.
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
        """The outcomes of scripts that cannot be built; `built` gains the others."""
        for position, build in self._executor.build(scripts):
            if isinstance(build, Outcome):
                yield position, build
            else:
                built[position] = build

    def calibrate(self, script: str, cost: float) -> None:
        """Time the next candidates beside a script whose cost is known from an earlier run: costs then compare with
        that run's, whatever other guests of the machine do now. Nothing changes if it cannot be built."""
        built: dict[int, Built] = {}
        list(self._built([script], built))
        for build in built.values():
            self._executor.calibrate(build, cost)

    def compare(self, scripts: Sequence[str], rounds: int) -> list[Outcome]:
        """The outcomes of a few scripts, in turns: A B C A B C ..., a sample of each a round."""
        built: dict[int, Built] = {}
        outcomes = dict(self._built(scripts, built))
        positions = sorted(built)
        compared = self._executor.compare([built[position] for position in positions], rounds)
        outcomes.update(zip(positions, compared, strict=True))
        return [outcomes[position] for position in range(len(scripts))]
