"""`WorkerProcesses`: the processes with which one worker builds and times candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock

from compiler.autotune.fleet import host_lock
from compiler.autotune.measure.builder import Built
from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.local import builder_of, builders_of
from compiler.autotune.measure.timer import Timer, outcome_of
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.worker_pool import WorkerPool
from compiler.types.machines import VARIABLE, host, machine_facts


class WorkerProcesses:
    """Builder processes and a runner process, for the jobs of one worker; thread-safe.

    A builder process has one candidate at a time and is reused. Candidates for another machine are built by processes
    whose environment states its facts. Timing waits until no process builds on the host. Methods raise InputError for a
    program that cannot be compiled, TargetError where processes cannot start.
    """

    def __init__(self) -> None:
        self._limits = Limits()
        self._opened = ExitStack()
        self._idle: dict[str, list[WorkerPool]] = {}
        self._timing = Lock()
        self._timer: Timer | None = None

    def build(self, subject: Subject, script: str, machine: str) -> Built | Outcome:
        """Apply a script, prove it, and compile it for a machine, whose facts are a text; a failure is an Outcome."""
        with host_lock.building(), self._builder(subject, machine) as builder:
            ((_, reply),) = builder.map([script])
        return outcome_of(reply)

    def time(self, subject: Subject, built: Built) -> Outcome:
        """Check a candidate and time it; a failure is an Outcome."""
        with self._timing, host_lock.timing():
            ((_, outcome),) = self._turned_to(subject).run([built])
        return outcome

    def compare(self, subject: Subject, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """Time candidates in turns, each once a round, and return their outcomes in order."""
        with self._timing, host_lock.timing():
            return self._turned_to(subject).compare(candidates, rounds)

    def close(self) -> None:
        """End all processes."""
        self._opened.close()

    def _turned_to(self, subject: Subject) -> Timer:
        if self._timer is None:
            self._timer = Timer(subject, self._limits)
            self._opened.callback(self._timer.close)
        self._timer.switch_subject(subject)
        return self._timer

    @contextmanager
    def _builder(self, subject: Subject, machine: str) -> Iterator[WorkerPool]:
        """An idle builder process for a machine, or a new one; it is reused afterwards, unless its work raised."""
        idle = self._idle.setdefault(machine, [])
        try:
            pool = idle.pop()  # atomic: no other thread gets the same one
        except IndexError:
            elsewhere = {} if machine == machine_facts(host()) else {VARIABLE: machine}
            pool = builders_of(subject, self._limits, 1, elsewhere)
            self._opened.callback(pool.close)
        try:
            pool.switch_subject(builder_of(subject, self._limits))
            yield pool
        except BaseException:
            pool.close()
            raise
        idle.append(pool)
