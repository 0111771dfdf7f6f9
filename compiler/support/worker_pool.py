"""`WorkerPool`: jobs to worker processes; a worker that dies, or works for too long, costs its job and is replaced.

Candidates are built and timed by such workers, programs are compiled by them, and what may crash is run by one. What
holds for all: a dead pipe is the death of a worker, with its signal, its last words and whether memory was short; what
others did to a worker is not its job's fault; a worker ends with its parent, whatever it does; an interruption of the
terminal reaches the parent only, which leaves none behind.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from multiprocessing.connection import wait
from typing import TypeVar

from compiler.support.errors import InputError, TargetError
from compiler.support.processes import STOPPED, Death, Worker
from compiler.support.worker import Ready, Refused, Reply, Setup, Unable

STARTS = 3
"""How often in a row workers may die before they are ready."""
STOPS = 5
"""How often a job is tried again whose worker was stopped by a signal."""
LOOK = 1.0
"""Seconds after which it is looked whether a worker was stopped."""


Item = TypeVar("Item")


def _itself(job: object) -> object:
    return job


@dataclass(eq=False)
class _Seat:
    """A worker, the number of the job that it works on, when that must be done, and the seconds that it has."""

    worker: Worker
    deadline: float
    job: int | None = None
    seconds: float = 0.0


class WorkerPool:
    """That many workers of one setup. They start at once; one that has died is replaced when it is missed.

    Workers inherit the open `files`. A job is given `seconds`, or those that it states. One whose worker was killed
    from outside is tried again, once; one whose worker was stopped by a signal is tried again until it is not, at most
    STOPS times. While this process itself is stopped, or the machine asleep, no time passes. `task` is what they are
    for, a verb: errors say it.
    """

    def __init__(
        self,
        setup: Setup,
        count: int,
        environment: Mapping[str, str] | None = None,
        seconds: float = inf,
        start_seconds: float = inf,
        files: Sequence[int] = (),
        task: str = "measure",
    ) -> None:
        self._setup = setup
        self._start = partial(Worker, environment=environment, files=files)
        self._count = count
        self._seconds = seconds
        self._start_seconds = start_seconds
        self._names = f"the processes that {task}"
        self._is_interrupted = False
        self._failed_starts = 0
        self._seats: list[_Seat] = []
        self._fill()

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [seat.worker.pid for seat in self._seats]

    @property
    def busy(self) -> list[int]:
        """The numbers of busy workers."""
        return [seat.worker.pid for seat in self._seats if seat.job is not None]

    def map(self, inputs: Sequence[Item], job: Callable[[Item], object] = _itself) -> Iterator[tuple[int, Reply]]:
        """The position of each item and the reply to its job, or the death of its worker, as they come.

        A job is created when a worker is free for it, from the state of then.

        Raises InputError where the workers refuse the program, TargetError where they cannot start.
        """
        waiting = deque(range(len(inputs)))
        tried: Counter[int] = Counter()
        left = len(inputs)
        try:
            while left and not self._is_interrupted:
                self._fill()
                self._assign(waiting, lambda number: job(inputs[number]))
                for number, reply in self._replies():
                    if isinstance(reply, Death) and reply.outside and tried[number] < _repeats(reply):
                        tried[number] += 1
                        waiting.appendleft(number)
                        continue
                    if isinstance(reply, Death) and reply.kind == STOPPED:
                        raise TargetError(f"{self._names} cannot work: {reply.reason} each time")
                    left -= 1
                    yield number, reply
        finally:
            self._drop([seat for seat in self._seats if seat.job is not None])

    def settle(self) -> None:
        """Wait until all workers that have started are ready, so that none takes a processor from others.

        Raises InputError where the workers refuse the program, TargetError where they cannot start.
        """
        while any(not seat.worker.ready for seat in self._seats):
            self._replies()

    def switch_subject(self, setup: Setup) -> None:
        """Let the workers do the jobs of another setup: they need not load again what all jobs need."""
        if setup == self._setup:
            return
        self._setup = setup
        self._drop([seat for seat in self._seats if not seat.worker.ready])
        for seat in self._seats:
            seat.worker.begin(setup)
            seat.deadline = time.monotonic() + self._start_seconds
        self._fill()

    def interrupt(self) -> None:
        """End the workers, and the calls of `map` that other threads are in."""
        self._is_interrupted = True
        for seat in list(self._seats):
            seat.worker.interrupt()

    def close(self) -> None:
        """End the workers."""
        self._drop(self._seats)

    def _fill(self) -> None:
        while len(self._seats) < self._count:
            self._seats.append(_Seat(self._start(self._setup), time.monotonic() + self._start_seconds))

    def _assign(self, waiting: deque[int], job: Callable[[int], object]) -> None:
        for seat in self._seats:
            if waiting and seat.worker.ready and seat.job is None:
                seat.job = waiting.popleft()
                sent = job(seat.job)
                seat.seconds = getattr(sent, "seconds", self._seconds)
                seat.deadline = time.monotonic() + seat.seconds
                seat.worker.send(sent)

    def _replies(self) -> list[tuple[int, Reply]]:
        """The replies of jobs, after waiting for the first one or a timeout."""
        busy = [seat for seat in self._seats if seat.job is not None or not seat.worker.ready]
        begin = time.monotonic()
        most = min(LOOK, max(0.0, min(seat.deadline for seat in busy) - begin))
        come = set(wait([seat.worker.connection for seat in busy], most))
        self._excuse(time.monotonic() - begin - most)
        replies = []
        for seat in busy:
            if seat.worker.connection in come:
                replies += self._received(seat, seat.worker.receive())
            elif seat.worker.is_stopped:
                replies += self._received(seat, Death(STOPPED, "a signal has stopped them", outside=True))
            elif time.monotonic() >= seat.deadline:
                limit = seat.seconds if seat.worker.ready else self._start_seconds
                replies += self._received(seat, Death("timeout", f"it took more than {limit:g} s"))
        return replies

    def _excuse(self, late: float) -> None:
        """Give all jobs the time that this process has slept longer than it meant to."""
        if late > LOOK:
            for seat in self._seats:
                seat.deadline += late

    def _received(self, seat: _Seat, reply: Reply) -> list[tuple[int, Reply]]:
        """The result of a seat's job, if it is one."""
        number, seat.job = seat.job, None
        if isinstance(reply, Death):
            self._drop([seat])
        if number is not None:
            return [(number, reply)]
        self._started(seat, reply)
        return []

    def _started(self, seat: _Seat, reply: Ready | Refused | Unable | Death) -> None:
        if isinstance(reply, Refused):
            raise InputError(reply)
        if isinstance(reply, Unable):
            raise TargetError(f"{self._names} cannot start: {reply}")
        if isinstance(reply, Ready):
            self._failed_starts = 0
            seat.worker.ready = True
            return
        self._failed_starts += 1
        if self._failed_starts >= STARTS or reply.kind == "timeout":
            raise TargetError(f"{self._names} cannot start: {reply.reason}")

    def _drop(self, seats: Sequence[_Seat]) -> None:
        for seat in list(seats):
            self._seats.remove(seat)
            seat.worker.kill()


def _repeats(death: Death) -> int:
    """How often a job is tried again after a death that is not its fault."""
    return STOPS if death.kind == STOPPED else 1
