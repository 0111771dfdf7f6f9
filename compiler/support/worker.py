"""A worker process on the child's side: a setup, then a reply to each job, until its parent closes the pipe or dies.

Another setup replaces the current one, so that a process is reused with its modules loaded.

Its first argument is the descriptor of its end of the pipe; see processes.py. It is a fresh process, never a fork: a
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

Job: TypeAlias = Any  # the argument of a setup's handler; it pickles
Reply: TypeAlias = Any  # the handler's result, or Death


Done = TypeVar("Done")


class Setup(Protocol):
    """The preparation of a worker, and its handler of jobs; it is sent pickled."""

    def start(self) -> Callable[[Job], Reply]:
        """Prepare the process and return the handler, from a job to its reply. Raises StrataError if that fails."""

    @property
    def memory_bytes(self) -> int | None:
        """The bytes that the process may map beyond its size after the start; None sets no limit."""


class Calls:
    """The setup of a worker whose jobs are functions without arguments: the reply is the function's result."""

    memory_bytes: None = None

    def start(self) -> Callable[[Callable[[], Reply]], Reply]:
        """Return the handler: it calls the job."""
        return operator.call


@dataclass(frozen=True)
class Begin:
    """The message with a worker's setup for the jobs that follow."""

    setup: Setup


class Ready:
    """The reply to a setup: the worker is ready for jobs."""


class Refused(str):
    """The reply of a worker whose setup raised a StrataError: its message."""


class Unable(str):
    """The reply of a worker whose setup raised an OSError, such as a full disk: its message."""


def try_call(work: Callable[[], Done]) -> Done | Refused | Unable:
    """Call a function; return its result, Refused for a StrataError, or Unable for an OSError."""
    try:
        return work()
    except StrataError as error:
        return Refused(error)
    except OSError as error:
        file = "" if error.filename is None else f" ({error.filename})"
        return Unable(f"{error.strerror or error}{file}")


def serve(connection: Connection) -> None:
    """Reply Ready to each setup, after restoring the initial affinity mask, and to each job by the setup's handler.
    Returns after a setup that raised StrataError or OSError, whose reply is Refused or Unable."""
    jobs: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(connection, jobs), daemon=True).start()
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    message = pickle.loads(jobs.get())
    while isinstance(message, Begin):
        if processors is not None:
            os.sched_setaffinity(0, processors)
        handler = _start(message.setup)
        if isinstance(handler, (Refused, Unable)):
            connection.send(handler)
            return
        connection.send(Ready())
        while not isinstance(message := pickle.loads(jobs.get()), Begin):
            connection.send(handler(message))


def _receive(connection: Connection, jobs: SimpleQueue[bytes]) -> None:
    """Queue the parent's messages; exit at once when the pipe closes, since the parent has ended."""
    try:
        while True:
            jobs.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)


def _start(setup: Setup) -> Callable[[Job], Reply] | Refused | Unable:
    """Start a setup without a memory limit, then set its limit, if any; return the handler of jobs, or the refusal."""
    if setup.memory_bytes is None:
        return try_call(setup.start)
    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard_limit, hard_limit))
    handler = try_call(setup.start)
    _limit_memory(setup.memory_bytes)
    return handler


@contextmanager
def unlimited_memory() -> Iterator[None]:
    """Lift this process's limit of mapped memory in the context, for the compiler's own work on a candidate."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard_limit, hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft_limit, hard_limit))


def _limit_memory(headroom: int) -> None:
    """Limit the memory that the process maps to its current size plus `headroom` bytes, if the system has the size."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return
    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + headroom
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit), hard_limit)
    )


def main() -> None:
    """Serve the parent over the pipe of the first argument; interruptions of the terminal are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])))
