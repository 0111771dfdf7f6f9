"""`WorkerPool`: a pool of worker processes; a worker that dies, or exceeds its time, fails its job and is replaced.

Workers build and time candidates, compile programs, and run code that may crash. A closed pipe is the death of a
worker, with its signal, its last line of output and whether memory was short; a kill from outside is not the job's
fault; a worker ends with its parent; an interruption of the terminal reaches the parent only, which ends all workers.
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

MAX_FAILED_STARTS = 3
"""The most consecutive deaths of workers before they are ready."""
MAX_STOPS = 5
"""The most retries of a job whose worker was stopped by a signal."""
POLL_SECONDS = 1.0
"""The interval in seconds of checks for stopped workers."""


Item = TypeVar("Item")


def _itself(job: object) -> object:
    return job


@dataclass(eq=False)
class _Seat:
    """A worker and its job: the position among the inputs of `map`, or None; `seconds` is the job's time limit, and
    `deadline` (of the job, or of the setup before it) a time of `time.monotonic`."""

    worker: Worker
    deadline: float
    job: int | None = None
    seconds: float = 0.0


class WorkerPool:
    """A pool of `count` workers of one setup. They start at once; a dead one is replaced when it is needed.

    Workers inherit the open `files`, and have additional `environment` variables. The time limit of a job is its
    attribute `seconds`, by default the pool's; that of a setup is `start_seconds`. A job whose worker was killed from
    outside is retried once, one whose worker was stopped by a signal MAX_STOPS times. Time while this process is
    stopped, or the machine asleep, does not count. `task` is a verb for error messages.
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
        """The process ids."""
        return [seat.worker.pid for seat in self._seats]

    @property
    def busy(self) -> list[int]:
        """The process ids of busy workers."""
        return [seat.worker.pid for seat in self._seats if seat.job is not None]

    def map(self, inputs: Sequence[Item], job: Callable[[Item], object] = _itself) -> Iterator[tuple[int, Reply]]:
        """Yield the position of each item with the reply to its job, or its worker's Death, in the order of completion.

        A job is created when a worker is free for it. Ends early after `interrupt`. Raises InputError for a refused
        setup, TargetError if workers cannot start, or are stopped by a signal at each retry.
        """
        waiting = deque(range(len(inputs)))
        retries: Counter[int] = Counter()
        remaining = len(inputs)
        try:
            while remaining and not self._is_interrupted:
                self._fill()
                self._assign(waiting, lambda number: job(inputs[number]))
                for number, reply in self._replies():
                    if isinstance(reply, Death) and reply.outside and retries[number] < _max_retries(reply):
                        retries[number] += 1
                        waiting.appendleft(number)
                        continue
                    if isinstance(reply, Death) and reply.kind == STOPPED:
                        raise TargetError(f"{self._names} cannot work: {reply.reason} each time")
                    remaining -= 1
                    yield number, reply
        finally:
            self._drop([seat for seat in self._seats if seat.job is not None])

    def settle(self) -> None:
        """Wait until all started workers are ready, so that none loads modules later. Raises InputError for a refused
        setup, TargetError if workers cannot start."""
        while any(not seat.worker.ready for seat in self._seats):
            self._replies()

    def switch_subject(self, setup: Setup) -> None:
        """Change the setup of the workers. Ready processes continue, with their loaded modules; others are replaced."""
        if setup == self._setup:
            return
        self._setup = setup
        self._drop([seat for seat in self._seats if not seat.worker.ready])
        for seat in self._seats:
            seat.worker.begin(setup)
            seat.deadline = time.monotonic() + self._start_seconds
        self._fill()

    def interrupt(self) -> None:
        """Kill the workers, and end the calls of `map` in other threads."""
        self._is_interrupted = True
        for seat in list(self._seats):
            seat.worker.interrupt()

    def close(self) -> None:
        """Kill the workers."""
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
        """Wait for a first reply, but at most POLL_SECONDS; return the jobs' numbers with their replies or Deaths."""
        busy = [seat for seat in self._seats if seat.job is not None or not seat.worker.ready]
        begin = time.monotonic()
        timeout = min(POLL_SECONDS, max(0.0, min(seat.deadline for seat in busy) - begin))
        readable = set(wait([seat.worker.connection for seat in busy], timeout))
        self._extend_deadlines(time.monotonic() - begin - timeout)
        replies = []
        for seat in busy:
            if seat.worker.connection in readable:
                replies += self._handle_reply(seat, seat.worker.receive())
            elif seat.worker.is_stopped:
                replies += self._handle_reply(seat, Death(STOPPED, "a signal has stopped them", outside=True))
            elif time.monotonic() >= seat.deadline:
                limit = seat.seconds if seat.worker.ready else self._start_seconds
                replies += self._handle_reply(seat, Death("timeout", f"it took more than {limit:g} s"))
        return replies

    def _extend_deadlines(self, late: float) -> None:
        """Extend all deadlines by the `late` seconds that a wait took too long, if more than POLL_SECONDS."""
        if late > POLL_SECONDS:
            for seat in self._seats:
                seat.deadline += late

    def _handle_reply(self, seat: _Seat, reply: Reply) -> list[tuple[int, Reply]]:
        """Handle a reply of a worker, and remove a dead one; return its job's number with the reply, or an empty list
        for the reply to a setup."""
        number, seat.job = seat.job, None
        if isinstance(reply, Death):
            self._drop([seat])
        if number is not None:
            return [(number, reply)]
        self._handle_start(seat, reply)
        return []

    def _handle_start(self, seat: _Seat, reply: Ready | Refused | Unable | Death) -> None:
        if isinstance(reply, Refused):
            raise InputError(reply)
        if isinstance(reply, Unable):
            raise TargetError(f"{self._names} cannot start: {reply}")
        if isinstance(reply, Ready):
            self._failed_starts = 0
            seat.worker.ready = True
            return
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS or reply.kind == "timeout":
            raise TargetError(f"{self._names} cannot start: {reply.reason}")

    def _drop(self, seats: Sequence[_Seat]) -> None:
        for seat in list(seats):
            self._seats.remove(seat)
            seat.worker.kill()


def _max_retries(death: Death) -> int:
    """The most retries of a job whose worker another process has stopped or killed."""
    return MAX_STOPS if death.kind == STOPPED else 1
