"""`Station`: what one worker builds and times with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock

from compiler.autotune.fleet import host_lock
from compiler.autotune.measure.builder import Built
from compiler.autotune.measure.limits import Limits
from compiler.autotune.measure.local import builder_of, builders_of
from compiler.autotune.measure.timer import Timer, outcome_of
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.processes import Death
from compiler.support.worker_pool import WorkerPool
from compiler.types.machines import VARIABLE, host, stated


@dataclass
class _Bench:
    """A process that builds, the machine it builds for, and the subject it last built."""

    pool: WorkerPool
    machine: str
    subject: Subject


class Station:
    """Processes that build and one that times, for the jobs of one worker; several threads may call its methods.

    A process builds one candidate at a time and is kept for the next; candidates for another machine are built by
    processes that are told its facts. Timing waits until nothing is built on the host, by any station.
    Work raises InputError for a program that cannot be compiled, TargetError where processes cannot start.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._opened = ExitStack()
        self._idle: list[_Bench] = []
        self._changing, self._timing = Lock(), Lock()
        self._timer: Timer | None = None
        self._subject: Subject | None = None

    def build(self, subject: Subject, script: str, machine: str) -> Built | Outcome:
        """Apply a script, prove and compile it for a machine, whose facts are stated."""
        with host_lock.building(), self._bench(subject, machine) as bench:
            ((_, reply),) = bench.pool.map([script])
        return outcome_of(reply) if isinstance(reply, Death) else reply

    def time(self, subject: Subject, built: Built) -> Outcome:
        """Check a candidate and time it."""
        with self._timing, host_lock.timing():
            ((_, outcome),) = self._turned_to(subject).run([built])
        return outcome

    def compare(self, subject: Subject, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        """Time candidates in turns."""
        with self._timing, host_lock.timing():
            return self._turned_to(subject).compare(candidates, rounds)

    def close(self) -> None:
        """End all processes."""
        self._opened.close()

    def _turned_to(self, subject: Subject) -> Timer:
        if self._timer is None:
            self._timer = Timer(subject, self._limits)
            self._opened.callback(self._timer.close)
        elif subject != self._subject:
            self._timer.turn_to(subject)
        self._subject = subject
        return self._timer

    @contextmanager
    def _bench(self, subject: Subject, machine: str) -> Iterator[_Bench]:
        """A process that nobody uses; it is kept afterwards, unless its work raised an error."""
        bench = self._taken(subject, machine)
        if bench.subject != subject:
            bench.pool.turn_to(builder_of(subject, self._limits))
            bench.subject = subject
        try:
            yield bench
        except BaseException:
            bench.pool.close()
            raise
        with self._changing:
            self._idle.append(bench)

    def _taken(self, subject: Subject, machine: str) -> _Bench:
        """An idle process for a machine, one of the subject if there is one, or a new one."""
        with self._changing:
            idle = [bench for bench in self._idle if bench.machine == machine]
            for bench in sorted(idle, key=lambda bench: bench.subject != subject)[:1]:
                self._idle.remove(bench)
                return bench
        elsewhere = {} if machine == stated(host()) else {VARIABLE: machine}
        pool = builders_of(subject, self._limits, 1, elsewhere)
        self._opened.callback(pool.close)
        return _Bench(pool, machine, subject)
