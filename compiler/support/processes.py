"""`Worker`: a worker process on the parent's side: start, jobs, replies, cause of death."""

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
"""The kind of death of a worker that was stopped by a signal, then killed by its parent."""
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_running: WeakSet[subprocess.Popen[bytes]] = WeakSet()


@dataclass(frozen=True)
class Death:
    """The death of a worker: a kind of failure (crash, memory, timeout, STOPPED), and a sentence. `outside`: a signal
    from another process ended or stopped the worker. `status`: the exit status, or the negative number of the signal
    that ended the worker; 0 for a timeout or STOPPED."""

    kind: str
    reason: str
    outside: bool = False
    status: int = 0


@dataclass(frozen=True)
class StartedProcess:
    """A process, and the parent's end of its pipe."""

    process: subprocess.Popen[bytes]
    connection: Connection[Any, Any]


def start(
    output: BinaryIO | None, environment: Mapping[str, str] | None = None, files: Sequence[int] = ()
) -> StartedProcess:
    """Start a process that runs worker.py.

    It is a fresh process, never a fork, and does not import the main program; it has this process's module path,
    without the current folder. It has its own process group, so that interruptions of the terminal reach the parent
    only. `environment` is added to this process's; the descriptors `files` stay open; `output` gets its standard output
    and errors (None: they are discarded).
    """
    parent_end, child_end = Pipe()
    code = "import sys; sys.path[:] = sys.argv[2:]; from compiler.support.worker import main; main()"
    stream = subprocess.DEVNULL if output is None else output
    process = subprocess.Popen(
        [sys.executable, *_flags(), "-c", code, str(child_end.fileno()), *import_path()],
        stdin=subprocess.DEVNULL,
        stdout=stream,
        stderr=stream,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | dict(environment or {}),
        pass_fds=[child_end.fileno(), *files],
        process_group=0,
    )
    _running.add(process)
    child_end.close()
    return StartedProcess(process, parent_end)


def end_all() -> None:
    """Kill all worker processes without waiting for their end, for a command that was interrupted."""
    for process in list(_running):
        with suppress(OSError):
            process.kill()


class Worker:
    """A worker process with additional `environment` variables and open descriptors `files`; it is sent `setup` at
    once. `ready`: whether the setup is done; the owner sets it on the reply Ready."""

    def __init__(self, setup: Setup, environment: Mapping[str, str] | None = None, files: Sequence[int] = ()) -> None:
        self.ready = False
        self._output = _memory_file()
        self._initial_oom_kills = _oom_kills()
        started = start(self._output, environment, files)
        self._process, self.connection = started.process, started.connection
        self.begin(setup)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has stopped the process (SIGSTOP); False on a system without `waitid`."""
        if not hasattr(os, "waitid"):
            return False
        try:
            return os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return False

    def begin(self, setup: Setup) -> None:
        """Send a setup, and set `ready` to False until the owner receives the reply."""
        self.ready = False
        self.send(Begin(setup))

    def send(self, job: object) -> None:
        """Send a job; if the worker is dead, `receive` returns its death."""
        try:
            self.connection.send(job)
        except OSError:
            return

    def receive(self) -> Reply:
        """Wait for the next reply, to a setup or a job, and return it; a Death if the worker has ended."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return self._death()

    def interrupt(self) -> None:
        """Kill the process; a thread in `receive` gets its Death."""
        self._process.kill()

    def kill(self) -> None:
        """Kill the process and release its resources."""
        self.interrupt()
        self._process.wait()
        self.connection.close()
        self._output.close()

    def _death(self) -> Death:
        code = self._process.wait()
        last_line = self._last_line()
        if code >= 0:
            sentence = f"it ended its process with status {code}" + (f": {last_line}" if last_line else "")
            return Death("crash", sentence, status=code)
        signal_number = signal.Signals(-code)
        if signal_number is signal.SIGKILL and _oom_kills() > self._initial_oom_kills:
            return Death("memory", "the system killed its process for want of memory", status=code)
        sentence = f"its process ended with {signal_number.name}"
        if any(words in last_line.lower() for words in ("out of memory", "bad_alloc")):
            return Death("memory", f"{sentence}: {last_line}", status=code)
        return Death("crash", sentence, signal_number in _FROM_OUTSIDE, code)

    def _last_line(self) -> str:
        """The last line of the worker's standard output and error; empty if there is none."""
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


def _flags() -> list[str]:
    """The interpreter flags of a worker: -P, which excludes the current folder; -E and -s if this process has them."""
    inherited = (("-E", sys.flags.ignore_environment), ("-s", sys.flags.no_user_site))
    return ["-P", *(flag for flag, is_set in inherited if is_set)]


def import_path() -> list[str]:
    """The `sys.path` of a worker: the absolute entries of this process's path, and the root of this package."""
    root = str(Path(compiler.__file__).resolve().parents[1])
    return list(dict.fromkeys([*(entry for entry in sys.path if os.path.isabs(entry)), root]))


def _memory_file() -> BinaryIO:
    """Open an unnamed file in memory or, on systems without memfd, in the temporary folder, which may be full."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("said"), "w+b")
    return unnamed_file()


def unnamed_file() -> BinaryIO:
    """Open a file without a name in the temporary folder; it is deleted when the last process closes it."""
    return cast(BinaryIO, tempfile.TemporaryFile())


def _oom_kills() -> int:
    """The number of processes that the kernel has killed for lack of memory since boot; 0 if it is not available."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
