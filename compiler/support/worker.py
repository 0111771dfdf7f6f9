"""What a worker process does: a setup, then a reply to each job, until its parent closes the pipe or dies.

A further setup takes the place of the one before: a process that has loaded what it needs turns to other work.

Its first argument is the number of its end of the pipe; see processes.py. It is a fresh process, never a fork: a
forked child lacks the threads of its parent's OpenMP runtime, and hangs.
"""

from __future__ import annotations

import operator
import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeAlias, TypeVar

from compiler.support.errors import StrataError

Job: TypeAlias = Any  # what a setup's own role takes; it pickles
Reply: TypeAlias = Any  # what that role gives, or Death


Done = TypeVar("Done")


class Setup(Protocol):
    """What makes a process a worker of a kind; it pickles."""

    def start(self) -> Callable[[Job], Reply]:
        """Prepare the process, and give the function of a job to its reply. Raises StrataError for a program that is
        refused."""

    @property
    def memory_bytes(self) -> int | None:
        """Memory that the process may map beyond its size at the start; None is no limit."""


class Calls:
    """The setup of a worker whose jobs are calls of functions without arguments; nothing is prepared."""

    memory_bytes: None = None

    def start(self) -> Callable[[Callable[[], Reply]], Reply]:
        """A job is called."""
        return operator.call


@dataclass(frozen=True)
class Begin:
    """What a worker is told first, and may be told again: the setup of the jobs that follow."""

    setup: Setup


class Ready:
    """The reply to a setup: the worker takes jobs."""


class Refused(str):
    """The reply of a worker that cannot start: why."""


class Unable(str):
    """The reply of a worker whose system refuses a resource, such as space on a disk."""


def answered(work: Callable[[], Done]) -> Done | Refused | Unable:
    """The result of some work, or why there is none."""
    try:
        return work()
    except StrataError as error:
        return Refused(error)
    except OSError as error:
        place = "" if error.filename is None else f" ({error.filename})"
        return Unable(f"{error.strerror or error}{place}")


def serve(connection: Connection) -> None:
    """Take setups and jobs; a setup that is refused ends the process."""
    jobs: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(connection, jobs), daemon=True).start()
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    told = pickle.loads(jobs.get())
    while isinstance(told, Begin):
        if processors is not None:
            os.sched_setaffinity(0, processors)
        role = _started(told.setup)
        if isinstance(role, (Refused, Unable)):
            connection.send(role)
            return
        connection.send(Ready())
        while not isinstance(told := pickle.loads(jobs.get()), Begin):
            connection.send(role(told))


def _receive(connection: Connection, jobs: SimpleQueue[bytes]) -> None:
    """Forward messages; the end of the pipe is the end of the parent, and of this process whatever it is doing."""
    try:
        while True:
            jobs.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)


def _started(setup: Setup) -> Callable[[Job], Reply] | Refused | Unable:
    """The function from a job to its reply, or why there is none."""
    if setup.memory_bytes is None:
        return answered(setup.start)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    role = answered(setup.start)
    _limit_memory(setup.memory_bytes)
    return role


@contextmanager
def unlimited_memory() -> Iterator[None]:
    """Memory as the system gives it, for the work of this package; the limit of candidates holds again afterwards."""
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))


def _limit_memory(headroom: int) -> None:
    """Let the process map no more than that beyond its current size, if the system tells the size."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + headroom
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def main() -> None:
    """Serve; an interruption of the terminal is the parent's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])))
