"""`Worker`: a worker process as its parent sees it: started, sent jobs, killed, and the cause of its death."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from compiler.autotune.measure.worker import Begin, Reply, Setup
from compiler.support import processes

STOPPED = "stopped"
"""The kind of death of a worker that a signal has stopped, and whose parent has ended it."""
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@dataclass(frozen=True)
class Death:
    """How a worker ended: a kind of failure, and a sentence; `outside` if nothing that it did itself ends so."""

    kind: str
    reason: str
    outside: bool = False


class Worker:
    """One process; `environment` is added to this one's, `files` stay open. It is starting until its first reply."""

    def __init__(self, setup: Setup, environment: Mapping[str, str], files: Sequence[int] = ()) -> None:
        self.ready = False
        self._said = _in_memory()
        self._killed_before = _killed_for_memory()
        started = processes.start("compiler.autotune.measure.worker", self._said, environment, files)
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

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        self.connection.close()
        self._said.close()

    def _death(self) -> Death:
        code = self._process.wait()
        said = self._last_line()
        if code >= 0:
            return Death("crash", f"it ended its process with status {code}" + (f": {said}" if said else ""))
        signal_number = signal.Signals(-code)
        if signal_number is signal.SIGKILL and _killed_for_memory() > self._killed_before:
            return Death("memory", "the system killed its process for want of memory")
        if any(words in said.lower() for words in ("out of memory", "bad_alloc")):
            return Death("memory", f"its process ended with {signal_number.name}: {said}")
        return Death("crash", f"its process ended with {signal_number.name}", signal_number in _FROM_OUTSIDE)

    def _last_line(self) -> str:
        """The last that it wrote to its standard output or error."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


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
