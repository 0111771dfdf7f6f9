"""`Workers`: the processes of a run, here or on a cluster, shared by its tasks; calls of them that may fail."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from compiler.autotune.measure.measurer import Measurer
from compiler.autotune.options import TuningOptions
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.errors import InputError, TargetError
from compiler.types.machines import Gpu, Machine

if TYPE_CHECKING:
    from compiler.autotune.fleet.measurer import Fleet

Reply = TypeVar("Reply")


class Workers:
    """The workers of a run, shared by its tasks; a context manager that ends them. They start with the first task:
    local processes, or the workers of `options.scheduler`. Raises InputError for a scheduler and a GPU."""

    def __init__(self, options: TuningOptions, machine: Machine | Gpu) -> None:
        if options.scheduler is not None and not machine.in_clusters:
            raise InputError("a cluster measures for CPUs, not for GPUs")
        self._options, self._machine = options, machine
        self._measurer: Measurer | Fleet | None = None
        self._subject: Subject | None = None
        self._calibrated: set[Subject] = set()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        if self._measurer is not None:
            self._measurer.close()

    @property
    def batches(self) -> int:
        """The maximum number of batches in flight: one locally; on a cluster as many as keep its workers busy while one
        ends. With 12 candidates in flight on the workers and batches of 8: 1 + ceil(2 * 12 / 8) = 4."""
        in_flight = 0 if self._measurer is None else self._measurer.places
        return 1 + -(-2 * in_flight // self._options.batch)

    @property
    def notes(self) -> list[str]:
        """Sentences about the workers, such as which have left."""
        return [] if self._measurer is None else self._measurer.notes

    def measurer_for(self, subject: Subject, meet: Callable[[Measurer | Fleet], None]) -> Measurer | Fleet:
        """Return the measurer after switching it to a subject. On the first use of a subject, `meet` is called with the
        measurer. Raises TargetError if its processes cannot start."""
        if self._measurer is None:
            self._measurer = checked(partial(self._started, subject))
        if self._subject is not None and self._subject != subject:
            checked(partial(self._measurer.switch_subject, subject))
        self._subject = subject
        if subject not in self._calibrated:
            self._calibrated.add(subject)
            checked(partial(meet, self._measurer))
        return self._measurer

    def _started(self, subject: Subject) -> Measurer | Fleet:
        if self._options.scheduler is None:
            return Measurer(subject, builders=self._options.builders)
        from compiler.autotune.fleet.measurer import Fleet

        machine = cast("Machine", self._machine)
        fleet = Fleet(self._options.scheduler, machine, self._options.patience)
        fleet.switch_subject(subject)
        return fleet


def outcomes_of(arriving: Iterator[tuple[int, Outcome]]) -> Generator[tuple[int, Outcome]]:
    """Yield positions and outcomes as they arrive. Raises TargetError for lack of processes, files or memory."""
    while (arrived := checked(lambda: next(arriving, None))) is not None:
        yield arrived


def checked(call: Callable[[], Reply]) -> Reply:
    """Return the result of a call to the workers. Raises TargetError for an OSError, as for lack of processes, files or
    memory."""
    try:
        return call()
    except OSError as error:
        raise TargetError(f"the processes that measure cannot work: {error.strerror or error}") from error
