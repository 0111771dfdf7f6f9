"""`Worker`: a Python process of this package as its parent sees it: started, sent jobs, killed, and why it died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO, cast
from weakref import WeakSet

import compiler
from compiler.support.worker import Begin, Reply, Setup

STOPPED = "stopped"
"""The kind of death of a worker that a signal has stopped, and whose parent has ended it."""
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_running: WeakSet[subprocess.Popen[bytes]] = WeakSet()


@dataclass(frozen=True)
class Death:
    """How a worker ended: a kind of failure, and a sentence; `outside` if nothing that it did itself ends so; `status`
    is its exit status, or the negative number of a signal."""

    kind: str
    reason: str
    outside: bool = False
    status: int = 0


@dataclass(frozen=True)
class Started:
    """A process, and this end of its pipe, through which goes what pickles."""

    process: subprocess.Popen[bytes]
    connection: Connection[Any, Any]


def start(output: BinaryIO | None, environment: Mapping[str, str] | None = None, files: Sequence[int] = ()) -> Started:
    """Start a process that runs worker.py.

    It is a fresh process, never a fork, and the program of this process is not imported there; it looks for modules
    where this process does, and never in the current folder. It has a process group of its own: an interruption of the
    terminal is the parent's affair. `environment` is added to this process's, `files` stay open, `output` is where its
    output and errors go, None is nowhere.
    """
    ours, theirs = Pipe()
    begins = "import sys; sys.path[:] = sys.argv[2:]; from compiler.support.worker import main; main()"
    said = subprocess.DEVNULL if output is None else output
    process = subprocess.Popen(
        [sys.executable, *_flags(), "-c", begins, str(theirs.fileno()), *path()],
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | dict(environment or {}),
        pass_fds=[theirs.fileno(), *files],
        process_group=0,
    )
    _running.add(process)
    theirs.close()
    return Started(process, ours)


def end_all() -> None:
    """Kill the processes that still run, without waiting: for a command that is interrupted again while it ends."""
    for process in list(_running):
        with suppress(OSError):
            process.kill()


class Worker:
    """One process; `environment` is added to this one's, `files` stay open. It is starting until its first reply."""

    def __init__(self, setup: Setup, environment: Mapping[str, str] | None = None, files: Sequence[int] = ()) -> None:
        self.ready = False
        self._said = _in_memory()
        self._killed_before = _killed_for_memory()
        started = start(self._said, environment, files)
        self._process, self.connection = started.process, started.connection
        self.begin(setup)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has stopped the process, where the system says so: it does nothing, and is not to blame."""
        if not hasattr(os, "waitid"):
            return False
        try:
            return os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return False

    def begin(self, setup: Setup) -> None:
        """Let what it does be that of a setup, once it is ready for it."""
        self.ready = False
        self.send(Begin(setup))

    def send(self, job: object) -> None:
        """Send a job; of a worker that has died `receive` will say so."""
        try:
            self.connection.send(job)
        except OSError:
            return

    def receive(self) -> Reply:
        """The reply that has come, or the death of the worker instead."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return self._death()

    def interrupt(self) -> None:
        """End the process, whatever it does; whoever waits for it receives its death."""
        self._process.kill()

    def kill(self) -> None:
        """End the process, and leave nothing behind."""
        self.interrupt()
        self._process.wait()
        self.connection.close()
        self._said.close()

    def _death(self) -> Death:
        code = self._process.wait()
        said = self._last_line()
        if code >= 0:
            sentence = f"it ended its process with status {code}" + (f": {said}" if said else "")
            return Death("crash", sentence, status=code)
        signal_number = signal.Signals(-code)
        if signal_number is signal.SIGKILL and _killed_for_memory() > self._killed_before:
            return Death("memory", "the system killed its process for want of memory", status=code)
        sentence = f"its process ended with {signal_number.name}"
        if any(words in said.lower() for words in ("out of memory", "bad_alloc")):
            return Death("memory", f"{sentence}: {said}", status=code)
        return Death("crash", sentence, signal_number in _FROM_OUTSIDE, code)

    def _last_line(self) -> str:
        """The last that it wrote to its standard output or error."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


def _flags() -> list[str]:
    """What keeps the current folder out of a worker, and whatever this process was told to keep out."""
    kept = (("-E", sys.flags.ignore_environment), ("-s", sys.flags.no_user_site))
    return ["-P", *(flag for flag, is_set in kept if is_set)]


def path() -> list[str]:
    """Where a worker finds this package and what it needs: where this process does, but for what depends on the current
    folder."""
    root = str(Path(compiler.__file__).resolve().parents[1])
    return list(dict.fromkeys([*(place for place in sys.path if os.path.isabs(place)), root]))


def _in_memory() -> BinaryIO:
    """A file without a name; in memory where the system has such, since the temporary folder may be full."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("said"), "w+b")
    return unnamed()


def unnamed() -> BinaryIO:
    """A file without a name in the temporary folder: it ends with the last process that has it open."""
    return cast(BinaryIO, tempfile.TemporaryFile())


def _killed_for_memory() -> int:
    """How many processes the system has killed for memory so far; 0 where it does not say."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
